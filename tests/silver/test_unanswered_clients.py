"""Members that get no reply from their coordinator for a session: when they stopped, against the truth and by hand."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from typing import Any

import pytest

from testing.warehouses.rebuilding import batches, silver_of, truth
from tests.silver.handmade import START, broker_line, consumer, generation, member_id, rows
from tests.silver.test_truth import SLACK_MS

CAPTURES = ("coordinator_killed", "coordinator_frozen")
A, B, C = member_id("a"), member_id("b"), member_id("c")


def true_stops(capture: str) -> dict[tuple[str, str, int], list[tuple[float, float]]]:
    """Return the stops of classic groups; a member that lost its partitions stopped with its last message."""
    found = defaultdict(list)
    for name, group in truth(capture)["groups"].items():
        for stop in group["stops"] if group["config"]["protocol"] == "classic" else ():
            a = stop["last_message_ms"] if stop["end"] == "lost" else stop["end_ms"]
            found[name, stop["topic"], stop["partition"]].append((a, stop["assign_ms"]))
    return found


@cache
def paired(capture: str, sources: str) -> list[tuple[float, float, dict[str, Any]]]:
    """Return every stop that happened with our row for it, in order of time."""
    ours = defaultdict(list)
    for row in silver_of(batches(capture, sources=sources), capture)["stalls"]:
        if row["resumed_at_latest"] is not None:
            ours[row["group_id"], row["name"], row["index"]].append(row)
    pairs = []
    for key, stops in true_stops(capture).items():
        for a, b in sorted(stops):
            row = min(ours[key], key=lambda each, b=b: abs(each["resumed_at_earliest"] - b))
            ours[key].remove(row)
            pairs.append((a, b, row))
        assert not [row for row in ours[key] if row["stopped_ms"] > 200], "a stop that did not happen"
    return pairs


def share_within(pairs: list[tuple[float, float, dict[str, Any]]]) -> float:
    within = [
        row["stopped_at_earliest"] - SLACK_MS <= a <= row["stopped_at_latest"] + SLACK_MS
        and row["resumed_at_earliest"] - SLACK_MS <= b <= row["resumed_at_latest"] + SLACK_MS
        for a, b, row in pairs
    ]
    return sum(within) / len(within)


def lost_ratio(pairs: list[tuple[float, float, dict[str, Any]]]) -> float:
    return sum(row["stopped_ms"] for *_, row in pairs) / sum(b - a for a, b, _ in pairs)


@pytest.mark.parametrize("capture", CAPTURES)
def test_stops_around_a_lost_coordinator_are_within_their_bounds_and_add_up(capture) -> None:
    pairs = paired(capture, "offsets,log")
    assert share_within(pairs) >= 0.98
    assert 0.92 <= lost_ratio(pairs) <= 1.08


def test_a_series_of_assignments_that_were_not_stored_is_one_stop_of_each_partition() -> None:
    pairs = paired("refused_assignments", "offsets,log")
    assert len(pairs) == 32
    assert all(abs(row["resumed_at_earliest"] - b) <= 2_500 for _, b, row in pairs)
    assert 0.85 <= lost_ratio(pairs) <= 1.05


def came_back(commits: list[tuple[int, int, int]], *, expired_at: int, asked_at: int) -> Any:
    """B asks as C, alone on its host with its client id; everybody waits until the session of B ends."""
    lines = [
        broker_line(
            asked_at,
            "Dynamic member with unknown member id joins group orders in Stable state. "
            f"Created a new member id {C} and requesting the member to rejoin with this id.",
        ),
        broker_line(expired_at, f"Member {B} in group orders has failed, removing it from the group."),
        broker_line(expired_at, "Stabilized group orders generation 2 with 2 members."),
    ]
    first = generation(1, 0, [consumer("a", [0]), consumer("b", [1])])
    returned = consumer("c", [1]) | {"clientId": "b"}
    second = generation(2, expired_at, [consumer("a", [0]), returned])
    (stall,) = (s for s in rows([first, second], lines, commits)["stalls"] if s["from_member_id"] == B)
    return stall


def works(partition: int, until: int) -> list[tuple[int, int, int]]:
    return [(at, partition, at) for at in range(1_000, until + 1, 1_000)]


def test_a_process_that_was_killed_and_started_again_stopped_before_it_asked() -> None:
    stall = came_back(works(1, 20_000), expired_at=30_200, asked_at=21_500)
    assert 20_000 <= stall["stopped_at_earliest"] - START
    assert stall["stopped_at_latest"] - START == 21_500


def test_a_client_that_was_heard_until_it_asked_stopped_with_its_last_commit_or_later() -> None:
    stall = came_back(works(1, 20_000), expired_at=36_950, asked_at=27_000)
    assert 18_000 <= stall["stopped_at_earliest"] - START <= 20_000
    assert stall["stopped_at_latest"] - START == 27_000


def test_commits_that_are_stored_with_the_first_reply_do_not_show_work_at_that_time() -> None:
    late = [(26_980, 1, 20_500), (26_990, 1, 20_600)]
    stall = came_back([*works(1, 20_000), *late], expired_at=36_990, asked_at=27_000)
    assert stall["stopped_at_earliest"] - START <= 20_000
    assert stall["stopped_at_latest"] - START == 27_000
