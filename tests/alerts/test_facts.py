"""The facts for alerts agree with the tables: exact sums within each window, and the reading progress."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest

from dashboards.lake.lake import LocalLake
from jobs.alerting.alert_facts import FactReader, Watch
from pipelines.gold.alerts.alert import AlertLimits
from pipelines.gold.alerts.burn import WINDOWS
from pipelines.gold.alerts.freshness import Asked
from schemas.bronze import COVERAGE, OFFSET_COMMITS
from schemas.gold import CLUSTER_PATTERNS, DIAGNOSES, GROUP_HEALTH, PATTERNS
from schemas.silver import GENERATIONS, GROUP_EVENTS, GROUPS, STALLS
from testing.alerts.rows import (
    CLUSTER,
    HOUR,
    MINUTE,
    NOW,
    coverage,
    departure,
    generation,
    health,
    pattern,
    rebalancing,
    row,
    stall,
    unowned,
    write,
)

LIMITS = AlertLimits(stuck_ms=6 * MINUTE, stale_ms=90_000, availability=0.999)
IDLE = Asked(at_ms=NOW, ends={0: (0, 100)})


def facts(warehouse: Path, *, asked: Asked | None = IDLE, watch: Watch | None = None, now: int = NOW):
    reading = FactReader(lake=LocalLake(warehouse, fresh_seconds=0), warehouse=warehouse, limits=LIMITS, watch=watch)
    return reading.facts(CLUSTER, now, asked)


@pytest.mark.parametrize("seed", range(3))
def test_losses_and_resources_are_those_within_each_window(warehouse, seed):
    chance = random.Random(seed)
    ended = [NOW - chance.randrange(4 * 24 * HOUR) for _ in range(60)]
    stalls = [stall(at, chance.randrange(1, 2 * HOUR), chance.choice("ab"), index=n) for n, at in enumerate(ended)]
    starts = sorted(NOW - chance.randrange(5 * 24 * HOUR) for _ in range(8))
    made = [generation(n, at, chance.randrange(5), "a") for n, at in enumerate(starts)]
    made[3] |= {"resources_assigned": None, "synced_at": None}
    made[5] |= {"is_empty": True, "resources_assigned": None}
    ignored = [stall(NOW - 1000, HOUR, "a", cause="no_member", index=98), stall(NOW, HOUR, "a", index=99)]
    ignored[1] |= {"resumed_at_earliest": None, "stopped_ms": None}
    write(warehouse, COVERAGE, [coverage()])
    write(warehouse, STALLS, stalls + ignored)
    write(warehouse, GENERATIONS, made)
    found = {loss.group_id: loss.windows for loss in facts(warehouse).losses}

    known = [(0 if g["is_empty"] else g["resources_assigned"], g["joined_at"]) for g in made]
    held = [(n, at, end) for (n, at), (_, end) in pairwise([x for x in known if x[0] is not None] + [(0, NOW)]) if n]
    for group in "ab":
        for width in WINDOWS:
            mine = [
                (s["resumed_at_earliest"] - s["stopped_ms"], s["resumed_at_earliest"])
                for s in stalls
                if s["group_id"] == group
            ]
            cut = [(max(start, NOW - width), end) for start, end in mine if end > NOW - width]
            stopped = found.get(group, {}).get(width)
            assert sum(end - start for start, end in cut) == (stopped.lost_ms if stopped else 0)
            if stopped and group == "a":
                assert min(start for start, _ in cut) == stopped.first_ms
                spans = [(n, max(0, end - max(at, NOW - width))) for n, at, end in held]
                length = sum(ms for _, ms in spans)
                assert stopped.resources == pytest.approx(sum(n * ms for n, ms in spans) / length if length else 0)


def test_bounds_of_a_loss_are_kept(warehouse):
    wide = stall(
        NOW - MINUTE, 10_000, stopped_ms_min=4_000, stopped_ms_max=15_000, resumed_at_latest=NOW - MINUTE + 5_000
    )
    write(warehouse, COVERAGE, [coverage()])
    write(warehouse, STALLS, [wide, stall(NOW - 2 * HOUR, 30_000)])
    write(warehouse, GENERATIONS, [generation(1, NOW - HOUR, 2)])
    (loss,) = facts(warehouse).losses
    stopped = loss.windows[HOUR]
    assert (4_000, 10_000, 15_000, 2.0) == (
        stopped.lost_ms_min,
        stopped.lost_ms,
        stopped.lost_ms_max,
        stopped.resources,
    )


def test_only_the_current_life_of_the_topic_counts_as_read(warehouse):
    spans = [coverage(upto=900, at=NOW - HOUR), coverage(upto=40, log_epoch=1), coverage(upto=60, log_epoch=1)]
    write(warehouse, COVERAGE, [*spans, coverage(upto=999, source="poll", partition=-1)])
    assert 40 == facts(warehouse).freshness.unread
    assert NOW == facts(warehouse).polled_until_ms


def test_reading_that_stands_still_is_noticed_by_watching(warehouse):
    waits, watch = Asked(at_ms=NOW, ends={0: (0, 200)}), Watch()
    write(warehouse, COVERAGE, [coverage(at=NOW - HOUR)])
    assert facts(warehouse, asked=waits, watch=watch).freshness.blind_since_ms is None
    assert facts(warehouse, asked=waits, watch=watch, now=NOW + 91_000).freshness.blind_since_ms == NOW
    write(warehouse, COVERAGE, [coverage(upto=101, at=NOW - HOUR)])
    assert facts(warehouse, asked=waits, watch=watch, now=NOW + 92_000).freshness.blind_since_ms is None


def test_silver_that_is_not_built_is_noticed_and_the_expiry_of_offsets_is_not_taken_for_it(warehouse):
    write(warehouse, COVERAGE, [coverage()])
    write(warehouse, GROUPS, [rebalancing(last_record_at=NOW - HOUR)])
    expired = row(OFFSET_COMMITS, source_partition=0, last_commit_at=NOW, is_tombstone=True)
    write(warehouse, OFFSET_COMMITS, [expired])
    assert facts(warehouse).freshness.blind_since_ms is None
    write(warehouse, OFFSET_COMMITS, [expired | {"is_tombstone": False}])
    assert facts(warehouse).freshness.blind_since_ms == NOW - HOUR


def test_a_build_that_goes_on_is_not_blindness_however_old_what_it_builds_is(warehouse):
    """As in a catch-up, in which the commits of each batch are hours after those of the batch before."""
    watch = Watch()
    write(warehouse, COVERAGE, [coverage(at=NOW - HOUR)])
    write(
        warehouse,
        OFFSET_COMMITS,
        [row(OFFSET_COMMITS, source_partition=0, last_commit_at=NOW - HOUR, is_tombstone=False)],
    )
    for seconds, built in ((0, NOW - 9 * HOUR), (100, NOW - 8 * HOUR), (150, NOW - 8 * HOUR)):
        write(warehouse, GROUPS, [rebalancing(last_record_at=built)])
        seen = facts(warehouse, watch=watch, now=NOW + seconds * 1000).freshness
        assert (False, built, None) == (seen.is_fresh, seen.known_until_ms, seen.blind_since_ms)
    seen = facts(warehouse, watch=watch, now=NOW + 191_000).freshness
    assert (NOW + 100_000, True) == (seen.blind_since_ms, "silver" in seen.why)


def test_flapping_is_looked_for_in_this_hour_and_the_one_before(warehouse):
    hour = NOW // HOUR * HOUR
    rows = [health(hour - 2 * HOUR, 1, "old"), health(hour - HOUR, 1, "a"), health(hour, 1, "b"), health(hour, 0, "c")]
    write(warehouse, COVERAGE, [coverage()])
    write(warehouse, GROUP_HEALTH, rows)
    write(
        warehouse,
        GROUP_EVENTS,
        [departure(hour, "x", "a"), departure(hour, "y", "c"), departure(hour, "z", "a", kind="joined")],
    )
    found = facts(warehouse)
    assert {"a", "b"} == {r["group_id"] for r in found.flapping}
    assert [("a", hour, "x", 1)] == [
        (row["group_id"], row["hour_at"], row["instance"], row["times"]) for row in found.departures
    ]


def test_the_newest_cause_that_is_not_normal_explains_a_group(warehouse):
    def cause(name: str, as_of: int, rank: int, *, is_normal: bool = False) -> dict:
        return row(DIAGNOSES, group_id="orders", cause=name, as_of=as_of, rank=rank, is_normal=is_normal)

    write(warehouse, COVERAGE, [coverage()])
    write(warehouse, GROUPS, [rebalancing()])
    newest = [cause("deploy", NOW, 1, is_normal=True), cause("poll_timeout", NOW, 2), cause("unknown", NOW, 3)]
    write(warehouse, DIAGNOSES, [cause("crash_loop", NOW - HOUR, 1), *newest])
    assert {"orders": "poll_timeout"} == {group: r["cause"] for group, r in facts(warehouse).causes.items()}


def test_topics_without_an_owner_are_those_of_the_newest_analysis_and_know_what_came_before_and_after(warehouse):
    since = NOW - 20 * MINUTE
    ended = unowned("ended", ended_at=NOW)
    rows = [unowned("audit"), unowned("once", "billing"), unowned("again", "later"), ended, unowned("old", "healed")]
    write(warehouse, COVERAGE, [coverage()])
    write(warehouse, PATTERNS, [*rows, unowned("audit", as_of=since - 24 * HOUR)])
    analyzed = {"orders": since, "billing": since, "later": since, "healed": since + MINUTE}
    write(warehouse, DIAGNOSES, [row(DIAGNOSES, group_id=g, cause="deploy", as_of=at) for g, at in analyzed.items()])
    write(warehouse, GENERATIONS, [generation(1, since - 5, 4, "orders"), generation(1, since + 5, 4, "later")])
    write(warehouse, STALLS, [stall(since, 1_000, "orders", name="audit"), stall(since, 1_000, "billing")])
    found = {(r["group_id"], r["subject"]): (r["is_newest"], r["had_owner"]) for r in facts(warehouse).unowned}
    assert {
        ("orders", "audit"): (True, True),
        ("billing", "once"): (True, False),
        ("later", "again"): (False, False),
    } == found


def test_a_warehouse_without_a_table_gives_no_facts_and_no_error(warehouse):
    found = facts(warehouse, asked=None)
    assert ([], [], None, False) == (
        found.storms,
        found.losses,
        found.freshness.known_until_ms,
        found.freshness.is_fresh,
    )


def test_only_patterns_that_last_are_facts_with_their_times_in_ms(warehouse):
    write(warehouse, COVERAGE, [coverage()])
    assert [] == facts(warehouse).patterns, "a warehouse of an earlier version has no such table"
    over = pattern("offsets_partition_down", "__consumer_offsets-8", ["b"], ended_at=NOW)
    write(warehouse, CLUSTER_PATTERNS, [pattern("offsets_partition_down", "__consumer_offsets-7", ["a"]), over])
    (found,) = facts(warehouse).patterns
    assert ("__consumer_offsets-7", NOW - 20 * MINUTE, NOW, ["a"]) == (
        found["subject"], found["started_at"], found["last_at"], found["group_ids"],
    )  # fmt: skip
