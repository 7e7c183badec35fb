"""Restarts are a deploy, scaling or a crash loop, by how often an instance goes and for how long."""

from __future__ import annotations

import pytest

from tests.gold.diagnosis.diagnosed_group import Group, diagnosed, later, marked
from tests.gold.histories import START


def test_instances_that_go_once_each_and_come_back_are_a_deploy() -> None:
    group = Group(members=4)
    for index in range(4):
        group.restarts(index, 100_000 + index * 60_000, 8_000)
    (row,) = later(group).values()
    assert (row["cause"], row["rebalances"], row["is_normal"]) == ("deploy", 8, True)
    assert row["evidence"] == "inferred"
    for printed in ("4 of 4 instances restarted, once each", "after 8 s", "one after another"):
        assert printed in row["explanation"], printed


def test_a_deploy_that_was_announced_is_observed_and_any_other_mark_only_told() -> None:
    group = Group(members=4)
    for index in range(4):
        group.restarts(index, 100_000 + index * 60_000, 8_000)
    row = later(group, [marked(40_000)])["deploy"]
    assert row["evidence"] == "observed"
    for printed in ("That was a rolling deploy", "before all 8 rebalances", "60.3 s after the mark “v2.31” (deploy)"):
        assert printed in row["explanation"], printed

    row = later(group, [marked(150_000, "kernel", "maintenance"), marked(-3_000_000)])["deploy"]
    assert row["evidence"] == "inferred"
    assert "before 6 of 8 rebalances" in row["explanation"]
    assert "after the mark “kernel” (maintenance)" in row["explanation"]
    assert "v2.31" not in row["explanation"], "long before, or after"


def test_what_goes_wrong_after_a_deploy_names_its_mark() -> None:
    group = Group()
    for at in range(4):
        group.polls_late(1, 300_000 + at * 312_000)
    row = later(group, [marked(280_000)])["poll_timeout"]
    assert "the first began 20.3 s after the mark “v2.31” (deploy)" in row["explanation"]


def test_deploys_in_quick_succession_are_not_a_crash_loop() -> None:
    group = Group(members=3)
    for turn in range(4):
        for index in range(3):
            group.restarts(index, 100_000 + turn * 200_000 + index * 60_000, 8_000)
    assert set(later(group)) == {"deploy"}


@pytest.mark.parametrize("is_steady", [True, False])
def test_a_deploy_of_a_group_with_nothing_to_consume_is_not_taken_for_late_polls(is_steady) -> None:
    """Silver infers late polls of members that left after not having committed for long."""
    group = Group(members=3)
    for index in range(3):
        at = 900_000 + index * 60_000 + (0 if is_steady else 900_000 * (index == 2))
        group.leaves(index, at, how="poll_timeout", trigger="poll_timeout")
        group.rows["group_events"][-1]["evidence"] = "inferred"
        group.returns(index, at + 8_000)
    assert set(later(group)) == {"deploy" if is_steady else "poll_timeout"}


def test_the_second_epoch_of_a_member_that_subscribes_by_pattern_is_a_follow_up() -> None:
    group = Group()
    group.returns(3, 3_600_000)
    group.rejoins(3_601_000, "subscription_changed")
    silver = group.silver()
    assert set(later(silver)) == {"scaling", "topic_changes"}
    for row in silver["generations"]:
        row["group_protocol"] = "consumer"
    assert set(later(silver)) == {"scaling", "follow_ups"}


def test_pods_replaced_by_new_ones_under_new_names_are_a_deploy() -> None:
    group = Group(members=2, client="consumer-{index}")
    for index in (0, 1):
        group.returns(index + 7, 3_600_000 + index * 60_000)
        group.leaves(index, 3_620_000 + index * 60_000)
    (row,) = later(group).values()
    assert (row["cause"], row["rebalances"]) == ("deploy", 4)
    assert "2 instances left and were replaced by new ones" in row["explanation"]


def test_a_process_that_joins_before_its_predecessor_has_left_replaces_it() -> None:
    group = Group(members=3)
    for at in range(3):
        group.returns(at + 3, 100_000 + at * 60_000)
        group.leaves(at, 102_000 + at * 60_000)
    silver = group.silver()
    for row in silver["generation_members"]:
        row["client_id"] = f"app-{int(row['client_id'][-1]) % 3}"
    (row,) = later(silver).values()
    assert (row["cause"], row["rebalances"], row["instances"]) == ("deploy", 6, ["app-0", "app-1", "app-2"])
    assert "3 instances left and were replaced by new ones" in row["explanation"]


def test_a_group_that_stops_as_a_whole_and_starts_again_is_deployed_all_at_once() -> None:
    group = Group(members=3)
    for index in range(3):
        group.leaves(index, 100_000 + index * 400)
    for index in range(3):
        group.returns(index, 130_000 + index * 400)
    (row,) = later(group).values()
    assert (row["cause"], row["rebalances"]) == ("deploy", 6)
    assert "stops everything first" in row["explanation"]


