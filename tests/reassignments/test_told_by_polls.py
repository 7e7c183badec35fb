"""What polls alone show: which values are bounded, and that no value is made up."""

from __future__ import annotations

from random import Random

import pytest

from pipelines.reassignments.rows import reassignment_rows
from tests.reassignments.described import Polls

ON = ([2, 3, 5, 0, 1], [3, 5], [0, 1])
BEFORE, AFTER = [1, 0, 2], [2, 3, 5]


def described(polls: Polls, *keys: str) -> list:
    rows = reassignment_rows("kafka", polls.seen, [])["reassignments"]
    return [tuple(row[key] for key in keys) for row in rows] if keys else rows


def begun() -> Polls:
    return Polls().ongoing(1).topic(1.1, BEFORE).ongoing(2, ON)


def test_a_quiet_partition_has_no_row() -> None:
    assert [] == described(Polls().ongoing(1).topic(1.1, BEFORE).ongoing(2).topic(2.1, BEFORE, isr=[1]).ongoing(3))


def test_the_start_lies_between_the_last_poll_without_and_the_first_with_it() -> None:
    (row,) = described(begun())
    assert (2000, 1000) == (row["started_at"], row["started_at_earliest"])
    assert (BEFORE, AFTER, [3, 5], [0, 1]) == tuple(
        row[k] for k in ("original_replicas", "target_replicas", "adding", "removing")
    )
    assert ("running", "replicas_added", "bounded", None) == tuple(
        row[k] for k in ("state", "phase", "evidence", "completed_at")
    )


def test_one_that_ran_when_watching_began_has_no_earliest_start() -> None:
    assert [(2000, None)] == described(Polls().ongoing(2, ON).ongoing(3, ON), "started_at", "started_at_earliest")


def test_replicas_afterwards_tell_completion_from_cancellation() -> None:
    keys = ("state", "phase", "completed_at", "completed_at_earliest")
    assert [("completed", "completed", 3000, 2000)] == described(begun().ongoing(3).topic(3.1, AFTER), *keys)
    assert [("cancelled", "replicas_added", 3000, 2000)] == described(begun().ongoing(3).topic(3.1, [2, 0, 1]), *keys)


def test_a_broker_that_learns_of_the_end_later_than_the_controller_tells_of_no_further_reassignment() -> None:
    keys = ("state", "original_replicas", "target_replicas", "completed_at")
    late = begun().ongoing(3).topic(3.1, ON[0])
    assert [("completed", BEFORE, AFTER, 3000)] == described(late.ongoing(4).topic(4.1, AFTER), *keys)
    late = begun().ongoing(3).topic(3.1, ON[0])
    assert [("cancelled", BEFORE, AFTER, 3000)] == described(late.ongoing(4).topic(4.1, BEFORE), *keys)
    grown = Polls().ongoing(1).topic(1.1, [5, 0]).ongoing(2, ([5, 0, 1], [1], [])).ongoing(3).topic(3.1, [5, 0, 1])
    assert [("cancelled", [5, 0], [5, 0, 1], 3000)] == described(grown.ongoing(4).topic(4.1, [5, 0]), *keys)


def test_without_replicas_afterwards_nobody_says_how_it_ended() -> None:
    assert [(None, 3000)] == described(begun().ongoing(3).ongoing(4), "state", "completed_at")


def test_more_replicas_alone_are_a_reassignment_too() -> None:
    grown = Polls().ongoing(1).topic(1.1, [5, 0]).ongoing(2, ([5, 0, 1], [1], [])).ongoing(3).topic(3.1, [5, 0, 1])
    assert [([5, 0], [5, 0, 1], "completed")] == described(grown, "original_replicas", "target_replicas", "state")


def test_another_order_is_complete_at_once() -> None:
    polls = Polls().ongoing(1).topic(1.1, [2, 3, 4]).ongoing(2).topic(2.1, [4, 3, 2], leader=2).ongoing(3)
    (row,) = described(polls)
    assert ([2, 3, 4], [4, 3, 2], [], []) == tuple(
        row[k] for k in ("original_replicas", "target_replicas", "adding", "removing")
    )
    assert (2100, -900, 2100, "completed", 0, 1.0) == tuple(
        row[k] for k in ("started_at", "started_at_earliest", "completed_at", "state", "bytes_total", "progress")
    )


def test_a_change_that_is_complete_at_once_may_be_older_than_the_last_list() -> None:
    """Only descriptions contain it, and the broker that describes the topic may be late by two seconds."""
    polls = Polls().ongoing(10).topic(10.1, [2, 3, 4]).ongoing(25).topic(25.1, [4, 3, 2], leader=2).ongoing(40)
    assert [(25_100, 8100)] == described(polls, "started_at", "started_at_earliest")
    ended = begun().ongoing(3).topic(3.1, AFTER).ongoing(4).topic(4.1, AFTER[::-1]).ongoing(5)
    assert [(2000, 1000), (4100, 2000)] == described(ended, "started_at", "started_at_earliest")


def test_one_quicker_than_the_polls_is_seen_by_what_it_left() -> None:
    polls = Polls().ongoing(1).topic(1.1, [1, 2]).ongoing(2).topic(2.1, [3, 2]).ongoing(3)
    assert [([1, 2], [3, 2], "completed", [3], [1], None)] == described(
        polls, "original_replicas", "target_replicas", "state", "adding", "removing", "bytes_total"
    )


def test_one_that_replaces_another_ends_it_and_keeps_where_it_began() -> None:
    polls = begun().ongoing(3, ([2, 3, 4, 0, 1, 5], [4], [0, 1, 5])).ongoing(4).topic(4.1, [2, 3, 4])
    keys = ("started_at", "original_replicas", "target_replicas", "adding", "state", "completed_at")
    assert [
        (2000, BEFORE, AFTER, [3, 5], "cancelled", 3000),
        (3000, BEFORE, [2, 3, 4], [3, 4], "completed", 4000),
    ] == described(polls, *keys)


