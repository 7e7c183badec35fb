"""What is said to stand behind rebalances whose causes are known, and that nothing is said that the records do not tell."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.gold.diagnosis.causes import cause_of, context
from pipelines.gold.diagnosis.diagnosis import diagnosis_rows
from pipelines.gold.diagnosis.explanations import SAID
from pipelines.gold.memberships import number
from schemas.states import NORMAL_CAUSES, DiagnosisCause, Trigger
from testing.warehouses.rebuilding import batches, silver_of
from tests.gold.histories import START, EagerGroup

MINUTE = 60_000


class Group(EagerGroup):
    """Words for more that happens to groups."""

    def rejoins(self, at: int, trigger: str, **fields) -> None:
        """The same members once more."""
        start = START + at
        self._generation(start, self._wait(), trigger, stops=dict.fromkeys(self.owners.values(), start), left=[])
        self.rows["generations"][-1] |= fields

    def dies(self, index: int, at: int, session_ms: int | None = None) -> None:
        silent = self.session_ms if session_ms is None else session_ms
        self.leaves(index, at, how="session_expired", silent_ms=silent, trigger="session_expired")

    def naps(self, index: int, at: int, back: int = 500) -> None:
        """Silent for its whole session, and back as soon as it was dropped."""
        self.dies(index, at)
        self.returns(index, at + self.session_ms + back)

    def polls_late(self, index: int, at: int, said: str | None = "consumer poll timeout has expired.") -> None:
        how, trigger = ("poll_timeout", "poll_timeout") if said else ("left", "member_left")
        self.leaves(index, at, how=how, silent_ms=0, trigger=trigger)
        self.rows["group_events"][-1]["detail"] = said
        self.returns(index, at + 4_000)

    def moves(self, at: int) -> None:
        """The group's coordinator."""
        self._event(START + at, "coordinator_moved", "")

    def forget(self) -> dict:
        """Silver rows as they are without the coordinator's log, of a group that does not commit."""
        silver = {name: [dict(row) for row in rows] for name, rows in self.silver().items()}
        for event in silver["group_events"]:
            event |= {"kind": "joined" if event["kind"] == "joined" else "left", "detail": "by then"}
            event["evidence"] = "bounded" if event["kind"] == "joined" else "inferred"
        for g in silver["generations"]:
            told = g["trigger"] if g["trigger"] in ("member_joined", "first_member") else "unknown"
            g |= {"trigger": told, "trigger_evidence": "inferred", "trigger_member_id": None, "prepared_at": None}
            g |= {"client_reason": None, "slowest_member_id": None, "slowest_waited_ms": None}
        return silver


def diagnosed(group: EagerGroup | dict, since: int = 0, marks=()) -> dict[str, dict]:
    """By cause, without what the group's start cost."""
    silver = group.silver() if isinstance(group, EagerGroup) else group
    return {row["cause"]: row for row in diagnosis_rows(silver, START + since, marks)}


def later(group: EagerGroup | dict, marks=()) -> dict[str, dict]:
    """Of what happened a while after the start."""
    return diagnosed(group, since=30_000, marks=marks)


def marked(at: int, text: str = "v2.31", kind: str = "deploy") -> dict:
    return {"marked_at": START + at, "kind": kind, "text": text, "group_id": None}


def test_a_poll_that_takes_too_long_is_named_with_its_limit_and_its_period() -> None:
    group = Group()
    for at in range(4):
        group.polls_late(1, 300_000 + at * 312_000)
    (row,) = later(group).values()
    assert (row["cause"], row["rebalances"], row["evidence"]) == ("poll_timeout", 8, "observed")
    assert row["instances"] == ["app-1"]
    assert not row["is_normal"]
    for said in ("app-1 (4 times)", "max.poll.interval.ms of 5 min", "every 5 min 12 s", "reported it (4 times)"):
        assert said in row["explanation"], said


@pytest.mark.parametrize("is_logged", [True, False])
def test_stays_as_long_as_a_poll_may_take_are_inferred_to_end_by_one_though_the_client_says_nothing(is_logged) -> None:
    group = Group()
    group.polls_late(1, 500_000, said=None)
    for at in range(4):
        group.polls_late(1, 500_000 + (at + 1) * 305_000, said=None)
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
    group.returns(1, 150_000)
    for at in range(3):
        group.dies(1, 450_000 + at * 350_000)
        group.returns(1, 500_000 + at * 350_000)
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


