"""Groups that change their protocol: one timeline with continuing numbers (KIP-848's online migration)."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.rows import SilverRows
from testing.warehouses.rebuilding import batches, silver_of
from tests.silver.group_records import (
    Script,
    classic,
    current,
    epoch,
    gone,
    member,
    target,
    target_epoch,
    tombstone,
)

CLASSIC_MEMBER = {
    "sessionTimeoutMs": 45_000,
    "supportedProtocols": [{"name": "range", "metadata": {"ownedPartitions": {}}}],
}


@pytest.fixture(scope="module")
def recorded() -> SilverRows:
    return silver_of(batches("migration"), "migration")


def numbers(rows: SilverRows, group: str = "g") -> list[tuple[int, int, str]]:
    return [
        (g["incarnation"], g["generation_id"], g["group_protocol"].value)
        for g in rows["generations"]
        if g["group_id"] == group
    ]


def kinds(rows: SilverRows, *of: str, group: str = "g") -> list[tuple[str, int | None]]:
    found = [e for e in rows["group_events"] if e["group_id"] == group and e["kind"] in of]
    return [(e["kind"].value, e["generation_id"]) for e in sorted(found, key=lambda e: e["event_at"])]


def upgraded() -> Script:
    """Generation 5 of two classic members, converted at 10 s when N joins; B gives partition 3 up to it."""
    return (
        Script()
        .at(0, classic(5, {"A": (0, 1), "B": (2, 3)}, at_ms=0))
        .commit(9_000, 0, 1, 2, 3)
        .at(
            10_000, tombstone("GroupMetadata"), member("A", classicMemberMetadata=CLASSIC_MEMBER),
            member("B", classicMemberMetadata=CLASSIC_MEMBER), epoch(5), target("A", 0, 1), target("B", 2, 3),
            target_epoch(5), current("A", 5, 0, 1), current("B", 5, 2, 3),
            member("N"), epoch(6), target("A", 0, 1), target("B", 2), target("N", 3), target_epoch(6),
            current("N", 6, state=2),
        )
    )  # fmt: skip


def downgraded() -> Script:
    """The last KIP-848 member of epoch 6 leaves at 20 s; A continues with the classic protocol."""
    return (
        Script()
        .at(0, member("A", classicMemberMetadata=CLASSIC_MEMBER), member("N"), epoch(6), target("A", 0, 1),
            target("N", 2, 3), target_epoch(6), current("A", 6, 0, 1), current("N", 6, 2, 3))
        .commit(19_000, 0, 1, 2, 3)
        .commit(19_990, 2, 3)
        .at(20_000, *[b for m in "AN" for b in gone(m)], tombstone("ConsumerGroupTargetAssignmentMetadata"),
            tombstone("ConsumerGroupMetadata"), classic(6, {"A": (0, 1)}, at_ms=20_000))
        .at(20_200, classic(7, {"A": (0, 1, 2, 3)}, at_ms=20_100))
        .commit(20_300, 0, 1, 2, 3)
    )  # fmt: skip


def test_an_upgrade_goes_on_with_the_next_number_and_is_no_death() -> None:
    rows = upgraded().rows()
    assert [(0, 5, "classic"), (0, 6, "consumer")] == numbers(rows)
    assert [("upgraded", 5)] == kinds(rows, "upgraded", "downgraded", "dead", "created")
    six = rows["generations"][-1]
    assert ("upgrade", "observed", "N", ["N"], [], 0) == (
        six["trigger"], six["trigger_evidence"], six["trigger_member_id"], six["joined_member_ids"],
        six["left_member_ids"], six["skipped_generations"],
    )  # fmt: skip
    assert [("consumer", "Reconciling")] == [(g["group_protocol"].value, g["state"].value) for g in rows["groups"]]


def test_classic_members_take_what_they_have_through_an_upgrade() -> None:
    assert [] == upgraded().rows()["stalls"]
    ends = {
        m["member_id"]: m["valid_to_at"] for m in upgraded().rows()["generation_members"] if m["generation_id"] == 5
    }
    assert {"A": 10_000, "B": 10_000} == ends


def test_an_eager_classic_member_stops_everything_when_it_joins_again_for_an_epoch() -> None:
    rows = upgraded().at(12_000, current("B", 6, 2)).at(15_000, current("N", 6, 3)).rows()
    found = {s["index"]: (s["from_member_id"], s["to_member_id"], s["stopped_ms_min"]) for s in rows["stalls"]}
    assert {2: ("B", "B", 0), 3: ("B", "N", 3_000)} == found
    assert {"eager_barrier"} == {s["cause"].value for s in rows["stalls"]}


def test_a_cooperative_classic_member_keeps_what_it_lists_as_owned() -> None:
    owned: dict[str, Any] = {"name": "cooperative-sticky", "metadata": {"ownedPartitions": {"orders": [2, 3]}}}
    described = member("B", classicMemberMetadata={"sessionTimeoutMs": 45_000, "supportedProtocols": [owned]})
    rows = (
        upgraded()
        .at(12_000, described, current("B", 5, 2, pending=(3,)))
        .at(12_010, described, current("B", 6, 2))
        .rows()
    )
    assert [(3, 12_000, 12_010)] == [
        (s["index"], s["stopped_at_earliest"], s["stopped_at_latest"]) for s in rows["stalls"]
    ]


def test_a_downgrade_goes_on_with_the_next_number_and_is_no_death() -> None:
    rows = downgraded().rows()
    assert [(0, 6, "consumer"), (0, 7, "classic")] == numbers(rows)
    assert [("downgraded", 6)] == kinds(rows, "upgraded", "downgraded", "dead")
    seven = rows["generations"][-1]
    assert ("downgrade", [], ["N"], 0) == (
        seven["trigger"], seven["joined_member_ids"], seven["left_member_ids"], seven["skipped_generations"],
    )  # fmt: skip


def test_what_the_last_modern_member_had_stops_when_it_leaves_and_starts_with_the_next_generation() -> None:
    left = [s for s in downgraded().rows()["stalls"] if s["from_member_id"] == "N"]
    assert {(2, 20_000, 20_200, 7, 7), (3, 20_000, 20_200, 7, 7)} == {
        (s["index"], s["stopped_at_latest"], s["resumed_at_earliest"], s["generation_id"], s["resumed_generation_id"])
        for s in left
    }


def test_an_empty_group_that_comes_back_under_another_protocol_starts_a_new_life() -> None:
    rows = (
        Script()
        .at(0, classic(1, {"A": (0,)}, at_ms=0))
        .at(5_000, classic(2, {}, at_ms=5_000))
        .at(
            9_000,
            tombstone("GroupMetadata"),
            member("N"),
            epoch(2),
            target("N", 0),
            target_epoch(2),
            current("N", 2, 0),
        )
        .at(15_000, *gone("N"), epoch(3))
        .at(20_000, tombstone("ConsumerGroupMetadata"), classic(0, {}, at_ms=20_000))
        .at(20_010, classic(1, {"B": (0,)}, at_ms=20_005))
        .rows()
    )
    assert [(0, 1, "classic"), (0, 2, "classic"), (1, 2, "consumer"), (1, 3, "consumer"), (2, 1, "classic")] == numbers(
        rows
    )
    assert [("upgraded", 2), ("downgraded", 0)] == kinds(rows, "upgraded", "downgraded", "dead")
    assert ["first_member", "first_member"] == [g["trigger"].value for g in rows["generations"][2::2]]


def test_a_deleted_group_used_again_under_another_protocol_was_dead_in_between() -> None:
    rows = (
        Script()
        .at(0, classic(1, {"A": (0,)}, at_ms=0))
        .at(5_000, tombstone("GroupMetadata"))
        .at(9_000, member("N"), epoch(2), target("N", 0), target_epoch(2), current("N", 2, 0))
        .rows()
    )
    assert [(0, 1, "classic"), (1, 2, "consumer")] == numbers(rows)
    assert [("dead", None), ("created", 2)] == kinds(rows, "upgraded", "downgraded", "dead", "created")[-2:]


def test_real_groups_keep_one_line_of_numbers_through_both_conversions(recorded) -> None:
    up = [(0, 1, "classic"), *((0, k, "consumer") for k in (2, 3, 4, 5)), (0, 6, "classic"), (0, 7, "classic")]
    assert up == numbers(recorded, "mig-up")
    coop = [(0, 1, "classic"), *((0, k, "consumer") for k in (2, 3, 4)), (0, 5, "classic"), (0, 6, "classic")]
    assert coop == numbers(recorded, "mig-coop")
    for group in ("mig-up", "mig-coop"):
        changes = [kind for kind, _ in kinds(recorded, "upgraded", "downgraded", "dead", group=group)]
        assert ["upgraded", "downgraded"] == changes


def test_real_resources_are_away_only_while_nobody_has_them(recorded) -> None:
    for group in ("mig-up", "mig-coop"):
        stalls = [s for s in recorded["stalls"] if s["group_id"] == group]
        assert {"mig-a", "mig-b"} == {s["name"] for s in stalls}
        open_ones = [s for s in stalls if s["resumed_at_earliest"] is None]
        assert ({"no_member"}, 7) == ({s["cause"].value for s in open_ones}, len(open_ones))
        assert all(s["stopped_ms"] <= 1_100 for s in stalls if s not in open_ones)


def test_a_real_empty_group_lives_anew_under_each_protocol(recorded) -> None:
    assert [0, 0, 1, 1, 2, 2] == [incarnation for incarnation, _, _ in numbers(recorded, "mig-empty")]
    events = kinds(recorded, "upgraded", "downgraded", "dead", group="mig-empty")
    assert [("upgraded", 2), ("downgraded", 0), ("dead", None)] == events


def test_a_real_crash_is_distinguished_from_a_leave(recorded) -> None:
    triggers = [g["trigger"].value for g in recorded["generations"] if g["group_id"] == "crash"]
    assert ["first_member", "member_joined", "session_expired", "member_left"] == triggers
