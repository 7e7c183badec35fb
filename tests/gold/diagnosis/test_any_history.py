"""Whatever happens to a group, each rebalance has one cause, and nothing is claimed that the records do not show."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.gold.diagnosis.causes import cause_of, context
from pipelines.gold.diagnosis.diagnosis import diagnosis_rows
from pipelines.gold.memberships import number
from schemas.states import DiagnosisCause, Trigger
from tests.gold.diagnosis.diagnosed_group import Group, slow
from tests.gold.histories import START

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["leaves", "dies", "returns", "naps", "polls_late", "rejoins", "moves"]),
        st.integers(0, 5),
        st.integers(100, 400_000),
        st.sampled_from(list(Trigger)),
        st.sampled_from([None, 0, 900, 2_500, 30_000]),
    ),
    max_size=14,
)


def played(steps) -> Group:
    """Apply the steps, as far as they are possible."""
    group, at = Group(), 30_000
    for what, index, later_ms, trigger, waited in steps:
        at += later_ms
        is_up = index in group.up
        if what in ("leaves", "dies", "naps", "polls_late") and is_up:
            getattr(group, what)(index, at)
            at += group.session_ms + 5_000
        elif what == "returns" and not is_up:
            group.returns(index, at)
        elif what == "rejoins" and group.up:
            group.rejoins(at, trigger, trigger_evidence="inferred")
        elif what == "moves":
            group.moves(at)
        if waited is not None and index in group.up:
            slow(group, index, waited)
    return group


@settings(max_examples=40)
@given(STEPS, st.booleans(), st.integers(0, 2**16), st.integers(0, 2_000_000))
def test_every_completed_rebalance_has_one_cause_in_whatever_order_rows_come(steps, is_logged, seed, since) -> None:
    group = played(steps)
    silver = group.silver() if is_logged else group.forget()
    rows = diagnosis_rows(silver, START + since)
    counted = [g for g in silver["generations"] if g["joined_at"] >= START + since and g["completed_at"] is not None]
    assert sum(row["rebalances"] for row in rows) == len(counted)
    assert not rows or sum(row["share"] for row in rows) == pytest.approx(1)
    assert [row["rank"] for row in rows] == list(range(1, len(rows) + 1))
    shuffled = {name: Random(seed).sample(found, len(found)) for name, found in silver.items()}
    assert diagnosis_rows(shuffled, START + since) == rows


@settings(max_examples=25)
@given(STEPS)
def test_without_the_log_no_accident_is_called_another(steps) -> None:
    """A departure of which nothing is recorded is unknown, part of a pattern, or the same as with the log."""
    group = played([step for step in steps if step[0] != "rejoins"])
    known, alone = context(group.silver()), context(group.forget())
    for logged, forgotten in zip(group.silver()["generations"], group.forget()["generations"], strict=True):
        assert number(logged) == number(forgotten)
        found = cause_of(forgotten, alone).set_off_by
        if found in (DiagnosisCause.SESSION_EXPIRY, DiagnosisCause.CRASH_LOOP):
            assert cause_of(logged, known).set_off_by == found
