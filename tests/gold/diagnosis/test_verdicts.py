"""Each rebalance is blamed on what made it: the broker, the application, a deploy, the configuration, or nothing known."""

from __future__ import annotations

import pytest

from pipelines.gold.diagnosis.verdict_rows import verdict_rows
from pipelines.gold.diagnosis.verdicts import VERDICTS, Judgment, judgment, sums
from schemas.states import DiagnosisCause, Verdict
from tests.gold.diagnosis.diagnosed_group import Group, marked, slow
from tests.gold.histories import START
from tests.silver.handmade import rows as silver_of_records
from tests.silver.resuming.test_failover import ALONE, LOST, TWO

END = 2**45


def judged(group: Group | dict, since: int = 30_000, marks=()) -> Judgment:
    silver = group.silver() if isinstance(group, Group) else group
    return judgment(silver, START + since, marks)


def verdicts(group: Group | dict, since: int = 30_000, marks=()) -> list[str]:
    return [j.verdict.value for j in judged(group, since, marks).rebalances]


def blamed(group: Group) -> list[dict]:
    """Rows of `verdicts`."""
    silver = group.silver()
    return verdict_rows(judgment(silver, START + 30_000), silver["group_events"], 0, END)


def with_commits(silver: dict, silent_ms: int) -> dict:
    """The stops of departed members begin `silent_ms` before the next generation; the others worked until then."""
    gone = {member for g in silver["generations"] for member in g["left_member_ids"] or ()}
    joined = {g["generation_id"]: g["joined_at"] for g in silver["generations"]}
    for stall in silver["stalls"]:
        at = joined[stall["generation_id"]] - (silent_ms if stall["from_member_id"] in gone else 100)
        if stall["resumed_at_earliest"] is not None:
            stall |= {"last_commit_at": at, "stopped_ms": stall["resumed_at_earliest"] - at}
    return silver


def test_every_cause_has_a_verdict() -> None:
    assert set(DiagnosisCause) == set(VERDICTS)


def test_a_poll_that_comes_too_late_is_the_applications() -> None:
    group = Group()
    group.polls_late(1, 100_000)
    assert verdicts(group) == ["client_application"] * 2
    row = blamed(group)[0]
    assert "did not poll within its max.poll.interval.ms" in row["reason"]
    assert (row["instances"], row["hosts"]) == (["app-1"], ["/10.0.0.1"])
    assert row["evidence"] == "observed"
    assert any("poll timeout" in each for each in row["proof"])
    assert "__consumer_offsets-3" in row["proof"][0]


def test_a_session_that_expires_once_is_the_applications_and_a_short_one_that_keeps_expiring_is_a_setting() -> None:
    once, often = Group(session_ms=10_000), Group(session_ms=10_000)
    once.naps(1, 100_000)
    for at in (100_000, 700_000, 1_900_000):
        often.naps(1, at)
    assert set(verdicts(once)) == {"client_application"}
    assert set(verdicts(often)) == {"configuration"}
    assert "session timeout is shorter" in blamed(often)[0]["reason"]


def test_pauses_longer_than_a_usual_session_stay_the_applications() -> None:
    group = Group(session_ms=45_000)
    for at in (100_000, 700_000, 1_900_000):
        group.naps(1, at)
    assert set(verdicts(group)) == {"client_application"}


def test_restarts_are_a_deploy_and_a_mark_makes_that_observed() -> None:
    group = Group()
    for index in range(3):
        group.restarts(index, 100_000 + index * 20_000, 4_000)
    assert set(verdicts(group)) == {"deploy_or_scaling"}
    assert {j.evidence for j in judged(group).rebalances} == {"inferred"}
    assert {j.evidence for j in judged(group, marks=[marked(95_000)]).rebalances} == {"observed"}


def test_a_slow_member_is_blamed_and_not_the_deploy_that_it_delays() -> None:
    group = Group()
    group.restarts(1, 100_000, 4_000)
    slow(group, 2, 8_000)
    (_, last) = judged(group).rebalances
    assert (last.verdict, last.found.set_off_by) == (Verdict.CLIENT_APPLICATION, DiagnosisCause.DEPLOY)
    assert blamed(group)[1]["instances"] == ["app-2"]


def test_a_member_that_others_waited_for_in_vain_is_blamed_and_not_the_deploy_before() -> None:
    group = Group(notice_ms=9_000)
    group.leaves(1, 100_000)
    g, removed = group.rows["generations"][-1], group.up.pop(2)
    group.rows["group_events"].append(
        {"event_at": START + 108_500, "kind": "poll_timeout", "member_id": removed, "evidence": "observed"}
        | {"incarnation": 0, "generation_id": g["generation_id"], "detail": None}
    )
    g["left_member_ids"].append(removed)
    group.rows["generation_members"] = [
        row
        for row in group.rows["generation_members"]
        if (row["generation_id"], row["member_id"]) != (g["generation_id"], removed)
    ]
    (one,) = judged(group).rebalances
    assert (one.verdict, one.found.cause) == (Verdict.CLIENT_APPLICATION, DiagnosisCause.POLL_TIMEOUT)
    assert "the others waited for it" in blamed(group)[0]["reason"]


