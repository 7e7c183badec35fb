"""KIP-848 groups from hand-made records: epochs, members, state, and which resources stopped for how long."""

from __future__ import annotations

from random import Random

import pytest

from tests.silver.group_records import (
    T1,
    T2,
    Script,
    current,
    epoch,
    gone,
    member,
    regex,
    target,
    target_epoch,
    tombstone,
    tps,
)


def two_members() -> Script:
    """A joins at 0 and has everything; B joins at 10 s, is given 2 and 3, which A gives up in between."""
    return (
        Script()
        .at(0, member("A"), epoch(2), target("A", 0, 1, 2, 3), target_epoch(2), current("A", 2, 0, 1, 2, 3))
        .commit(1_000, 0, 1, 2, 3)
        .commit(6_000, 0, 1, 2, 3)
        .at(10_000, member("B"), epoch(3), target("A", 0, 1), target("B", 2, 3), target_epoch(3),
            current("B", 3, state=2))
        .at(12_000, current("A", 2, 0, 1, pending=(2, 3)))
        .commit(12_090, 2, 3)
        .at(12_100, current("A", 3, 0, 1))
        .at(15_000, current("B", 3, 2, 3))
        .commit(15_400, 2, 3)
    )  # fmt: skip


def leaves(script: Script, ms: int, member_id: str, number: int) -> Script:
    return script.at(ms, *gone(member_id), epoch(number))


def only(rows, **where):
    return [r for r in rows if all(r[k] == v for k, v in where.items())]


def test_an_epoch_is_bumped_assigned_and_reconciled_when_its_records_say_so():
    rows = two_members().rows()
    found = [
        (g["generation_id"], g["outcome"], g["prepared_at"], g["joined_at"], g["synced_at"], g["completed_at"])
        for g in rows["generations"]
    ]
    assert [(2, "completed", 0, 0, 0, 0), (3, "completed", 10_000, 10_000, 10_000, 15_000)] == found
    reconciled = {m["member_id"]: m["reconciled_at"] for m in only(rows["generation_members"], generation_id=3)}
    assert {"A": 12_100, "B": 15_000} == reconciled
    assert ("B", 2_900) == (rows["generations"][1]["slowest_member_id"], rows["generations"][1]["slowest_waited_ms"])


def test_what_is_revoked_stops_between_being_told_and_the_answer_and_starts_with_the_new_owners_record():
    for s in two_members().rows()["stalls"]:
        assert ("A", "B", 3, 3, "moved") == (
            s["from_member_id"], s["to_member_id"], s["generation_id"], s["resumed_generation_id"], s["cause"],
        )  # fmt: skip
        assert (12_000, 12_100) == (s["stopped_at_earliest"], s["stopped_at_latest"])
        assert (15_000, 15_400) == (s["resumed_at_earliest"], s["resumed_at_latest"])
        assert (2_900, 2_910, 3_400) == (s["stopped_ms_min"], s["stopped_ms"], s["stopped_ms_max"])


def early(member_id: str, number: int, *partitions: int, pending=(), awaited=()):
    """A current assignment in the layout of Kafka 3.6 and 3.7."""
    value = {
        "memberEpoch": number, "previousMemberEpoch": 0, "targetMemberEpoch": 3, "assignedPartitions": tps(partitions, T1),
        "partitionsPendingRevocation": tps(pending, T1), "partitionsPendingAssignment": tps(awaited, T1), "error": 0,
        "metadataVersion": 0, "metadataBytes": {},
    }  # fmt: skip
    return "ConsumerGroupCurrentMemberAssignment", member_id, value, {}


def test_current_assignments_of_an_early_access_release_show_who_has_reached_the_epoch():
    rows = (
        Script()
        .at(0, member("A"), epoch(1), target("A", 0, 1), target_epoch(1), early("A", 1, 0, 1))
        .at(10_000, member("B"), epoch(2), target("A", 0), target("B", 1), target_epoch(2), early("B", 2, awaited=[1]))
        .at(12_000, early("A", 1, 0, pending=[1]))
        .at(12_100, early("A", 2, 0))
        .at(15_000, early("B", 2, 1))
        .rows()
    )
    assert [(1, 0), (2, 15_000)] == [(g["generation_id"], g["completed_at"]) for g in rows["generations"]]
    assert [("A", 2_900)] == [(s["from_member_id"], s["stopped_ms_min"]) for s in rows["stalls"]]


def test_what_was_never_pending_never_stopped():
    assert {2, 3} == {s["index"] for s in two_members().rows()["stalls"]}