def test_one_after_another_between_two_polls_are_two() -> None:
    polls = begun().ongoing(3, ([1, 0, 2, 3, 5], [0, 1], [3, 5])).ongoing(4).topic(4.1, BEFORE)
    keys = ("original_replicas", "target_replicas", "state")
    assert [(BEFORE, AFTER, "completed"), (AFTER, BEFORE, "completed")] == described(polls, *keys)


def test_the_same_reassignment_again_is_another_row() -> None:
    once = begun().ongoing(3).topic(3.1, [2, 0, 1])
    assert [(2000, "cancelled"), (5000, "running")] == described(once.ongoing(4).ongoing(5, ON), "started_at", "state")


def test_a_topic_made_anew_takes_nothing_over() -> None:
    polls = Polls().ongoing(1).topic(1.1, [1, 2], topic_id="a").ongoing(2).topic(2.1, [3, 4], topic_id="b").ongoing(3)
    assert [] == described(polls)


def test_the_step_is_read_from_leader_and_isr() -> None:
    assert [("caught_up",)] == described(begun().topic(2.5, ON[0], [0, 1, 2, 3, 5], 1).ongoing(3, ON), "phase")
    assert [("leader_moved",)] == described(begun().topic(2.5, ON[0], [0, 1, 2, 3, 5], 2).ongoing(3, ON), "phase")
    assert [("isr_shrunk",)] == described(begun().topic(2.5, ON[0], [2, 3, 5], 2).ongoing(3, ON), "phase")


def test_bytes_are_those_of_the_added_replicas_against_the_leaders() -> None:
    polls = begun().topic(2.05, ON[0], BEFORE, 1).sizes(2.2, [0, 1, 2, 3, 5], b1=100, b0=100, b3=40)
    polls.ongoing(3, ON).sizes(3.2, [0, 1, 2, 3, 5], b1=100, b0=100, b3=60, b5=20)
    rows = reassignment_rows("kafka", polls.seen, [])
    assert [(40, 200, 0.2, None), (80, 200, 0.4, 40.0)] == [
        tuple(s[k] for k in ("bytes_done", "bytes_total", "progress", "bytes_per_second"))
        for s in rows["reassignment_samples"]
    ]
    assert [(80, 0.4, 40.0, 6200)] == described(polls, "bytes_done", "progress", "bytes_per_second", "eta_at")


def test_a_broker_that_does_not_answer_leaves_bytes_unknown() -> None:
    polls = begun().topic(2.05, ON[0], BEFORE, 1).sizes(2.2, [0, 1, 2, 3], b1=100, b3=40)
    assert [(None, 200, None)] == described(polls, "bytes_done", "bytes_total", "progress")


def test_without_sizes_there_are_samples_without_bytes() -> None:
    polls = begun().ongoing(3, ON).ongoing(4, ON)
    rows = reassignment_rows("kafka", polls.seen, [])
    assert [(2000, None), (3000, None), (4000, None)] == [
        (s["observed_at"], s["bytes_done"]) for s in rows["reassignment_samples"]
    ]
    assert [("running", None, None)] == described(polls, "state", "bytes_done", "eta_at")


def crawling(seconds: int, moved: int) -> Polls:
    polls = begun().topic(2.05, ON[0], BEFORE, 1)
    for second in range(2, seconds):
        polls.ongoing(second, ON).sizes(second + 0.2, [0, 1, 2, 3, 5], b1=100, b3=40 + moved * (second > 20), b5=0)
    return polls


def test_a_minute_without_a_byte_is_a_stall() -> None:
    keys = ("state", "stalled_since_at", "eta_at")
    assert [("stalled", 21200, None)] == described(crawling(90, 5), *keys)
    assert [("stalled", 2200, None)] == described(crawling(70, 0), *keys)
    assert [("running", None)] == described(crawling(60, 0), *keys[:2])


def test_a_refused_list_widens_the_bounds_and_says_nothing() -> None:
    polls = (
        Polls().ongoing(1).topic(1.1, BEFORE).failed(2).failed(3).ongoing(4, ON).failed(5).ongoing(6).topic(6.1, AFTER)
    )
    keys = ("started_at_earliest", "started_at", "completed_at_earliest", "completed_at")
    assert [(1000, 4000, 4000, 6000)] == described(polls, *keys)


def test_without_any_list_new_replicas_out_of_sync_are_a_hint() -> None:
    polls = Polls().topic(1, [1, 2]).topic(2, [1, 2, 3], [1, 2])
    assert [("running", None, "inferred")] == described(polls, "state", "target_replicas", "evidence")
    assert [("completed", [3, 2], "inferred")] == described(
        polls.topic(3, [3, 2]), "state", "target_replicas", "evidence"
    )
    shrunk = Polls().topic(1, [1, 2]).topic(2, [1, 2], [1])
    assert [] == described(shrunk), "under-replicated is not reassigned"


@pytest.mark.parametrize("seed", range(5))
def test_order_and_repetition_of_what_arrives_change_nothing(seed) -> None:
    polls = crawling(40, 5).ongoing(50, ([2, 3, 4, 0, 1, 5], [4], [0, 1, 5])).ongoing(60).topic(60.1, [2, 3, 4])
    chance = Random(seed)
    again = [*polls.seen, *chance.sample(polls.seen, 20)]
    chance.shuffle(again)
    assert reassignment_rows("kafka", polls.seen, []) == reassignment_rows("kafka", again, [])
