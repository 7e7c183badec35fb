"""Members that were expelled one session after their coordinator moved, while others found the new one."""

from __future__ import annotations

import pytest

from schemas.silver import GROUP_EVENTS
from testing.alerts.rows import MINUTE, NOW
from tests.gold.patterns.clusters import SECOND, ClusterRows

PATTERN = "coordinator_not_found"
LOADED = NOW - 30 * MINUTE


@pytest.fixture
def described(tmp_path) -> ClusterRows:
    described = ClusterRows(tmp_path)
    described.group("orders", 7)
    event(described, LOADED, "coordinator_moved")
    return described


def event(described: ClusterRows, at: int, kind: str, index: int | None = None, **values) -> None:
    who = (
        {"member_id": ""}
        if index is None
        else {
            "member_id": f"orders-{index}-id",
            "client_id": f"orders-{index}",
            "client_host": f"/10.0.0.{index}",
        }
    )
    fields = {"group_id": "orders", "event_at": at, "kind": kind, "incarnation": 0, "evidence": "observed"}
    described.add(GROUP_EVENTS, **fields | who | values)


def test_a_member_that_never_returned_is_named(described) -> None:
    event(described, LOADED + 45 * SECOND, "session_expired", 2)
    (row,) = described.found(PATTERN)
    assert ("orders", LOADED, None, 1) == (row["subject"], row["started_at"], row["ended_at"], row["times"])
    assert (["orders-2", "/10.0.0.2"], "inferred", ["log", "topic"]) == (
        row["instances"], row["evidence"], row["sources"],
    )  # fmt: skip
    assert "1 member (orders-2) sent nothing to it and was expelled 45 s later" in row["explanation"]


def test_it_ends_when_the_member_is_back(described) -> None:
    event(described, LOADED + 45 * SECOND, "session_expired", 2)
    event(described, LOADED + 12 * MINUTE, "joined", 2, member_id="another-id")
    (row,) = described.found(PATTERN)
    assert LOADED + 12 * MINUTE == row["ended_at"]


def test_a_member_that_rejoins_at_once_found_the_coordinator(described) -> None:
    event(described, LOADED + 45 * SECOND, "session_expired", 2)
    event(described, LOADED + 46 * SECOND, "joined", 2, member_id="another-id")
    assert [] == described.found(PATTERN)


def test_a_client_that_came_back_before_its_old_id_was_expelled_found_the_coordinator(described) -> None:
    event(described, LOADED + SECOND, "joined", 2, member_id="another-id")
    event(described, LOADED + 45 * SECOND, "session_expired", 2)
    assert [] == described.found(PATTERN)


@pytest.mark.parametrize("after", [20 * SECOND, 70 * SECOND, 10 * MINUTE])
def test_a_member_that_is_expelled_at_another_time_was_there_after_the_move(described, after) -> None:
    event(described, LOADED + after, "session_expired", 2)
    assert [] == described.found(PATTERN)


def test_a_whole_group_that_is_gone_was_stopped(described) -> None:
    for index in range(3):
        event(described, LOADED + 45 * SECOND, "session_expired", index)
    assert [] == described.found(PATTERN)


def test_a_healthy_failover_is_none(described) -> None:
    event(described, LOADED + 2 * SECOND, "joined", 1)
    assert [] == described.found(PATTERN)