def test_an_epoch_that_the_next_one_overtakes_never_completes_and_may_have_no_target():
    rows = (
        Script()
        .at(0, member("A"), epoch(2), target("A", 0, 1), target_epoch(2), current("A", 2, 0, 1))
        .at(500, member("B"), epoch(3), current("B", 2))
        .at(600, member("C"), epoch(4), current("C", 2))
        .at(1_000, target("A", 0), target("B", 1), target_epoch(4), current("A", 2, 0, pending=(1,)))
        .rows()
    )
    found = [(g["generation_id"], g["outcome"], g["synced_at"], g["completed_at"]) for g in rows["generations"]]
    assert [(2, "completed", 0, 0), (3, "overtaken", None, None), (4, "open", 1_000, None)] == found
    assert [("Reconciling", 500)] == [(g["state"], g["open_rebalance_since_at"]) for g in rows["groups"]]
    assert [(2, 4, None)] == [
        (e["first_generation_id"], e["last_generation_id"], e["ended_at"]) for e in rows["rebalances"]
    ]


def test_a_target_that_comes_after_its_epoch_was_overtaken_still_belongs_to_it():
    rows = (
        Script()
        .at(0, member("A"), epoch(2), target("A", 0), target_epoch(2), current("A", 2, 0))
        .at(500, member("B"), epoch(3), current("B", 2))
        .at(600, member("C"), epoch(4), current("C", 2))
        .at(700, target("B", 1), target_epoch(3))
        .rows()
    )
    assert [0, 700, None] == [g["synced_at"] for g in rows["generations"]]
    assert ["Assigning"] == [g["state"] for g in rows["groups"]]


@pytest.mark.parametrize("first", [1, 2])
def test_the_first_epoch_is_1_or_2_and_nothing_is_missing_before_it(first):
    rows = Script().at(0, member("A"), epoch(first), target("A", 0), target_epoch(first), current("A", first, 0)).rows()
    (g,) = rows["generations"]
    assert ("first_member", "observed", "A", 0) == (
        g["trigger"], g["trigger_evidence"], g["trigger_member_id"], g["skipped_generations"],
    )  # fmt: skip


def test_a_history_that_begins_late_does_not_claim_who_joined_or_what_was_skipped():
    rows = Script().at(0, member("A"), epoch(40), target("A", 0), target_epoch(40), current("A", 40, 0)).rows()
    (g,) = rows["generations"]
    assert (None, None, None) == (g["joined_member_ids"], g["left_member_ids"], g["skipped_generations"])
    assert "unknown" == g["trigger"]
    assert [("joined", "bounded")] == [(e["kind"], e["evidence"]) for e in rows["group_events"]]


def test_a_polite_leave_costs_from_the_tombstone_and_a_crash_from_the_last_commit():
    for polite in (True, False):
        script = two_members()
        for ms in (16_000, 17_000, 18_000):
            script.commit(ms, 2, 3)
        at = 18_010 if polite else 63_000
        if polite:
            script.line(at, "member_left", "B", trigger="member_left")
        else:
            script.line(at, "member_fenced", "B", trigger="session_expired", reason="the member session expired")
        leaves(script, at, "B", 4).at(at + 500, target("A", 0, 1, 2, 3), target_epoch(4), current("A", 4, 0, 1, 2, 3))
        rows = script.rows()
        lost = only(rows["stalls"], from_member_id="B")
        assert {2, 3} == {s["index"] for s in lost}
        for s in lost:
            assert s["stopped_at_earliest"] <= 18_000 <= s["stopped_at_latest"] == at
            assert (at + 500, 4) == (s["resumed_at_earliest"], s["generation_id"])
            assert s["cause"] == ("moved" if polite else "member_lost")
            assert s["stopped_ms"] == pytest.approx(510 if polite else 45_000, abs=10 if polite else 1_000)
        assert rows["generations"][-1]["trigger"] == ("member_left" if polite else "session_expired")
        assert rows["generations"][-1]["trigger_evidence"] == "observed"


def test_without_a_line_commits_tell_a_leave_from_an_expiry_and_silence_as_long_as_a_poll_tells_nothing():
    for silent, expected in ((10, "member_left"), (45_000, "session_expired"), (301_000, "unknown")):
        script = two_members()
        for ms in (16_000, 17_000, 18_000):
            script.commit(ms, 2, 3)
        rows = leaves(script, 18_000 + silent, "B", 4).rows()
        assert (expected, "inferred") == (
            rows["generations"][-1]["trigger"],
            rows["generations"][-1]["trigger_evidence"],
        )


