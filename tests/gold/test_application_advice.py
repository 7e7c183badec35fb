"""Advice about the application: closing its consumer, a callback that waits for the poll interval, a failing instance."""

from __future__ import annotations

import pytest

from schemas.client_libraries import FACTS
from schemas.client_settings import SPELLINGS
from schemas.states import ClientLibrary
from tests.gold.histories import EagerGroup
from tests.gold.test_advice import gold

SESSION_MS = 45_000


def advice(group: EagerGroup) -> dict[str, dict]:
    return {row["action"]: row for row in gold(group.silver())["advice"]}


def deployed(how: str, *, rounds: int = 1, library: str | None = None) -> EagerGroup:
    """A rolling deploy of four members; each is back twenty seconds after the coordinator removed it."""
    group = EagerGroup(members=4, partitions=40, session_ms=SESSION_MS)
    silent = SESSION_MS if how == "session_expired" else 0
    for ref in range(4 * rounds):
        at = 100_000 + ref * 120_000
        group.leaves(ref % 4, at, how=how, silent_ms=silent, trigger="session_expired" if silent else "member_left")
        group.returns(ref % 4, at + silent + 20_000)
    for row in group.rows["generation_members"]:
        row["client_library"] = library
    return group


def test_a_deploy_whose_processes_do_not_close_their_consumers_pays_for_each_detection() -> None:
    found = advice(deployed("session_expired"))["close_on_shutdown"]
    assert found["is_recommended"]
    # Four times ten partitions stopped for the whole session; they stop for a join phase instead.
    assert found["saving"] == pytest.approx(4 * 10 * SESSION_MS / 1000, rel=0.05)
    assert found["saving_low"] <= 4 * 10 * SESSION_MS / 1000 <= found["saving_high"]
    assert "4 of 4 departures in deploys ended with an expired session" in found["explanation"]
    assert found["settings"].keys() >= {"java", "spring", "sarama", "kubernetes"}


def test_a_deploy_that_leaves_is_not_advised_to() -> None:
    assert "close_on_shutdown" not in advice(deployed("left"))


def test_crashes_of_one_instance_are_not_a_deploy() -> None:
    group = EagerGroup(session_ms=10_000)
    for at in range(4):
        group.leaves(1, 50_000 + at * 50_000, how="session_expired", silent_ms=10_000, trigger="session_expired")
        group.returns(1, 75_000 + at * 50_000)
    rows = advice(group)
    assert "close_on_shutdown" not in rows
    assert "its last log lines before each failure, the exit code" in rows["fix_member"]["explanation"]
    assert "host" in rows["fix_member"]["explanation"]


def test_a_static_member_does_not_leave_when_it_is_closed() -> None:
    group = deployed("session_expired")
    for row in group.rows["generation_members"]:
        row["group_instance_id"] = row["client_id"]
    assert "close_on_shutdown" not in advice(group)


@pytest.mark.parametrize("library", [each for each in FACTS if each != ClientLibrary.CONNECT])
def test_each_library_that_leaves_has_its_own_words_for_closing(library) -> None:
    found = advice(deployed("session_expired", library=library))["close_on_shutdown"]
    mine = {place for place, (of, spelling) in SPELLINGS.items() if of == library and spelling.close}
    assert found["settings"].keys() - {"kubernetes"} == mine
    assert bool(mine) == FACTS[library].leaves_on_close == found["is_recommended"]


def blocking(interval_ms: int, waited_ms: int) -> EagerGroup:
    """Each rebalance waits `waited_ms` for the callback of one member, whose poll interval is `interval_ms`."""
    group = EagerGroup(members=3, partitions=12, callback_ms=waited_ms)
    for at, index in enumerate((0, 1, 0)):
        group.restarts(index, 500_000 + at * 2_000_000, 1_000_000)
    for row in group.rows["generation_members"]:
        row["rebalance_timeout_ms"] = interval_ms
    for row in group.rows["generations"][1:]:
        row["slowest_member_id"] = next(m for m in group.up.values() if m.startswith("app-2"))
        row["slowest_waited_ms"] = waited_ms
    return group


def test_the_poll_interval_is_not_to_be_raised_where_a_callback_waits_for_it() -> None:
    found = advice(blocking(300_000, 299_000))["raise_max_poll_interval"]
    assert not found["is_recommended"]
    assert found["saving"] < 0
    assert "Do not raise the interval" in found["explanation"]
    assert "up to 299,000 ms, just less than its max.poll.interval.ms of 300,000 ms" in found["explanation"]
    assert found["preconditions"][0].startswith("missing: a rebalance callback")
    assert found["settings"] == {}


def test_a_wait_that_has_nothing_to_do_with_the_interval_is_no_reason_against_it() -> None:
    assert "raise_max_poll_interval" not in advice(blocking(300_000, 20_000))
    group = EagerGroup()
    for at in range(3):
        group.leaves(1, 500_000 + at * 1_000_000, how="poll_timeout", silent_ms=300_000)
        group.returns(1, 900_000 + at * 1_000_000)
    found = advice(group)["raise_max_poll_interval"]
    assert "Do not raise" not in found["explanation"]
    assert not any(text.startswith("missing: a rebalance callback") for text in found["preconditions"])


def test_a_longer_poll_interval_is_longer_than_the_one_in_force() -> None:
    """The last commits of a member may come long after its last poll, as librdkafka's do."""
    group = EagerGroup(members=4)
    for at in range(3):
        group.leaves(1, 500_000 + at * 1_000_000, how="poll_timeout", silent_ms=2_000, trigger="poll_timeout")
        group.returns(1, 512_000 + at * 1_000_000)
    found = advice(group)["raise_max_poll_interval"]
    assert "max.poll.interval.ms=480000" in found["settings"]["java"]