def test_instances_that_go_once_each_and_come_back_are_a_deploy() -> None:
    group = Group(members=4)
    for index in range(4):
        group.restarts(index, 100_000 + index * 60_000, 8_000)
    (row,) = later(group).values()
    assert (row["cause"], row["rebalances"], row["is_normal"]) == ("deploy", 8, True)
    assert row["evidence"] == "inferred"
    for said in ("4 of 4 instances restarted, once each", "after 8 s", "one after another"):
        assert said in row["explanation"], said


def test_a_deploy_that_was_announced_is_observed_and_any_other_mark_only_told() -> None:
    group = Group(members=4)
    for index in range(4):
        group.restarts(index, 100_000 + index * 60_000, 8_000)
    row = later(group, [marked(40_000)])["deploy"]
    assert row["evidence"] == "observed"
    for said in ("That was a rolling deploy", "before all 8 rebalances", "60.3 s after the mark “v2.31” (deploy)"):
        assert said in row["explanation"], said

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
    for said in ("app-1 (5 times)", "lived 50 s", "back 20 s later"):
        assert said in row["explanation"], said


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


def slow(group: EagerGroup, index: int, waited: int) -> None:
    member = group.up[index]
    group.rows["generations"][-1] |= {"slowest_member_id": member, "slowest_waited_ms": waited}


def test_a_member_that_everybody_waits_for_again_and_again_is_named() -> None:
    group = Group(members=4)
    for index in (0, 2, 3):
        group.leaves(index, 100_000 + index * 60_000)
        slow(group, 1, 2_400)
        group.returns(index, 110_000 + index * 60_000)
        slow(group, 1, 2_600)
    (row,) = later(group).values()
    assert (row["cause"], row["rebalances"], row["instances"]) == ("slow_joiner", 6, ["app-1"])
    for said in ("2.5 s (median)", "2.6 s at most", "deploy (6 times)"):
        assert said in row["explanation"], said


def test_being_last_by_chance_is_not_slow() -> None:
    group = Group(members=4)
    for index in (0, 2):
        group.leaves(index, 100_000 + index * 60_000)
        slow(group, 1, 2_400)
        group.returns(index, 110_000 + index * 60_000)
        slow(group, 3, 2_600)
    assert set(later(group)) == {"deploy"}


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
    for said in ("app-0", "every 5 min", "metadata.max.age.ms", "cached metadata has changed"):
        assert said in row["explanation"], said


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


def test_what_the_topic_alone_does_not_tell_is_unknown_and_what_is_excluded_is_said() -> None:
    group = Group()
    for at in range(4):
        group.restarts(1, 600_000 + at * 70_000, 20_000)
    row = later(group.forget())["unknown"]
    assert (row["rebalances"], row["instances"]) == (8, ["app-1"])
    assert "not recorded" in row["explanation"]
    assert "ship-logs" in row["explanation"]


def test_every_cause_can_be_explained() -> None:
    assert set(DiagnosisCause) == set(SAID)


def of_capture(name: str, sources: str) -> dict[tuple[str, int], object]:
    """(group, generation) → what was found."""
    rows = silver_of(batches(name, sources=sources), name)
    out = {}
    for group in {g["group_id"] for g in rows["generations"]}:
        mine = {table: [r for r in found if r["group_id"] == group] for table, found in rows.items()}
        known = context(mine)
        out |= {(group, g["generation_id"]): cause_of(g, known) for g in mine["generations"]}
        shares = [row["share"] for row in diagnosis_rows(mine, 0)]
        assert sum(shares) == pytest.approx(1)
    return out


SCRIPTED = {
    # A kill and a start; a process stopped by signal and continued; a blocked poll loop.
    "imports-joiner": {5: "session_expiry", 6: "session_expiry", 7: "session_expiry", 8: "session_expiry"}
    | {9: "poll_timeout", 10: "poll_timeout", 11: "scaling"},
    # A polite stop and a start; a blocked poll loop; the end.
    "scoring-worker": {5: "deploy", 6: "deploy", 7: "poll_timeout", 8: "poll_timeout", 9: "scaling", 10: "scaling"},
    "routing-enricher": {3: "session_expiry", 4: "session_expiry", 5: "scaling"},
    # One member sleeps in its revocation callback whenever the others wait for it.
    "pricing-loader": {3: "slow_joiner", 4: "slow_joiner", 5: "slow_joiner", 7: "scaling"},
}


@pytest.fixture(scope="module")
def churned() -> dict:
    return of_capture("eager_churn", "offsets,log")


