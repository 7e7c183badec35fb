"""Rebalances that change nothing have a cause of their own, whoever starts them."""

from __future__ import annotations

import pytest

from pipelines.gold.diagnosis.diagnosis import diagnosis_rows
from pipelines.gold.patterns.group_patterns import pattern_rows
from tests.gold.diagnosis.diagnosed_group import Group, later
from tests.gold.histories import START
from tests.gold.patterns import pattern_histories as lives
from tests.gold.patterns.pattern_histories import ALONE, LOG


def rejoining(times: int, trigger: str = "unknown") -> dict[str, dict]:
    group = Group()
    for turn in range(times):
        group.rejoins(60_000 + turn * 3_000, trigger, trigger_evidence="inferred", client_reason=None)
    return later(group)


def test_a_run_of_equal_plans_is_a_loop_and_a_short_one_is_not() -> None:
    found = rejoining(8)
    assert {"rejoin_loop"} == set(found)
    assert 8 == found["rejoin_loop"]["rebalances"]
    assert "Members rejoined every 3 s although nothing had changed" in found["rejoin_loop"]["explanation"]
    assert not found["rejoin_loop"]["is_normal"]
    assert {"unknown"} == set(rejoining(4))


def folded(trigger: str) -> dict[str, dict]:
    """Rebalances every three seconds, a hundred in each row."""
    group = Group()
    for turn in range(4):
        group.rejoins(60_000 + turn * 300_000, trigger, trigger_evidence="inferred", client_reason=None)
        row = group.rows["generations"][-1]
        row |= {"folded_count": 100, "last_generation_id": row["generation_id"] + 99}
        row["last_completed_at"] = row["completed_at"] + 297_000
        group.generation += 99
    (found,) = pattern_rows(group.silver(), START + 30_000)
    return later(group) | {"pattern": found}


@pytest.mark.parametrize(("trigger", "cause"), [("unknown", "rejoin_loop"), ("leader_rejoined", "leader_flapping")])
def test_the_period_of_a_loop_is_that_of_its_generations_and_not_of_its_rows(trigger, cause) -> None:
    found = folded(trigger)
    assert {cause, "pattern"} == set(found)
    assert 400 == found[cause]["rebalances"] == found["pattern"]["times"]
    for row in found.values():
        assert "every 3 s" in row["explanation"]
        assert "metadata.max.age.ms" not in row["explanation"]


def test_follow_ups_of_one_row_are_in_a_row() -> None:
    row = folded("cooperative_followup")["follow_ups"]
    assert not row["is_normal"]
    assert "400 times, at most 400 in a row" in row["explanation"]


def test_a_leader_that_rejoins_still_flaps() -> None:
    assert {"leader_flapping"} == set(rejoining(8, "leader_rejoined"))


@pytest.mark.parametrize("sources", [ALONE, LOG])
def test_members_that_expel_each_other_neither_crash_nor_poll_late(sources: str) -> None:
    found = {row["cause"]: row for row in diagnosis_rows(lives.expelling().silver(sources), 0)}
    assert {"rejoin_loop", "scaling"} == set(found)
    assert 10 == found["rejoin_loop"]["rebalances"]
    assert ["app-a", "app-b"] == sorted(found["rejoin_loop"]["instances"])
    assert "replaced each other in 10 generations" in found["rejoin_loop"]["explanation"]