def test_a_member_fenced_while_it_should_revoke_may_have_been_stuck_since_before():
    script = (
        two_members()
        .at(20_000, member("C"), epoch(4), target("B", 2), target("C", 3), target_epoch(4), current("C", 4, state=2))
        .at(21_000, current("B", 3, 2, pending=(3,)))
        .line(60_000, "member_fenced", "B", trigger="rejoin_timeout", reason="it failed to transition")
    )
    rows = leaves(script, 60_000, "B", 5).rows()
    (stuck,) = only(rows["stalls"], from_member_id="B", index=3)
    assert (15_000, 60_000, "member_lost") == (
        stuck["stopped_at_earliest"], stuck["stopped_at_latest"], stuck["cause"],
    )  # fmt: skip
    assert "poll_timeout" in {e["kind"] for e in only(rows["group_events"], member_id="B")}


def static(*, back: bool) -> Script:
    script = (
        Script()
        .at(0, member("A", instance="one"), epoch(2), target("A", 0, 1), target_epoch(2), current("A", 2, 0, 1))
        .commit(1_000, 0, 1)
        .commit(2_000, 0, 1)
        .at(2_010, current("A", -2, 0, 1))
    )
    if back:
        script.at(
            5_000, *gone("A"), member("A2", instance="one"), target("A2", 0, 1), current("A2", 0, 0, 1),
            current("A2", 2, 0, 1),
        ).commit(5_200, 0, 1)  # fmt: skip
    return script


def test_a_static_member_that_comes_back_stops_only_its_own_and_makes_no_epoch():
    rows = static(back=True).rows()
    assert [2] == [g["generation_id"] for g in rows["generations"]]
    for s in rows["stalls"]:
        assert ("A", "A2", "static_restart") == (s["from_member_id"], s["to_member_id"], s["cause"])
        assert (2_010, 5_000, 5_200) == (s["stopped_at_latest"], s["resumed_at_earliest"], s["resumed_at_latest"])
        assert 3_000 == s["stopped_ms"]
    assert {0, 1} == {s["index"] for s in rows["stalls"]}
    held = {m["member_id"]: (m["valid_from_at"], m["valid_to_at"]) for m in rows["generation_members"]}
    assert {"A": (0, 5_000), "A2": (5_000, None)} == held
    assert ["joined", "left", "static_returned"] == [
        e["kind"] for e in sorted(rows["group_events"], key=lambda e: e["event_at"]) if e["member_id"]
    ]
    assert ["Stable"] == [g["state"] for g in rows["groups"]]


def test_a_static_member_away_leaves_the_group_reconciling_and_its_work_open():
    rows = static(back=False).rows()
    assert [("Reconciling", 2_010)] == [(g["state"], g["state_since_at"]) for g in rows["groups"]]
    assert {None} == {s["resumed_at_earliest"] for s in rows["stalls"]}


def test_a_static_member_that_does_not_come_back_in_time_was_lost():
    script = static(back=False).line(47_010, "member_fenced", "A", trigger="session_expired", reason="expired")
    rows = leaves(script, 47_010, "A", 3).at(48_000, member("B"), epoch(4)).rows()
    # The group was empty meanwhile, which takes precedence.
    assert {"no_member"} == {s["cause"] for s in rows["stalls"]}
    other = (
        two_members()
        .at(20_000, member("S", instance="s"), epoch(4), target("A", 0), target("S", 1), target_epoch(4))
        .at(21_000, current("A", 4, 0))
        .at(22_000, current("S", 4, 1))
        .at(30_000, current("S", -2, 1))
    )
    rows = leaves(other, 75_000, "S", 5).at(76_000, target("A", 0, 1), target_epoch(5), current("A", 5, 0, 1)).rows()
    (s,) = only(rows["stalls"], from_member_id="S")
    assert ("member_lost", 30_000, 76_000) == (s["cause"], s["stopped_at_latest"], s["resumed_at_earliest"])


def test_a_members_time_in_an_epoch_has_no_negative_length_where_the_next_coordinators_clock_is_behind():
    rows = leaves(two_members(), 5_000, "B", 4).rows()
    found = only(rows["generation_members"], generation_id=3)
    assert {("A", 10_000, 10_000), ("B", 10_000, 10_000)} == {
        (m["member_id"], m["valid_from_at"], m["valid_to_at"]) for m in found
    }


def test_when_the_last_member_goes_the_epoch_is_empty_and_what_follows_is_idle_not_lost():
    script = leaves(leaves(two_members(), 20_000, "A", 4), 20_100, "B", 5)
    rows = script.at(
        90_000, member("C"), epoch(6), target("C", 0, 1, 2, 3), target_epoch(6), current("C", 6, 0, 1, 2, 3)
    ).rows()
    assert ["completed", "completed", "overtaken", "empty", "completed"] == [g["outcome"] for g in rows["generations"]]
    assert "first_member" == rows["generations"][-1]["trigger"]
    idle = only(rows["stalls"], to_member_id="C")
    assert ({0, 1, 2, 3}, {"no_member"}) == ({s["index"] for s in idle}, {s["cause"] for s in idle})
    assert 0 < sum(e["idle_resource_seconds"] for e in rows["rebalances"])


