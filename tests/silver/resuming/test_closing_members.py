"""A cooperative member that is closed while it joins: it leaves after the join, and stopped before it."""

from __future__ import annotations

from tests.silver.handmade import START, broker_line, consumer, generation, member_id, rows

COOPERATIVE = "cooperative-sticky"
CLOSED = 20_000
"""When b stopped what it kept; c joins meanwhile, and the join ends two seconds later."""


def stop_of_one(*lines, left: int):
    records = [
        generation(1, 1_000, [consumer("a", [0]), consumer("b", [1])], protocol=COOPERATIVE),
        generation(
            2,
            CLOSED + 2_000,
            [consumer("a", [0], owned=[0]), consumer("b", [1], owned=[1]), consumer("c", [])],
            protocol=COOPERATIVE,
        ),
        generation(3, left, [consumer("a", [0], owned=[0]), consumer("c", [1])], protocol=COOPERATIVE),
    ]
    steps = [*range(2_000, CLOSED, 1_000), CLOSED + 2_010]
    commits = [(at, 1, n * 10) for n, at in enumerate(steps)] + [(left + 1_000, 1, 200)]
    found = rows(records, lines, commits)
    [stop] = [row for row in found["stalls"] if row["index"] == 1 and row["from_member_id"] == member_id("b")]
    return stop


def test_what_it_kept_may_have_stopped_before_the_join_ended():
    left = f"Member {member_id('b')} has left group through explicit `LeaveGroup` request; client reason: not provided"
    stop = stop_of_one(broker_line(CLOSED + 2_020, f"[Group orders] {left}"), left=CLOSED + 4_000)
    assert stop["stopped_at_earliest"] <= START + CLOSED <= stop["stopped_at_latest"]


def test_without_the_line_it_may_have_left_a_heartbeat_before_the_next_generation():
    stop = stop_of_one(left=CLOSED + 2_000 + 5_000)
    assert stop["stopped_at_earliest"] <= START + CLOSED <= stop["stopped_at_latest"]


def test_a_member_that_stayed_for_longer_worked_after_the_join():
    stop = stop_of_one(left=CLOSED + 2_000 + 8_000)
    assert stop["stopped_at_earliest"] >= START + CLOSED + 2_000
