"""Slow members, leaders, topics, the coordinator and triggers as causes, and what no record shows."""

from __future__ import annotations

import pytest

from pipelines.gold.diagnosis.causes import cause_of, context
from pipelines.gold.diagnosis.explanations import SENTENCES
from schemas.states import NORMAL_CAUSES, DiagnosisCause
from tests.gold.diagnosis.diagnosed_group import Group, later, slow


def test_a_member_that_everybody_waits_for_again_and_again_is_named() -> None:
    group = Group(members=4)
    for index in (0, 2, 3):
        group.leaves(index, 100_000 + index * 60_000)
        slow(group, 1, 2_400)
        group.returns(index, 110_000 + index * 60_000)
        slow(group, 1, 2_600)
    (row,) = later(group).values()
    assert (row["cause"], row["rebalances"], row["instances"]) == ("slow_joiner", 6, ["app-1"])
    for printed in ("2.5 s (median)", "2.6 s at most", "deploy (6 times)"):
        assert printed in row["explanation"], printed


def test_being_last_by_chance_is_not_slow() -> None:
    group = Group(members=4)
    for index in (0, 2):
        group.leaves(index, 100_000 + index * 60_000)
        slow(group, 1, 2_400)
        group.returns(index, 110_000 + index * 60_000)
        slow(group, 3, 2_600)
    assert set(later(group)) == {"deploy"}


def test_waits_that_heartbeats_explain_are_not_slow_though_the_same_member_is_often_last() -> None:
    """The recorded case: a member of kafkajs was last by 1.4 to 1.6 s in 4 of 8 rebalances."""
    group = Group(members=6)
    for index, waited in zip((0, 2, 3, 4), (1_420, 1_590, 1_590, 1_530), strict=True):
        group.restarts(index, 100_000 + index * 60_000, 10_000)
        slow(group, 1, waited)
    assert set(later(group)) == {"deploy"}


def test_waits_of_most_of_a_heartbeat_interval_each_time_are_slow() -> None:
    group = Group(members=6)
    for index in (0, 2, 3, 4):
        group.restarts(index, 100_000 + index * 60_000, 10_000)
        slow(group, 1, 2_500)
    rows = later(group)
    assert (rows["slow_joiner"]["rebalances"], rows["slow_joiner"]["instances"]) == (4, ["app-1"])


def test_what_began_a_rebalance_that_one_member_makes_long_is_kept() -> None:
    group = Group(members=4)
    group.leaves(0, 100_000)
    slow(group, 1, 24_000)
    silver = group.silver()
    found = cause_of(silver["generations"][-1], context(silver))
    assert (found.cause, found.set_off_by, found.set_off_by in NORMAL_CAUSES) == ("slow_joiner", "scaling", True)


def test_a_leader_that_joins_again_though_nothing_changed_flaps() -> None:
    group = Group()
    for at in range(4):
        group.rejoins(100_000 + at * 300_000, "metadata_changed", client_reason="cached metadata has changed")
        group.rows["generations"][-1]["trigger_member_id"] = group.up[0]
    (row,) = later(group).values()
    assert (row["cause"], row["rebalances"], row["evidence"]) == ("leader_flapping", 4, "observed")
    for printed in ("app-0", "every 5 min", "metadata.max.age.ms", "cached metadata has changed"):
        assert printed in row["explanation"], printed


@pytest.mark.parametrize("is_logged", [True, False])
def test_partitions_that_were_added_are_changes_of_topics(is_logged) -> None:
    group = Group()
    group.partitions = 24
    group.rejoins(100_000, "metadata_changed", client_reason="cached metadata has changed")
    (row,) = later(group if is_logged else group.forget()).values()
    assert row["cause"] == "topic_changes"
    assert row["evidence"] == ("observed" if is_logged else "inferred")


def test_follow_ups_are_normal_up_to_two_in_a_row() -> None:
    group = Group()
    for at in range(2):
        group.rejoins(100_000 + at * 3_000, "cooperative_followup")
    assert later(group)["follow_ups"]["is_normal"]
    group.rejoins(106_000, "cooperative_followup")
    row = later(group)["follow_ups"]
    assert not row["is_normal"]
    assert "at most 3 in a row" in row["explanation"]


def test_rebalances_right_after_the_coordinator_moved_are_its_trouble() -> None:
    group = Group(session_ms=10_000)
    group.moves(100_000)
    group.dies(1, 101_000)
    group.returns(1, 112_000)
    group.rejoins(125_000, "leader_rejoined")
    (row,) = later(group).values()
    assert (row["cause"], row["rebalances"], row["evidence"]) == ("coordinator", 3, "inferred")
    assert "moved (once)" in row["explanation"]


def test_an_assignment_that_could_not_be_stored_is_the_coordinators_trouble() -> None:
    group = Group()
    group.rejoins(100_000, "assignment_failed")
    assert set(later(group)) == {"coordinator"}


@pytest.mark.parametrize(
    ("trigger", "cause"),
    [
        ("connect_delay_expired", "connect_delay"),
        ("probing", "probing"),
        ("upgrade", "mixed_protocols"),
        ("downgrade", "mixed_protocols"),
        ("subscription_changed", "topic_changes"),
        ("enforced", "unknown"),
    ],
)
def test_what_a_trigger_says_by_itself_stands(trigger, cause) -> None:
    group = Group()
    group.rejoins(100_000, trigger)
    assert set(later(group)) == {cause}


def test_an_assignor_that_goes_back_and_forth_is_mixed() -> None:
    group = Group()
    for at, assignor in enumerate(("range", "sticky", "range", "sticky")):
        group.rejoins(100_000 + at * 60_000, "leader_rejoined", assignor=assignor)
    row = later(group)["mixed_protocols"]
    assert row["rebalances"] == 3
    assert "sticky and range" in row["explanation"]


def test_what_the_topic_alone_does_not_tell_is_unknown_and_what_is_excluded_is_shown() -> None:
    group = Group()
    for at in range(4):
        group.restarts(1, 600_000 + at * 70_000, 20_000)
    row = later(group.forget())["unknown"]
    assert (row["rebalances"], row["instances"]) == (8, ["app-1"])
    assert "not recorded" in row["explanation"]
    assert "ship-logs" in row["explanation"]


def test_every_cause_can_be_explained() -> None:
    assert set(DiagnosisCause) == set(SENTENCES)
