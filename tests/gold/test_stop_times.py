"""Advice has the memberships of the tracker, with the times at which members themselves stopped and asked to join."""

from __future__ import annotations

import pytest

from pipelines.gold.churn import churn
from pipelines.gold.memberships import tracked
from pipelines.gold.stop_times import StopTimes
from testing.warehouses.rebuilding import batches, silver_of
from tests.gold.histories import START, EagerGroup

QUIET_MS = 10_000
RECORDED = ("eager_churn", "rolling_restart", "streams", "storms")


def groups(name: str, sources: str) -> dict[str, dict]:
    rows = silver_of(batches(name, sources=sources), name)
    names = {row["group_id"] for row in rows["generations"]}
    return {g: {table: [r for r in found if r["group_id"] == g] for table, found in rows.items()} for g in names}


@pytest.mark.parametrize("sources", ["offsets,log", "offsets"])
@pytest.mark.parametrize("name", RECORDED)
def test_every_absence_is_a_membership_of_diagnoses_and_health(name, sources) -> None:
    for group, silver in groups(name, sources).items():
        found = churn(silver, QUIET_MS)
        if found is None:
            continue
        ended = [
            (i.memberships[0].member_id, one.departure_kind)
            for i in tracked(silver)
            for one in i.memberships
            if one.gone_at is not None
        ]
        for outage in found.outages:
            first = found.instances[outage.instance].memberships[0].member_id
            assert {(first, outage.departure_kind), (first, None)} & set(ended), group
            assert outage.stopped_at <= outage.gone_at
            assert outage.back_at is None or outage.back_at > outage.stopped_at


def test_without_a_log_a_departure_is_what_the_trigger_says() -> None:
    """Its stop is the last commit, and not the whole silence before the rebalance."""
    group = EagerGroup(session_ms=10_000, logged=False)
    group.leaves(1, 50_000, how="session_expired", silent_ms=10_000, trigger="session_expired")
    group.returns(1, 75_000)
    found = churn(group.silver(), QUIET_MS)
    (outage,) = found.outages
    assert outage.departure_kind == "session_expired"
    assert outage.stopped_at == START + 50_000
    # The others notice within 300 ms.
    assert START + 75_000 <= outage.back_at <= START + 75_300


def test_the_next_process_may_ask_to_join_while_the_previous_one_closes() -> None:
    group = EagerGroup(callback_ms=1_000, java=False)
    group.leaves(1, 50_000)
    group.returns(1, 50_600)
    silver = group.silver()
    assert len(tracked(silver)) == 4
    assert len(tracked(silver, StopTimes(silver).first_stops)) == 3
    (outage,) = churn(silver, QUIET_MS).outages
    assert (outage.stopped_at, outage.gone_at, outage.back_at) == (START + 50_000, START + 51_000, START + 50_600)
