"""Deploys of a group: which rebalances belong to one, who came back, and the same rows whenever they are computed."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.gold.deploys.announcements import announcements
from pipelines.gold.rows import AnalysisConfig, broker, gold_rows
from schemas.gold import DEPLOYS
from schemas.thresholds import DAY_MS, HOUR_MS, MINUTE_MS
from tests.gold.diagnosis.diagnosed_group import Group, slow
from tests.gold.histories import START

MIDNIGHT = (START // DAY_MS + 1) * DAY_MS - START
NOON = MIDNIGHT + 12 * HOUR_MS


def deploys(group: Group | dict, marks=(), since: int = -START) -> list[dict[str, Any]]:
    silver = group.silver() if isinstance(group, Group) else group
    found = gold_rows(
        "kafka", "orders-app", silver, broker=broker({}), config=AnalysisConfig(),
        since_ms=START + since, until_ms=0, marks=marks, tables=(DEPLOYS,),
    )  # fmt: skip
    return [dict(row) for row in found["deploys"]]


def mark(at: int, text: str = "v2.31", *groups: str) -> dict[str, Any]:
    one = groups[0] if len(groups) == 1 else None
    return {"cluster": "kafka", "marked_at": START + at, "kind": "deploy", "text": text, "marked_by": None,
            "group_id": one, "group_ids": list(groups)}  # fmt: skip


def rolls(group: Group, at: int, away_ms: int = 8_000, members: int = 3) -> None:
    for index in range(members):
        group.restarts(index, at + index * MINUTE_MS, away_ms)


def test_a_rolling_restart_is_one_deploy_with_its_cost_and_members() -> None:
    group = Group()
    rolls(group, NOON)
    (row,) = deploys(group)
    assert (row["text"], row["evidence"], row["rebalances"]) == (None, "inferred", 6)
    assert row["restarted"] == ["app-0", "app-1", "app-2"]
    assert row["not_back"] == row["not_back_hosts"] == []
    assert (row["members_before"], row["members_after"]) == (3, 3)
    assert START + NOON <= row["started_at"] < row["ended_at"] <= row["stable_at"]
    assert row["stable_ms"] == row["stable_at"] - row["started_at"]
    stops = [s for s in group.rows["stalls"] if s["stopped_at_latest"] > START + NOON - 1_000]
    assert row["lost_resource_seconds"] == pytest.approx(sum(s["stopped_ms"] for s in stops) / 1000)


def test_the_start_of_a_group_and_its_scaling_are_no_deploys() -> None:
    group = Group()
    group.returns(3, NOON)
    group.leaves(3, NOON + 2 * HOUR_MS)
    assert deploys(group) == []


def test_a_mark_names_the_deploy_that_follows_it_and_begins_it() -> None:
    group = Group()
    rolls(group, NOON)
    (row,) = deploys(group, [mark(NOON - 5 * MINUTE_MS)])
    assert (row["text"], row["evidence"], row["rebalances"]) == ("v2.31", "observed", 6)
    assert row["started_at"] == START + NOON - 5 * MINUTE_MS
    (row,) = deploys(group, [mark(NOON - 31 * MINUTE_MS)])
    assert row["text"] is None, "too long before"


def test_a_mark_that_names_the_group_is_a_deploy_even_if_nothing_followed() -> None:
    group = Group()
    (row,) = deploys(group, [mark(NOON, "v3", "orders-app")])
    assert (row["text"], row["rebalances"], row["lost_resource_seconds"]) == ("v3", 0, 0)
    assert row["ended_at"] is row["stable_at"] is row["stable_ms"] is None
    assert (row["members_before"], row["members_after"]) == (3, 3)
    assert deploys(group, [mark(NOON, "of the whole cluster")]) == []
    assert deploys(group, [mark(-HOUR_MS, "before the group was there", "orders-app")]) == []


def test_a_second_deploy_begins_where_an_instance_leaves_again_or_with_a_mark() -> None:
    group = Group()
    rolls(group, NOON)
    rolls(group, NOON + 10 * MINUTE_MS)
    first, second = deploys(group)
    assert (first["rebalances"], second["rebalances"]) == (6, 6)
    assert first["stable_at"] < second["started_at"]

    group = Group()
    group.restarts(0, NOON, 8_000)
    group.restarts(1, NOON + MINUTE_MS, 8_000)
    rows = deploys(group, [mark(NOON - 1_000, "v1"), mark(NOON + 30_000, "v2")])
    assert [(row["text"], row["restarted"]) for row in rows] == [("v1", ["app-0"]), ("v2", ["app-1"])]


def test_who_does_not_come_back_and_who_is_slow_is_named_with_the_host() -> None:
    group = Group()
    group.restarts(0, NOON, 8_000)
    group.restarts(1, NOON + MINUTE_MS, 8_000)
    slow(group, 0, 2_500)
    group.leaves(2, NOON + 2 * MINUTE_MS)
    (row,) = deploys(group)
    assert row["restarted"] == ["app-0", "app-1"]
    assert (row["not_back"], row["not_back_hosts"]) == (["app-2"], ["/10.0.0.1"])
    assert (row["slowest"], row["slowest_host"], row["slowest_waited_ms"]) == ("app-0", "/10.0.0.1", 2_500)
    assert (row["members_before"], row["members_after"]) == (3, 2)

    group.returns(2, NOON + 2 * MINUTE_MS + HOUR_MS + 1)
    assert deploys(group)[0]["not_back"] == ["app-2"], "later than an hour"


def test_pods_that_replace_others_are_no_missing_members() -> None:
    group = Group(members=2, client="consumer-{index}")
    for index in (0, 1):
        group.returns(index + 7, NOON + index * MINUTE_MS)
        group.leaves(index, NOON + index * MINUTE_MS + 20_000)
    (row,) = deploys(group)
    assert (row["restarted"], row["not_back"]) == (["consumer-0", "consumer-1"], [])


def test_a_deploy_over_midnight_is_one_and_belongs_to_the_day_of_its_start() -> None:
    group = Group(members=4)
    rolls(group, MIDNIGHT - 90_000, members=4)
    (row,) = deploys(group)
    assert row["started_at"] < START + MIDNIGHT < row["ended_at"]
    assert row["restarted"] == ["app-0", "app-1", "app-2", "app-3"]
    assert deploys(group, since=MIDNIGHT + HOUR_MS) == [row], "a change on the next day makes it again"


def test_restarts_without_a_pause_for_a_day_are_several_deploys_of_at_most_nine_hours() -> None:
    group = Group()
    for turn in range(24 * 3 + 6):
        group.restarts(turn % 2, NOON + turn * 20 * MINUTE_MS, 8_000)
    rows = deploys(group)
    assert len(rows) > 2
    assert all(row["ended_at"] - row["started_at"] <= 9.5 * HOUR_MS for row in rows)


def test_of_marks_without_a_rebalance_between_them_the_last_counts_and_the_groups_own_before_all() -> None:
    def texts(marks: list[dict], *joined: int) -> list[str]:
        return [a.text for a in announcements(marks, [START + at for at in joined])]

    own, other = mark(0, "own", "orders-app"), mark(MINUTE_MS, "other team")
    assert texts([own, other], 90_000) == ["own"]
    assert texts([mark(0, "build"), mark(MINUTE_MS, "deploy")], 90_000) == ["deploy"]
    assert texts([mark(0, "first"), mark(MINUTE_MS, "second")], 30_000, 90_000) == ["first", "second"]
    assert texts([mark(0, "b"), mark(0, "a")], 90_000) == ["a; b"]
    assert texts([mark(0, "cluster"), mark(0, "own", "orders-app")], 90_000) == ["own"]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["restarts", "leaves", "returns", "dies", "mark", "own mark"]),
        st.integers(0, 3),
        st.sampled_from([20_000, MINUTE_MS, 10 * MINUTE_MS, 29 * MINUTE_MS, 3 * HOUR_MS, 9 * HOUR_MS]),
    ),
    max_size=24,
)


def played(steps) -> tuple[Group, list[dict]]:
    group, at, marks = Group(), MIDNIGHT - HOUR_MS, []
    for what, index, later_ms in steps:
        at += later_ms
        if "mark" in what:
            marks.append(mark(at, f"v{len(marks)}", *(["orders-app"] if "own" in what else [])))
        elif what == "returns" and index not in group.up:
            group.returns(index, at)
        elif what != "returns" and index in group.up:
            group.restarts(index, at, 8_000) if what == "restarts" else getattr(group, what)(index, at)
            at += group.session_ms + 10_000
    return group, marks


@settings(max_examples=60, deadline=None)
@given(STEPS, st.integers(0, 4 * 24), st.integers(0, 2**16))
def test_a_part_of_the_history_gives_the_rows_that_all_of_it_gives(steps, hours, seed) -> None:
    group, marks = played(steps)
    whole, silver = deploys(group, marks), group.silver()
    starts = [row["started_at"] for row in whole]
    assert len(set(starts)) == len(starts)

    shuffled = {name: Random(seed).sample(rows, len(rows)) for name, rows in silver.items()}
    assert deploys(shuffled, Random(seed).sample(marks, len(marks))) == whole

    # A later analysis computes the same rows again; and rows that it does not compute do not depend on later data.
    since = MIDNIGHT - HOUR_MS + hours * HOUR_MS
    first = ((START + since) // DAY_MS - 1) * DAY_MS
    kept = [row for row in whole if row["started_at"] < first]
    assert deploys(group, marks, since=since) == whole[len(kept) :]
    times = {"generations": "joined_at", "generation_members": "valid_from_at", "stalls": "stopped_at_latest",
             "group_events": "event_at"}  # fmt: skip
    day = (START + since) // DAY_MS * DAY_MS
    seen = {name: [row for row in rows if row[times[name]] < day] for name, rows in silver.items()}
    earlier = [m for m in marks if m["marked_at"] < day]
    assert [row for row in deploys(seen, earlier) if row["started_at"] < first] == kept