@pytest.mark.parametrize(
    ("trigger", "verdict"),
    [
        ("assignment_failed", "broker"),
        ("subscription_changed", "configuration"),
        ("upgrade", "configuration"),
        ("probing", "configuration"),
        ("enforced", "unknown"),
    ],
)
def test_a_trigger_that_says_the_cause_says_the_verdict(trigger, verdict) -> None:
    group = Group()
    group.polls_late(1, 50_000)
    group.rejoins(100_000, trigger)
    assert verdicts(group)[-1] == verdict


@pytest.mark.parametrize("trigger", ["cooperative_followup", "connect_delay_expired"])
def test_what_finishes_a_rebalance_has_its_verdict(trigger) -> None:
    group = Group()
    group.polls_late(1, 100_000)
    group.rejoins(110_000, trigger)
    assert verdicts(group)[-1] == "client_application"
    assert "finishes the rebalance to generation" in blamed(group)[-1]["reason"]


def test_probing_after_a_deploy_is_part_of_it() -> None:
    group = Group()
    group.restarts(1, 100_000, 4_000)
    group.rejoins(700_000, "probing")
    assert verdicts(group)[-1] == "deploy_or_scaling"


# --- The broker ------------------------------------------------------------------------------------------------------


def test_a_rebalance_that_a_failover_interrupted_is_the_brokers_whoever_joined() -> None:
    """The recorded case: a member joins, the coordinator dies, and the member joins again at the next one."""
    silver = silver_of_records([ALONE, TWO], LOST)
    (first, last) = judgment(silver).rebalances
    assert first.verdict == Verdict.DEPLOY_OR_SCALING
    assert (last.row["trigger"], last.verdict, last.evidence) == ("member_joined", "broker", "observed")
    row = verdict_rows(judgment(silver), silver["group_events"], 0, END)[-1]
    assert row["reason"].startswith("The group's coordinator moved during the rebalance (broker 2 loaded the group")
    assert any("coordinator moved" in each for each in row["proof"])
    without_stalls = judgment({**silver, "stalls": []}).rebalances[-1]
    assert without_stalls.verdict == Verdict.BROKER, "storms have the same cause if stalls are not at hand"


def test_what_follows_a_move_of_the_coordinator_is_the_brokers() -> None:
    group = Group(session_ms=10_000)
    group.moves(100_000)
    group.dies(1, 101_000)
    group.returns(1, 112_000)
    group.rejoins(125_000, "leader_rejoined")
    assert set(verdicts(group)) == {"broker"}


@pytest.mark.parametrize(("session_ms", "away_ms"), [(10_000, 600_000), (300_000, 1_000)])
def test_a_member_that_a_move_of_the_coordinator_cost_its_place_names_the_move(session_ms, away_ms) -> None:
    group = Group(session_ms=session_ms)
    group.moves(100_000)
    group.dies(1, 101_000)
    group.returns(1, 101_000 + session_ms + away_ms)
    for row in blamed(group):
        assert (row["verdict"], row["evidence"]) == ("broker", "inferred")
        assert row["reason"].startswith("The group's coordinator moved ")
        assert " before (another broker loaded the group)" in row["reason"]
        assert any("coordinator moved" in each for each in row["proof"])


def test_a_slow_joiner_during_a_move_of_the_coordinator_is_not_blamed() -> None:
    group = Group(notice_ms=20_000)
    group.moves(105_000)
    group.returns(7, 100_000)
    slow(group, 1, 19_000)
    assert verdicts(group) == ["broker"]


def test_a_member_that_the_new_coordinator_does_not_know_joins_anew_because_of_the_broker() -> None:
    group = Group(session_ms=30_000)
    group.moves(100_000)
    group.up[8] = group.up.pop(1)
    group.client = "app-1"
    group.returns(1, 110_000)
    group.client = "app-{index}"
    group.leaves(8, 131_000, how="session_expired", silent_ms=0, trigger="session_expired")
    assert verdicts(group) == ["broker", "broker"]


def test_a_deploy_long_after_a_move_of_the_coordinator_is_a_deploy() -> None:
    group = Group()
    group.moves(100_000)
    for index in range(3):
        group.restarts(index, 300_000 + index * 20_000, 4_000)
    assert set(verdicts(group)) == {"deploy_or_scaling"}


def test_a_polite_restart_right_after_a_move_of_the_coordinator_is_a_deploy() -> None:
    group = Group()
    group.moves(100_000)
    group.restarts(1, 110_000, 4_000)
    assert verdicts(group) == ["deploy_or_scaling"] * 2


# --- Without the coordinator's log -----------------------------------------------------------------------------------


