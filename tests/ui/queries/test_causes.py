"""Losses by cause: every split adds up to the same total, and rebalances without a verdict are counted as such."""

from __future__ import annotations

import pytest

from dashboards.lake.readers import ReadersLake
from dashboards.queries.causes import Causes, Pending, Scope, compared
from dashboards.queries.store import Store
from dashboards.teams import Teams
from dashboards.urlstate import Window
from dashboards.views.buckets import buckets
from dashboards.zone import shown_in_zone
from testing import sample

TEAMS = Teams.of({"money": ["billing-*", "payments*"], "search": [{"groups": "*", "clusters": "prod-eu"}]})
KEY = ("cluster", "group_id", "incarnation", "generation_id")
PREFIX = "imports-"


@pytest.fixture(scope="module")
def rows(now):
    return sample.everyday(now)


@pytest.fixture
def store(lake, warehouse):
    return Store(lake(warehouse), TEAMS)


@pytest.fixture
def week(now):
    return Window(now - 7 * 86_400_000, now + 1, is_live=False)


def total(found, column):
    return sum(row[column] for row in found)


@pytest.mark.parametrize("by", ["", "cluster", "team", "group"])
def test_every_split_adds_up_to_the_sums_of_the_fleet(store, week, by) -> None:
    expected = store.fleet_verdicts(week)
    found = Causes(store, week).split(by).rows
    assert expected
    for column in ("rebalances", "observed", "lost", "lost_min", "lost_max"):
        assert total(found, column) == pytest.approx(total(expected, column))
    assert found == sorted(found, key=lambda row: -row["lost"])


def test_losses_over_time_add_up_to_the_same(store, week) -> None:
    times = buckets(week)
    found = Causes(store, week).over_time(times.origin, times.slot_ms).rows
    assert total(found, "lost") == pytest.approx(total(store.fleet_verdicts(week), "lost"))
    assert all(0 <= times.of_slot(row["slot"]) < len(times) for row in found)


def test_a_scope_leaves_out_other_groups_and_other_verdicts(store, week) -> None:
    whole = Causes(store, week).split("group").rows
    first = whole[0]
    of_team = Causes(store, week, Scope(team="money", teams=TEAMS)).split("group").rows
    expected = [row for row in whole if TEAMS.of_group(row["cluster"], row["group_id"]) == "money"]
    assert [(row["group_id"], row["lost"]) for row in expected] == [(row["group_id"], row["lost"]) for row in of_team]
    assert expected
    scope = Scope(cluster=first["cluster"], verdict=first["main_verdict"], cause=first["main_cause"], teams=TEAMS)
    blamed = Causes(store, week, scope)
    assert blamed.split("group").rows[0]["lost"] == pytest.approx(first["lost_mostly"])
    times = buckets(week)
    found = blamed.over_time(times.origin, times.slot_ms).rows
    assert {first["main_verdict"]} == {row["verdict"] for row in found}
    assert [] == Causes(store, week, Scope(cluster="no such", teams=TEAMS)).split("").rows


def test_rebalances_without_a_verdict_are_counted_with_their_loss(lake, rows, tmp_path, week) -> None:
    kept = rows["verdicts"][:2]
    sample.write(tmp_path, {**rows, "verdicts": kept})
    store = Store(lake(tmp_path), TEAMS)
    judged = {tuple(row[key] for key in KEY) for row in kept}
    made = {
        tuple(row[key] for key in KEY): row["folded_count"] if row.get("folded_count") else 1
        for row in rows["generations"]
        if row["completed_at"] is not None and week.start <= row["joined_at"] < week.end
    }
    expected = {key: number for key, number in made.items() if key not in judged}
    causes = Causes(store, week)
    pending = causes.pending()
    assert sum(expected.values()) == pending.rebalances > 0
    times = buckets(week)
    by_slot = causes.pending_by("slot", pending, times.origin, times.slot_ms)
    for found in (by_slot, *(causes.pending_by(by, pending) for by in ("cluster", "team", "group"))):
        assert total(found, "rebalances") == pending.rebalances
        assert total(found, "lost") == pytest.approx(total(by_slot, "lost"))
    lost = sum(
        row["stopped_ms"] / 1000
        for row in rows["stalls"]
        if tuple(row[key] for key in KEY) in expected
        and row["cause"] not in ("no_member", "static_restart")
        and row["resumed_at_earliest"] is not None
    )
    assert total(by_slot, "lost") == pytest.approx(lost) != 0
    listed = compared(store, week, week, Scope(teams=TEAMS), "group", pending).rows
    assert sum(row["pending_rebalances"] for row in listed) == pending.rebalances


def test_without_an_analysis_every_completed_rebalance_waits(lake, rows, tmp_path, week) -> None:
    sample.write(tmp_path, rows)
    for file in sorted((tmp_path / "verdicts").rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    (tmp_path / "verdicts").rmdir()
    store = Store(lake(tmp_path), TEAMS)
    causes = Causes(store, week)
    pending = causes.pending()
    assert pending.rebalances >= len(rows["verdicts"])
    assert pending.rebalances == total(causes.pending_by("cluster", pending), "rebalances")
    assert [] == causes.split("").rows


def test_the_range_before_stands_beside(store, week, now) -> None:
    middle = Window(now - 20 * 60_000, now - 20 * 60_000 + 3_600_000, is_live=False)
    before = Window(middle.start - middle.width, middle.start, is_live=False)
    found = compared(store, middle, before, Scope(teams=TEAMS), "", Pending(0, None)).rows
    assert total(found, "lost") == pytest.approx(total(store.fleet_verdicts(middle), "lost"))
    assert total(found, "lost_before") == pytest.approx(total(store.fleet_verdicts(before), "lost")) != 0
    groups = compared(store, middle, before, Scope(teams=TEAMS), "group", Pending(0, None)).rows
    assert {row["group_id"] for row in groups} == {row["group_id"] for row in Causes(store, middle).split("group").rows}


def test_a_reader_sees_sums_of_his_groups_alone(lake, warehouse, week) -> None:
    of_all = Causes(Store(lake(warehouse), TEAMS), week)
    limited = Causes(Store(ReadersLake(lake(warehouse), lambda: (PREFIX,)), TEAMS), week)
    assert of_all.split("group").rows
    assert [] == limited.split("group").rows
    assert 0 < limited.pending().rebalances < of_all.pending().rebalances
    assert all(row["group_id"].startswith(PREFIX) for row in limited.pending_by("group", limited.pending()))


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Asia/Kolkata", "America/New_York"])
@pytest.mark.parametrize(
    ("width", "step"),
    [
        (300_000, "10 seconds"),
        (3_600_000, "a minute"),
        (86_400_000, "an hour"),
        (7 * 86_400_000, "a day"),
        (400 * 86_400_000, "a week"),
    ],
)
def test_buckets_cover_the_window_in_whole_slots(zone, width, step) -> None:
    # 2026-10-20: clocks in Berlin are set back five days later.
    window = Window(1_792_454_461_234, 1_792_454_461_234 + width, is_live=False)
    with shown_in_zone(zone):
        found = buckets(window)
    assert step == found.step
    assert found.edges[0] <= window.start < found.edges[1]
    assert found.edges[-2] < window.end <= found.edges[-1]
    assert len(found) <= 62
    for at, edge in enumerate(found.edges[:-1]):
        assert at == found.of_slot((edge - found.origin) // found.slot_ms)
