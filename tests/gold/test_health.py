"""Hours of `group_health`: sums are right, spans are split at the hour, and no hour looks healthier than known."""

from __future__ import annotations

import pytest

from pipelines.gold.health import HOUR_MS, health_rows
from tests.gold.histories import START, EagerGroup

TO_HOUR = HOUR_MS - START % HOUR_MS


def test_hours_add_up_to_all_that_was_lost() -> None:
    group = EagerGroup(notice_ms=2_000, callback_ms=600_000)
    group.restarts(0, TO_HOUR - 300_000, 1_000_000)
    rows = health_rows(group.silver(), START + 4 * HOUR_MS)
    lost = sum(s["stopped_ms"] for s in group.silver()["stalls"]) / 1000
    assert sum(row["lost_resource_seconds"] for row in rows) == pytest.approx(lost)
    assert len([row for row in rows if row["lost_resource_seconds"]]) == 2


def test_every_hour_of_a_long_stop_has_an_interval_around_its_loss() -> None:
    group = EagerGroup(notice_ms=2_000, callback_ms=3 * HOUR_MS)
    group.leaves(0, TO_HOUR - 300_000)
    rows = health_rows(group.silver(), START + 9 * HOUR_MS)
    lost = [row for row in rows if row["lost_resource_seconds"]]
    assert len(lost) == 7
    for row in lost:
        assert row["lost_resource_seconds_low"] == pytest.approx(row["lost_resource_seconds"], abs=10)
        assert row["lost_resource_seconds_low"] <= row["lost_resource_seconds"] <= row["lost_resource_seconds_high"]


def test_availability_is_what_was_not_lost_of_what_was_owned() -> None:
    group = EagerGroup()
    group.restarts(0, 20_000, 5_000)
    (row,) = health_rows(group.silver(), START + 100_000)
    assert row["owned_resource_seconds"] == pytest.approx(12 * 96.995, abs=1)
    assert row["availability"] == pytest.approx(1 - row["lost_resource_seconds"] / row["owned_resource_seconds"])
    assert (row["rebalances"], row["rebalance_ms_p50"], row["rebalance_ms_max"]) == (3, 307, 3_005)


def test_an_hour_owns_nothing_beyond_what_has_been_recorded() -> None:
    group = EagerGroup()
    group.restarts(0, 20_000, 5_000)
    short, long = (health_rows(group.silver(), START + at)[0] for at in (60_000, 120_000))
    assert long["owned_resource_seconds"] - short["owned_resource_seconds"] == pytest.approx(12 * 60)


def test_an_empty_group_loses_and_owns_nothing() -> None:
    group = EagerGroup(members=1)
    group.leaves(0, 20_000)
    (row,) = health_rows(group.silver(), START + 3_000_000)
    assert row["lost_resource_seconds"] == 0
    assert row["owned_resource_seconds"] == pytest.approx(12 * 17.3, abs=1)


def test_an_instance_that_keeps_going_flaps_and_a_restarted_one_does_not() -> None:
    group = EagerGroup()
    group.restarts(0, 20_000, 5_000)
    for at in range(3):
        group.restarts(1, 60_000 + at * 20_000, 5_000)
    (row,) = health_rows(group.silver(), START + 300_000)
    assert row["flapping_members"] == 1