def test_a_member_that_comes_back_under_its_own_id_goes_each_time() -> None:
    """As KIP-848 clients do, which make their member ids themselves."""
    group = Group()
    group._born = lambda index: f"app-{index}|"
    for at in range(3):
        group.polls_late(1, 400_000 + at * 400_000)
    (row,) = later(group).values()
    assert (row["cause"], row["rebalances"], row["instances"]) == ("poll_timeout", 6, ["app-1"])


def test_instances_that_only_come_or_only_go_are_scaling() -> None:
    group = Group(members=2)
    group.returns(5, 3_600_000)
    group.returns(6, 3_660_000)
    group.leaves(5, 9_000_000)
    (row,) = later(group).values()
    assert (row["cause"], row["rebalances"], row["is_normal"]) == ("scaling", 3, True)


def test_an_instance_that_goes_and_comes_with_short_lives_is_in_a_crash_loop() -> None:
    group = Group()
    for at in range(5):
        group.restarts(1, 600_000 + at * 70_000, 20_000)
    (row,) = later(group).values()
    assert (row["cause"], row["rebalances"], row["instances"]) == ("crash_loop", 10, ["app-1"])
    for printed in ("app-1 (5 times)", "lived 50 s", "back 20 s later"):
        assert printed in row["explanation"], printed


def test_a_process_that_is_back_before_its_session_ended_died() -> None:
    group = Group(session_ms=45_000)
    for at in range(3):
        group.dies(1, 600_000 + at * 120_000)
        group.returns(1, 600_000 + at * 120_000 + 45_000)
    silver = group.silver()
    for event in silver["group_events"]:
        if event["kind"] == "joined" and event["event_at"] > START + 100_000:
            event["event_at"] -= 30_000
    assert set(later(silver)) == {"crash_loop"}


def test_one_that_goes_twice_is_not_in_a_loop_yet() -> None:
    group = Group()
    for at in range(2):
        group.restarts(1, 600_000 + at * 70_000, 20_000)
    assert "crash_loop" not in later(group)


def test_a_stop_of_the_whole_group_after_two_restarts_is_no_third_crash() -> None:
    group = Group()
    for at in range(2):
        group.restarts(1, 600_000 + at * 70_000, 20_000)
    for index in (0, 1, 2):
        group.leaves(index, 800_000 + index * 4_000)
    assert "crash_loop" not in later(group)


def test_a_lone_process_that_keeps_leaving_is_in_a_crash_loop_while_it_is_away() -> None:
    group = Group(members=1)
    for at in range(2):
        group.restarts(0, 600_000 + at * 70_000, 20_000)
    group.leaves(0, 740_000)
    assert "crash_loop" in later(group)


def with_returns(silver: dict, times: list[int]) -> dict:
    """A static member is replaced at these times, within the last generation, and its partition stops for 4 s each."""
    g = silver["generations"][-1]
    first = next(row for row in silver["generation_members"] if row["generation_id"] == g["generation_id"])
    for row in silver["generation_members"]:
        if row["member_id"] == first["member_id"]:
            row["group_instance_id"] = "static-0"
    member, stop = first["member_id"], silver["stalls"][-1]
    for number, at in enumerate(times):
        new = first | {"member_id": f"static-0-{number}", "valid_from_at": START + at}
        silver["generation_members"].append(new)
        silver["stalls"].append(
            stop
            | {"generation_id": g["generation_id"], "stopped_by_offset": 900_000 + number, "from_member_id": member}
            | {"cause": "static_restart", "stopped_ms": 4_000, "stopped_ms_min": 3_000, "stopped_ms_max": 5_000}
            | {"stopped_at_latest": START + at, "resumed_at_earliest": START + at + 4_000}
        )
        member = new["member_id"]
    return silver


def test_a_static_member_that_returns_again_and_again_without_a_rebalance_is_in_a_crash_loop() -> None:
    group = Group()
    group.rejoins(100_000, "metadata_changed")
    found = later(with_returns(group.silver(), [600_000, 700_000, 800_000, 900_000]))
    row = found["crash_loop"]
    assert (row["rebalances"], row["share"], row["verdict"]) == (0, 0.0, "client_application")
    assert (row["lost_resource_seconds"], row["instances"], row["evidence"]) == (16.0, ["static-0"], "inferred")
    assert "static-0 (4 times) came back without a rebalance" in row["explanation"]
    assert sum(each["share"] for each in found.values()) == 1


def test_one_return_of_a_static_member_is_a_deploy_though_the_group_did_not_rebalance_since() -> None:
    group = Group()
    group.restarts(1, 100_000, 4_000)
    silver = with_returns(group.silver(), [600_000])
    since = silver["generations"][-1]["joined_at"] - START + 1
    (row,) = diagnosed(silver, since=since).values()
    assert (row["cause"], row["rebalances"], row["verdict"]) == ("deploy", 0, "deploy_or_scaling")
    assert row["first_at"] == row["last_at"] == START + 600_000
