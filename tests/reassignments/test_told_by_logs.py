"""What controllers' and brokers' lines show, alone and together with polls."""

from __future__ import annotations

from pipelines.reassignments.rows import reassignment_rows
from tests.reassignments.described import Polls, line

ON = {"replicas": [2, 3, 5, 0, 1], "adding": [3, 5], "removing": [0, 1]}
DONE = {"replicas": [2, 3, 5], "adding": [], "removing": [], "isr": [2, 3, 5], "leader": 2}
CREATED = line(1, "partition_created", replicas=[1, 0, 2], adding=[], removing=[], isr=[1, 0, 2], partition_epoch=0)
KEYS = ("started_at", "original_replicas", "target_replicas", "state", "completed_at", "evidence")


def described(lines: list, polls: Polls | None = None, keys: tuple[str, ...] = KEYS) -> list:
    rows = reassignment_rows("kafka", polls.seen if polls else [], lines)["reassignments"]
    return [tuple(row[key] for key in keys) for row in rows]


def test_two_lines_are_start_and_end() -> None:
    assert [(10_000, [1, 0, 2], [2, 3, 5], "completed", 20_000, "observed")] == described(
        [CREATED, line(10, **ON), line(20, **DONE)]
    )


def test_a_null_list_in_a_change_record_is_the_one_before() -> None:
    """Kafka prints this when one more replica is complete: replicas and removing did not change."""
    lines = [line(10, replicas=[5, 0, 1], adding=[1]), line(20, adding=[], isr=[0, 1, 5])]
    assert [(10_000, [5, 0], [5, 0, 1], "completed", 20_000, "observed")] == described(lines)


def test_the_line_of_4_3_tells_what_was_before() -> None:
    assert [([1, 0, 2],)] == described([line(10, **ON, replicas_before=[1, 0, 2])], keys=("original_replicas",))


def test_a_cancellation_goes_back_in_another_order() -> None:
    back = line(20, replicas=[2, 0, 1], adding=[], removing=[])
    assert [("cancelled", 20_000)] == described([CREATED, line(10, **ON), back], keys=("state", "completed_at"))


def test_an_order_is_known_from_the_brokers_lines_alone() -> None:
    states = [
        line(at, "replica_state", replicas=[2, 0, 1], adding=[], removing=[], partition_epoch=1, broker_id=b)
        for at, b in ((30.08, 0), (30.05, 2), (30.06, 1))
    ]
    assert [(30_050, [1, 0, 2], [2, 0, 1], "completed", 30_050, "observed")] == described([CREATED, *states])


def test_a_controller_that_restarts_and_prints_old_changes_again_adds_nothing() -> None:
    lines = [CREATED, line(10, **ON, partition_epoch=1), line(20, **DONE, partition_epoch=2)]
    again = [each | {"event_at": 50_000 + at, "line_no": 9 + at} for at, each in enumerate(lines)]
    assert described(lines) == described([*lines, *again])


def test_a_brokers_late_line_of_a_past_state_adds_nothing() -> None:
    late = line(20.05, "replica_state", **ON, partition_epoch=1, broker_id=3)
    assert 1 == len(described([CREATED, line(10, **ON), line(20, **DONE), late]))


def test_a_poll_answered_from_a_moment_ago_does_not_contradict_the_controller() -> None:
    polls = Polls().ongoing(9).topic(9.1, [1, 0, 2]).ongoing(10.01).topic(10.02, [1, 0, 2])
    polls.ongoing(11, (ON["replicas"], ON["adding"], ON["removing"])).ongoing(20.01, (ON["replicas"], [3, 5], [0, 1]))
    polls.ongoing(23).topic(23.1, [2, 3, 5])
    assert [(10_000, [1, 0, 2], [2, 3, 5], "completed", 20_000, "observed")] == described(
        [line(10, **ON), line(20, **DONE)], polls
    )


def test_the_log_gives_the_start_and_the_poll_the_end_where_the_log_stops() -> None:
    polls = Polls().ongoing(9).topic(9.1, [1, 0, 2]).ongoing(15, (ON["replicas"], [3, 5], [0, 1]))
    polls.ongoing(30).topic(30.1, [2, 3, 5])
    assert [(10_000, [1, 0, 2], [2, 3, 5], "completed", 30_000, "bounded")] == described([line(10, **ON)], polls)


def test_a_leaders_line_names_no_replicas_and_begins_nothing() -> None:
    printed = line(5, "replica_state", adding=[3], removing=[], isr=[1, 0, 2], broker_id=1)
    assert [] == described([printed])


def test_an_epoch_tells_a_change_right_after_another_from_a_late_line() -> None:
    created = CREATED | {"event_at": 29_500}
    order = line(30, "replica_state", replicas=[2, 0, 1], adding=[], removing=[], partition_epoch=1, broker_id=2)
    assert [(30_000, [2, 0, 1])] == described([created, order], keys=("started_at", "target_replicas"))