def test_a_deleted_group_is_dead_and_its_next_life_is_another_incarnation():
    script = leaves(leaves(two_members(), 20_000, "A", 4), 20_100, "B", 5)
    script.at(30_000, *map(tombstone, ("ConsumerGroupTargetAssignmentMetadata", "ConsumerGroupMetadata")))
    assert [("Dead", True, 30_000)] == [
        (g["state"], g["is_deleted"], g["state_since_at"]) for g in script.rows()["groups"]
    ]
    rows = script.at(40_000, member("A"), epoch(2), target("A", 0), target_epoch(2), current("A", 2, 0)).rows()
    assert [(0, 2), (0, 3), (0, 4), (0, 5), (1, 2)] == [
        (g["incarnation"], g["generation_id"]) for g in rows["generations"]
    ]
    assert {0} == {s["incarnation"] for s in rows["stalls"]}
    assert ["created", "dead", "created"] == [
        e["kind"] for e in sorted(rows["group_events"], key=lambda e: e["event_at"]) if e["kind"] in ("created", "dead")
    ]


def test_a_changed_subscription_and_changed_topics_are_kept_apart():
    script = two_members().at(20_000, member("A", "orders", "returns"), epoch(4, metadataHash=5))
    rows = script.at(21_000, epoch(5, metadataHash=6)).rows()
    assert ["subscription_changed", "metadata_changed"] == [g["trigger"] for g in rows["generations"][-2:]]
    assert {"observed"} == {g["trigger_evidence"] for g in rows["generations"]}


def test_an_id_gets_the_name_that_its_commits_state():
    assert {"orders"} == {s["name"] for s in two_members().rows()["stalls"]}


def test_an_id_gets_the_only_name_that_its_owners_subscription_leaves():
    script = (
        Script()
        .at(0, member("A", "orders", "returns"), epoch(2), target("A", 0), target_epoch(2), current("A", 2, 0))
        .at(1_000, member("B", "orders"), epoch(3), target("A", 0, topic=T2), target("B", 0), target_epoch(3))
    )
    assert ["orders", "returns", "orders"] == named(script)


def test_an_id_that_could_be_several_topics_stays_an_id():
    script = Script().at(0, member("A", "orders", "returns"), epoch(2), target("A", 0), target_epoch(2))
    assert [T1] == named(script)


def test_an_id_gets_the_name_that_a_poll_saw():
    script = Script().at(0, member("A", "orders", "returns"), epoch(2), target("A", 0), target_epoch(2))
    script.topic_names[T1] = "returns"
    assert ["returns"] == named(script)


def test_a_regular_expressions_topics_count_once_it_is_resolved():
    unresolved = Script().at(0, member("A", subscribedTopicNames=[], subscribedTopicRegex="ord.*"), current("A", 1))
    unresolved.at(100, regex("ord.*", "orders"), epoch(2)).at(900, target("A", 0), target_epoch(2), current("A", 2, 0))
    assert ["orders"] == named(unresolved)
    rows = unresolved.rows()
    assert [["orders"]] == [m["subscribed_topics"] for m in rows["generation_members"]]


def named(script: Script) -> list[str]:
    return [r["name"] for m in script.rows()["generation_members"] for r in m["assigned"] or ()]


def test_order_of_arrival_and_duplicates_do_not_matter():
    script = leaves(two_members(), 20_000, "B", 4).line(20_000, "member_left", "B", trigger="member_left")
    expected = script.rows()
    for seed in range(5):
        random, mixed = Random(seed), Script()
        for name in ("records", "runs", "events"):
            given = getattr(script, name)
            again = given + random.sample(given, len(given) // 2)
            random.shuffle(again)
            setattr(mixed, name, again)
        assert expected == mixed.rows()


def test_a_share_group_has_epochs_and_members_but_never_stops():
    share = {"prefix": "ShareGroup"}
    rows = (
        Script()
        .at(0, member("A", **share), epoch(2, **share), target("A", 0, 1, **share), target_epoch(2, **share),
            current("A", 2, 0, 1, **share))
        .at(1_000, member("B", **share), epoch(3, **share), target("B", 0, 1, **share), target_epoch(3, **share),
            current("B", 3, 0, 1, **share))
        .at(2_000, current("A", 3, 0, **share))
        .at(9_000, *gone("A", "ShareGroup"), epoch(4, **share))
        .rows()
    )  # fmt: skip
    assert [("share", "share", "none")] * 3 == [
        (g["group_type"], g["group_protocol"], g["rebalance_mode"]) for g in rows["generations"]
    ]
    assert [1, 2, 1] == [g["member_count"] for g in rows["generations"]]
    assert ([], "Stable") == (rows["stalls"], rows["groups"][0]["state"])