def test_the_recorded_accidents_are_told_apart(churned) -> None:
    for group, expected in SCRIPTED.items():
        found = {n: churned[group, n].cause.value for n in expected}
        assert expected == found, group


@pytest.mark.parametrize("name", ["eager_churn", "connect", "streams", "migration"])
def test_without_the_log_a_cause_is_the_same_or_unknown(name) -> None:
    logged, alone = of_capture(name, "offsets,log"), of_capture(name, "offsets")
    assert logged.keys() == alone.keys()
    for key, found in alone.items():
        assert found.set_off_by in (logged[key].set_off_by, DiagnosisCause.UNKNOWN), key
        assert found.evidence == "inferred" or name != "eager_churn", key


@pytest.mark.parametrize("sources", ["offsets,log", "offsets"])
def test_recorded_rolling_restarts_are_deploys_under_every_protocol(sources) -> None:
    found = of_capture("rolling_restart", sources)
    causes = {
        group: [found[group, n].cause.value for n in numbers]
        for group, numbers in (
            ("exports-sync-dynamic", range(2, 8)),
            ("alerts-notifier-coop", range(2, 11)),
            ("stock-loader-next", range(5, 11)),
        )
    }
    assert causes["exports-sync-dynamic"] == causes["stock-loader-next"] == ["deploy"] * 6
    assert causes["alerts-notifier-coop"] == ["deploy", "deploy", "follow_ups"] * 3
    assert all(f.set_off_by in NORMAL_CAUSES for f in found.values())


def test_a_recorded_connect_delay_is_told_from_the_departures_before_it() -> None:
    found = of_capture("connect", "offsets,log")
    causes = [found["mailer-writer-connect", n].cause.value for n in range(12, 18)]
    assert causes == ["deploy", "deploy", "connect_delay", "session_expiry", "connect_delay", "session_expiry"]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["leaves", "dies", "returns", "naps", "polls_late", "rejoins", "moves"]),
        st.integers(0, 5),
        st.integers(100, 400_000),
        st.sampled_from(list(Trigger)),
        st.sampled_from([None, 0, 900, 2_500, 30_000]),
    ),
    max_size=14,
)


def played(steps) -> Group:
    """Whatever the steps say, as far as it can happen."""
    group, at = Group(), 30_000
    for what, index, later_ms, trigger, waited in steps:
        at += later_ms
        is_up = index in group.up
        if what in ("leaves", "dies", "naps", "polls_late") and is_up:
            getattr(group, what)(index, at)
            at += group.session_ms + 5_000
        elif what == "returns" and not is_up:
            group.returns(index, at)
        elif what == "rejoins" and group.up:
            group.rejoins(at, trigger, trigger_evidence="inferred")
        elif what == "moves":
            group.moves(at)
        if waited is not None and index in group.up:
            slow(group, index, waited)
    return group


@settings(max_examples=40, deadline=None)
@given(STEPS, st.booleans(), st.integers(0, 2**16), st.integers(0, 2_000_000))
def test_every_completed_rebalance_has_one_cause_in_whatever_order_rows_come(steps, is_logged, seed, since) -> None:
    group = played(steps)
    silver = group.silver() if is_logged else group.forget()
    rows = diagnosis_rows(silver, START + since)
    counted = [g for g in silver["generations"] if g["joined_at"] >= START + since and g["completed_at"] is not None]
    assert sum(row["rebalances"] for row in rows) == len(counted)
    assert not rows or sum(row["share"] for row in rows) == pytest.approx(1)
    assert [row["rank"] for row in rows] == list(range(1, len(rows) + 1))
    shuffled = {name: Random(seed).sample(found, len(found)) for name, found in silver.items()}
    assert diagnosis_rows(shuffled, START + since) == rows


@settings(max_examples=25, deadline=None)
@given(STEPS)
def test_without_the_log_no_accident_is_said_to_be_another(steps) -> None:
    """A departure of which nothing is recorded is unknown, part of a pattern, or the same as with the log."""
    group = played([step for step in steps if step[0] != "rejoins"])
    known, alone = context(group.silver()), context(group.forget())
    for logged, forgotten in zip(group.silver()["generations"], group.forget()["generations"], strict=True):
        assert number(logged) == number(forgotten)
        found = cause_of(forgotten, alone).set_off_by
        if found in (DiagnosisCause.SESSION_EXPIRY, DiagnosisCause.CRASH_LOOP):
            assert cause_of(logged, known).set_off_by == found
