"""Members that poll late, pause or lose their session are distinguished, and what they have in common is named."""

from __future__ import annotations

import pytest

from tests.gold.diagnosis.diagnosed_group import Group, later


def test_a_poll_that_takes_too_long_is_named_with_its_limit_and_its_period() -> None:
    group = Group()
    for at in range(4):
        group.polls_late(1, 300_000 + at * 312_000)
    (row,) = later(group).values()
    assert (row["cause"], row["rebalances"], row["evidence"]) == ("poll_timeout", 8, "observed")
    assert row["instances"] == ["app-1"]
    assert not row["is_normal"]
    for printed in ("app-1 (4 times)", "max.poll.interval.ms of 5 min", "every 5 min 12 s", "reported it (4 times)"):
        assert printed in row["explanation"], printed


@pytest.mark.parametrize("is_logged", [True, False])
def test_stays_as_long_as_a_poll_may_take_are_inferred_to_end_by_one_though_the_client_says_nothing(is_logged) -> None:
    group = Group()
    group.polls_late(1, 500_000, printed=None)
    for at in range(4):
        group.polls_late(1, 500_000 + (at + 1) * 305_000, printed=None)
    row = later(group if is_logged else group.forget())["poll_timeout"]
    assert row["evidence"] == "inferred"
    assert "lasted exactly that long (4 times)" in row["explanation"]


def test_a_member_that_is_back_as_soon_as_it_was_dropped_paused() -> None:
    group = Group(session_ms=45_000)
    for at in range(3):
        group.naps(2, 100_000 + at * 120_000)
    (row,) = later(group).values()
    assert (row["cause"], row["rebalances"]) == ("session_expiry", 6)
    assert "a process that paused" in row["explanation"]


def test_a_static_member_whose_session_ends_as_long_after_a_poll_as_both_timeouts_take_polls_late() -> None:
    group = Group(session_ms=45_000)
    group.dies(1, 100_000)
    # Each return is PAUSED_MS after the removal.
    group.returns(1, 149_000)
    for at in range(3):
        group.dies(1, 449_000 + at * 349_000)
        group.returns(1, 498_000 + at * 349_000)
    silver = group.silver()
    assert set(later(silver)) == {"session_expiry"}
    for row in silver["generation_members"]:
        row["group_instance_id"] = row["client_id"]
    rows = later(silver)
    assert rows["poll_timeout"]["rebalances"] == 6
    assert "a late poll, looks the same" in rows["session_expiry"]["explanation"]


def test_a_short_session_is_pointed_out() -> None:
    group = Group(session_ms=6_000)
    group.naps(2, 100_000)
    assert "6 s is short" in later(group)["session_expiry"]["explanation"]
    group = Group(session_ms=45_000)
    group.naps(2, 100_000)
    assert "short" not in later(group)["session_expiry"]["explanation"]


def test_members_of_one_host_that_expire_together_are_a_matter_of_that_host() -> None:
    group = Group(members=4)
    for index in (0, 1):
        group.dies(index, 100_000 + index * 500)
    silver = group.silver()
    for row in silver["generation_members"]:
        row["client_host"] = "/10.0.0.7" if row["client_id"] in ("app-0", "app-1") else "/10.0.0.8"
    text = later(silver)["session_expiry"]["explanation"]
    assert "2 members on host /10.0.0.7 expired at once" in text


def test_a_whole_group_that_expires_at_once_points_at_the_coordinator() -> None:
    group = Group(members=3)
    for index in range(3):
        group.dies(index, 100_000 + index * 200)
    assert "All members expired at once" in later(group)["session_expiry"]["explanation"]