def test_a_member_that_was_silent_when_it_was_gone_is_the_applications_though_the_cause_is_unknown() -> None:
    group = Group()
    group.dies(1, 100_000)
    group.returns(1, 160_000)
    found = judged(with_commits(group.forget(), silent_ms=45_000))
    assert [j.found.cause for j in found.rebalances] == [DiagnosisCause.UNKNOWN] * 2
    assert [j.verdict for j in found.rebalances] == [Verdict.CLIENT_APPLICATION] * 2
    assert {j.evidence for j in found.rebalances} == {"inferred"}


def test_a_member_that_worked_until_it_was_gone_left_on_its_own() -> None:
    group = Group()
    group.leaves(1, 100_000)
    group.returns(1, 110_000)
    assert verdicts(with_commits(group.forget(), silent_ms=2_000)) == ["deploy_or_scaling"] * 2


def test_a_member_without_commits_is_not_judged() -> None:
    group = Group()
    group.dies(1, 100_000)
    silver = group.forget()
    for stall in silver["stalls"]:
        stall["last_commit_at"] = None
    assert verdicts(silver) == ["unknown"]


def test_a_group_that_lost_all_its_members_at_once_may_be_the_brokers() -> None:
    group = Group(members=2)
    for member in (1, 0):
        group.dies(member, 100_000 + member)
    silver = group.forget()
    # No member joined in between, so a classic group has one generation without both.
    first, last = silver["generations"].pop(-2), silver["generations"][-1]
    silver["generation_members"] = [
        row for row in silver["generation_members"] if row["generation_id"] != first["generation_id"]
    ]
    for stall in silver["stalls"]:
        if stall["generation_id"] == first["generation_id"]:
            stall["generation_id"] = last["generation_id"]
    last["left_member_ids"] = [*first["left_member_ids"], *last["left_member_ids"]]
    assert set(verdicts(with_commits(silver, silent_ms=45_000))) == {"unknown"}


def test_a_quiet_member_that_had_just_joined_cannot_have_expired_so_it_left_on_its_own() -> None:
    """Each member of a classic generation asked to join it, which renews its session and counts as a poll."""
    group = Group()
    group.leaves(1, 100_000)
    group.leaves(2, 120_000)
    silver = group.forget()
    for stall in silver["stalls"]:
        stall["last_commit_at"] = None
    assert verdicts(silver) == ["unknown", "deploy_or_scaling"]
    for g in silver["generations"]:
        g["group_protocol"] = "consumer"
    assert verdicts(silver) == ["unknown", "unknown"], "a member of the new protocol does nothing for an epoch"


def test_without_the_log_the_commits_show_a_slow_callback_that_makes_every_rebalance_long() -> None:
    group = Group()
    for index in (0, 1, 0, 1):
        group.restarts(index, 100_000 + group.generation * 60_000, 30_000)
    silver = group.forget()
    joined = {g["generation_id"]: g["joined_at"] for g in silver["generations"]}
    usual = {j.verdict for j in judged(with_stops(silver, joined, idle_ms=60)).rebalances}
    assert usual <= {Verdict.DEPLOY_OR_SCALING, Verdict.UNKNOWN}
    slow_ones = judged(with_stops(silver, joined, idle_ms=2_500))
    assert {(j.verdict, j.found.cause) for j in slow_ones.rebalances} == {
        (Verdict.CLIENT_APPLICATION, DiagnosisCause.SLOW_JOINER)
    }
    row = verdict_rows(slow_ones, silver["group_events"], 0, END)[-1]
    assert "All members had stopped 2.5 s before the last of them joined" in row["reason"]
    assert row["instances"] == []


def with_stops(silver: dict, joined: dict[int, int], idle_ms: int) -> dict:
    """Every member commits each 200 ms until `idle_ms` before the end of the join phase."""
    stalls = []
    for stall in silver["stalls"]:
        at = joined[stall["generation_id"]] - idle_ms
        known = {"stopped_at_earliest": at - 200, "stopped_at_latest": at + idle_ms, "last_commit_at": at}
        if stall["resumed_at_earliest"] is not None:
            known["stopped_ms"] = stall["resumed_at_earliest"] - at
        stalls.append(stall | known)
    return silver | {"stalls": stalls}


# --- Sums ------------------------------------------------------------------------------------------------------------


def test_sums_have_every_rebalance_once_and_the_greatest_loss_first() -> None:
    group = Group()
    group.polls_late(1, 100_000)
    group.restarts(2, 400_000, 4_000)
    found = judged(group).rebalances
    totals = sums(found)
    assert sum(row["rebalances"] for row in totals) == len(found) == 4
    assert sum(row["lost_resource_seconds"] for row in totals) == pytest.approx(sum(j.loss.best for j in found) / 1000)
    assert [row["lost_resource_seconds"] for row in totals] == sorted(
        (row["lost_resource_seconds"] for row in totals), reverse=True
    )
