"""A member that had nothing to commit does not count as blocked, and its silence is no loss."""

from __future__ import annotations

from typing import Any

import pytest

from tests.silver.handmade import START, Commit, Record, broker_line, consumer, generation, member_id, rows

SILENT, LEFT, JOINED = 6_000, 70_000, 72_000
"""Milliseconds after START: the last commits, A's LeaveGroup, the end of the join phase without A."""


def at_work(until: int) -> list[Commit]:
    """A has partition 0, B has partition 1; both commit progress every second."""
    return [(at, partition, at) for at in range(1_000, until + 1, 1_000) for partition in (0, 1)]


def lines(reason: str = "not provided") -> list[dict[str, Any]]:
    departed = (
        f"[Group orders] Member {member_id('a')} has left group through explicit `LeaveGroup` request; "
        f"client reason: {reason}"
    )
    preparing = (
        "Preparing to rebalance group orders in state PreparingRebalance with old generation 1 (reason: explicit "
        f"`LeaveGroup` request for ({member_id('a')}) members.)."
    )
    return [broker_line(LEFT, preparing), broker_line(LEFT, departed)]


def departs(
    *,
    commits: list[Commit],
    client_id: str = "a",
    reason: str = "not provided",
    back_at: int = 90_000,
    is_logged: bool = True,
) -> Any:
    """A leaves after a silence and comes back as C; returns the generation without A and A's stall."""
    first: list[Record] = [consumer("a", [0]), consumer("b", [1])]
    for each in first:
        each["subscription"] |= {"version": 0 if "aiokafka" in client_id else 1, "userDataLayout": "empty"}
        each["rebalanceTimeout"] = 50_000  # no library's default
        each["clientId"] = client_id if each is first[0] else each["clientId"]
    records = [
        generation(1, 0, first),
        generation(2, JOINED, [consumer("b", [0, 1])]),
        generation(3, back_at, [consumer("b", [1]), consumer("c", [0])]),
    ]
    found = rows(records, lines(reason) if is_logged else [], commits)
    (stall,) = (s for s in found["stalls"] if s["generation_id"] == 2 and s["index"] == 0)
    return next(g for g in found["generations"] if g["generation_id"] == 2), stall


def test_after_a_silence_in_which_nothing_came_the_member_stopped_when_it_left() -> None:
    made, stall = departs(commits=at_work(SILENT))
    assert "member_left" == made["trigger"]
    assert ("inferred", 70_000) == (stall["evidence"], stall["stopped_at_latest"] - START)
    assert JOINED + 5 - LEFT == stall["stopped_ms"]
    assert JOINED + 5 - SILENT <= stall["stopped_ms_max"], "the bounds still allow for the worst"


def test_records_that_waited_for_the_next_owner_tell_that_it_was_blocked() -> None:
    waited = [*at_work(SILENT), *((at, 1, at) for at in range(7_000, 71_000, 1_000)), (73_000, 0, 60_000)]
    made, stall = departs(commits=waited)
    assert ("poll_timeout", "inferred") == (made["trigger"], made["trigger_evidence"])
    assert ("member_lost", True) == (stall["cause"], stall["stopped_ms"] > 60_000)


@pytest.mark.parametrize("back_at", [74_000, 90_000])
def test_a_next_owner_without_the_time_to_commit_leaves_it_to_the_others(back_at) -> None:
    quiet, _ = departs(commits=at_work(SILENT), back_at=back_at)
    assert "member_left" == quiet["trigger"]
    others = [*at_work(SILENT), *((at, 1, at) for at in range(7_000, 71_000, 1_000))]
    busy, _ = departs(commits=others, back_at=back_at)
    assert {74_000: "poll_timeout", 90_000: "member_left"}[back_at] == busy["trigger"]


@pytest.mark.parametrize("reason", ["client leaving group per normal operation", "the consumer is being closed"])
def test_a_stated_reason_wins(reason) -> None:
    waited = [*at_work(SILENT), (73_000, 0, 60_000)]
    made, stall = departs(commits=waited, reason=reason)
    assert "member_left" == made["trigger"]
    assert "eager_barrier" == stall["cause"]


@pytest.mark.parametrize("client_id", ["sarama", "kgo"])
def test_a_library_without_a_poll_timeout_has_none(client_id) -> None:
    made, _ = departs(commits=[*at_work(SILENT), (73_000, 0, 60_000)], client_id=client_id)
    assert "member_left" == made["trigger"]


@pytest.mark.parametrize(("progress", "trigger"), [(1, "poll_timeout"), (0, "member_left")])
def test_a_next_owner_that_first_repeats_the_offset_it_was_given_shows_later_what_waited(progress, trigger) -> None:
    background = [(at, 0, SILENT) for at in range(7_000, 70_000, 1_000)]
    after = [(72_050, 0, SILENT), (73_050, 0, SILENT + progress)]
    made, _ = departs(commits=[*at_work(SILENT), *background, *after], client_id="aiokafka-0.14.0", back_at=75_000)
    assert trigger == made["trigger"]


@pytest.mark.parametrize("is_logged", [True, False])
@pytest.mark.parametrize(("waiting", "trigger"), [(True, "poll_timeout"), (False, "member_left")])
def test_aiokafka_is_blocked_where_its_commits_in_the_background_make_no_progress(waiting, trigger, is_logged) -> None:
    background = [(at, 0, SILENT) for at in range(7_000, 70_000, 1_000)]
    after = [(73_000, 0, 60_000)] if waiting else []
    made, stall = departs(
        commits=[*at_work(SILENT), *background, *after], client_id="aiokafka-0.14.0", is_logged=is_logged
    )
    assert (trigger, "inferred" if waiting or not is_logged else "observed") == (
        made["trigger"],
        made["trigger_evidence"],
    )
    assert 1_000 < stall["stopped_ms"] < 5_000, "it had the partition until it left"
