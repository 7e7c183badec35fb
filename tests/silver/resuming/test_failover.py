"""A coordinator that fails, or whose records are read again, adds no rebalance that did not happen, and hides no failed
one.
"""

from __future__ import annotations

from typing import Any

from tests.silver.handmade import START, broker_line, consumer, generation, member_id, rows, tombstone

A, B = member_id("a"), member_id("b")


def preparing(at: int, number: int, *, broker: int = 1) -> Any:
    reason = f"Adding new member {B} with group instance id null; client reason: not provided"
    text = f"Preparing to rebalance group orders in state PreparingRebalance with old generation {number} (reason: {reason})."
    return broker_line(at, text, broker=broker)


def stabilized(at: int, number: int, *, broker: int = 1) -> Any:
    return broker_line(at, f"Stabilized group orders generation {number} with 2 members.", broker=broker)


def assigned(at: int, number: int, *, broker: int = 1) -> Any:
    text = (
        f"Assignment received from leader {A} for group orders for generation {number}. "
        "The group has 2 members, 0 of which are static."
    )
    return broker_line(at, text, broker=broker)


def loaded(at: int, *, broker: int) -> Any:
    return broker_line(at, "Loaded classic group orders with 1 members.", broker=broker)


def events(found: dict[str, Any], kind: str) -> list[tuple[int, int | None, str | None]]:
    return [
        (e["event_at"] - START, e["generation_id"], e["detail"]) for e in found["group_events"] if e["kind"] == kind
    ]


ALONE = generation(1, 0, [consumer("a", [0, 1])])
TWO = generation(2, 9_000, [consumer("a", [0], from_generation=1), consumer("b", [1])])


def test_a_loaded_group_is_a_move_of_its_coordinator_and_no_rebalance() -> None:
    found = rows([ALONE], [loaded(30_000, broker=2)])
    assert events(found, "coordinator_moved") == [(30_000, None, "broker 2 loaded the group and coordinates it")]
    assert [r["generation_id"] for r in found["generations"]] == [1]
    assert found["stalls"] == []


def test_a_members_time_in_a_generation_has_no_negative_length_where_the_next_coordinators_clock_is_behind() -> None:
    found = rows([ALONE, generation(2, -60_000, [consumer("a", [0, 1], from_generation=1)])])
    spans = [(m["valid_from_at"] - START, m["valid_to_at"]) for m in found["generation_members"]]
    assert [(5, START + 5), (-59_995, None)] == spans


def test_a_record_that_is_written_again_is_the_same_generation() -> None:
    again = ALONE | {"at": START + 30_000}
    assert rows([ALONE, again])["generations"] == rows([ALONE])["generations"]
    assert rows([ALONE, again])["stalls"] == []


LOST = (
    preparing(5_000, 1),
    stabilized(5_100, 2),
    loaded(7_000, broker=2),
    preparing(8_000, 1, broker=2),
    stabilized(9_000, 2, broker=2),
    assigned(9_005, 2, broker=2),
)


def test_a_number_that_a_failed_coordinator_took_with_it_is_one_generation_and_one_failed_rebalance() -> None:
    found = rows([ALONE, TWO], LOST)
    last = found["generations"][-1]
    assert (last["generation_id"], last["coordinator_id"], last["skipped_generations"]) == (2, 2, 0)
    assert last["prepared_at"] == START + 8_000
    assert [(5_100, 2)] == [e[:2] for e in events(found, "failed_rebalance")]


def test_a_rebalance_that_a_failover_interrupted_stopped_everybody_since_its_first_start() -> None:
    found = rows([ALONE, TWO], LOST)
    assert [(s["cause"], s["stopped_at_earliest"] - START) for s in found["stalls"]] == [("failover", 5_000)] * 2


NEW = generation(0, -200, [], protocol=None)
OVERTAKEN = (
    preparing(-190, 0),
    stabilized(-100, 1),
    preparing(-90, 1),
    stabilized(9_000, 2),
    assigned(9_005, 2),
)


def test_a_first_generation_that_was_overtaken_leaves_arrivals_and_a_failed_rebalance() -> None:
    found = rows([NEW, TWO], OVERTAKEN)
    assert [A, B] == sorted(e["member_id"] for e in found["group_events"] if e["kind"] == "joined")
    assert [(-100, 1)] == [e[:2] for e in events(found, "failed_rebalance")]
    [first] = found["generations"]
    assert (1, [A, B]) == (first["skipped_generations"], first["joined_member_ids"])
    assert "first_member" == first["trigger"]


def test_lines_of_a_group_s_former_life_are_no_attempts_of_its_new_one() -> None:
    found = rows([ALONE, tombstone(5_000), generation(0, 6_000, [], protocol=None), TWO], [stabilized(10, 1)])
    assert [] == events(found, "failed_rebalance")


def test_a_number_that_goes_back_begins_anew_without_stops_or_arrivals() -> None:
    later = generation(7, 9_000, [consumer("a", [0]), consumer("b", [1])])
    back = generation(5, 60_000, [consumer("a", [0, 1])])
    found = rows([later, back])
    assert [(r["incarnation"], r["generation_id"], r["skipped_generations"]) for r in found["generations"]] == [
        (0, 7, None),
        (1, 5, None),
    ]
    assert found["stalls"] == []
    assert events(found, "joined") == events(found, "left") == []


def test_a_truncated_history_tells_of_no_arrivals_and_no_missing_numbers() -> None:
    found = rows([generation(40, 0, [consumer("a", [0])]), generation(44, 9_000, [consumer("a", [0])])])
    assert [r["skipped_generations"] for r in found["generations"]] == [None, None]
    assert [r["joined_member_ids"] for r in found["generations"]] == [None, []]
    assert events(found, "joined") == events(found, "failed_rebalance") == []


def test_attempts_that_overtake_each_other_are_failed_rebalances_before_any_of_them_completes() -> None:
    lines = [preparing(1_000, 1), stabilized(1_100, 2), preparing(2_000, 2), stabilized(2_100, 3), preparing(3_000, 3)]
    found = rows([ALONE], lines)
    assert [(1_100, 2), (2_100, 3)] == [e[:2] for e in events(found, "failed_rebalance")]
    assert {e["evidence"] for e in found["group_events"] if e["kind"] == "failed_rebalance"} == {"inferred"}


def test_a_generation_whose_record_was_not_read_yet_is_no_failed_rebalance() -> None:
    lines = [preparing(1_000, 1), stabilized(1_100, 2), assigned(1_105, 2), preparing(2_000, 2)]
    assert events(rows([ALONE], lines), "failed_rebalance") == []


def test_a_rebalance_that_nobody_joined_or_that_could_not_be_stored_failed() -> None:
    lines = [
        broker_line(1_000, "Group orders could not complete rebalance because no members rejoined."),
        broker_line(2_000, "Failed to write empty metadata for group orders: The coordinator is loading."),
    ]
    assert [
        (1_000, "no member joined again"),
        (2_000, "the assignment could not be stored: The coordinator is loading."),
    ] == [(at, detail) for at, _, detail in events(rows([ALONE], lines), "failed_rebalance")]


def test_a_deleted_group_begins_anew() -> None:
    found = rows([ALONE, tombstone(5_000), generation(1, 9_000, [consumer("b", [0, 1])])])
    assert [(r["incarnation"], r["generation_id"]) for r in found["generations"]] == [(0, 1), (1, 1)]
    assert found["stalls"] == []


def test_the_same_lines_of_two_brokers_in_any_order_give_the_same_rows() -> None:
    assert rows([ALONE, TWO], LOST[::-1]) == rows([ALONE, TWO], [*LOST, *LOST])


def failed_over(commits: list[tuple[int, int, int]], *, expired_at: int = 37_000) -> Any:
    """Broker 2 loads the group at 27 s; B comes back as C at 28 s; everybody waits for B until its session ends."""
    gone = f"Member {B} in group orders has failed, removing it from the group."
    lines = [
        loaded(27_000, broker=2),
        preparing(28_000, 1, broker=2),
        broker_line(expired_at, gone, broker=2),
        stabilized(expired_at, 2, broker=2),
    ]
    first = generation(1, 0, [consumer("a", [0]), consumer("b", [1])])
    second = generation(2, expired_at, [consumer("a", [0]), consumer("c", [1])])
    a_works = [(at, 0, at) for at in range(1_000, 20_001, 1_000)]
    found = rows([first, second], lines, [*a_works, *commits])
    (stall,) = (s for s in found["stalls"] if s["from_member_id"] == B)
    return stall


def b_works(until: int) -> list[tuple[int, int, int]]:
    return [(at, 1, at) for at in range(1_000, until + 1, 1_000)]


def test_a_member_that_a_new_coordinator_does_not_know_stopped_before_its_delayed_commit() -> None:
    """B learned of it at 26.5 s; its commit was written again at 28 s, with the progress until then."""
    stall = failed_over([*b_works(20_000), (28_000, 1, 26_500)])
    assert 20_000 <= stall["stopped_at_earliest"] - START <= 26_500 <= stall["stopped_at_latest"] - START
    assert abs(37_005 - 26_500 - stall["stopped_ms"]) < 100, "its progress tells when it stopped"


def test_a_delayed_commit_without_a_rate_leaves_the_load_as_the_best_estimate() -> None:
    stall = failed_over([(19_000, 1, 19_000), (28_000, 1, 26_500)])
    assert stall["stopped_at_earliest"] - START <= 26_500 <= stall["stopped_at_latest"] - START
    assert 37_005 - 27_000 == stall["stopped_ms"]


def test_long_after_a_failover_the_end_of_a_session_tells_when_the_member_was_alive() -> None:
    stall = failed_over([*b_works(60_000)], expired_at=70_000)
    assert stall["stopped_at_earliest"] - START >= 59_000


def test_a_newcomer_before_the_leader_synced_begins_the_join_phase_anew() -> None:
    lines = [preparing(30_000, 1), stabilized(31_000, 2)]
    (row,) = rows([ALONE], lines)["groups"]
    assert ("CompletingRebalance", START + 30_000) == (row["state"], row["open_rebalance_since_at"])
    (row,) = rows([ALONE], [*lines, preparing(32_000, 2)])["groups"]
    assert ("PreparingRebalance", START + 30_000) == (row["state"], row["open_rebalance_since_at"])


def test_an_assignment_that_could_not_be_stored_gave_nobody_anything() -> None:
    """Its record was written after the coordinator had sent an error, so the topic contains the record nevertheless."""
    reason = f"Error COORDINATOR_NOT_AVAILABLE when storing group assignmentduring SyncGroup (member: {A})."
    text = f"Preparing to rebalance group orders in state PreparingRebalance with old generation 2 (reason: {reason})."
    again = generation(3, 15_000, [consumer("a", [0], from_generation=1), consumer("b", [1])])
    lines = [
        preparing(8_000, 1),
        stabilized(9_000, 2),
        assigned(9_005, 2),
        broker_line(14_000, text),
        stabilized(15_000, 3),
        assigned(15_005, 3),
    ]
    found = rows([ALONE, TWO, again], lines)
    assert [(2, 3, 15_005)] * 2 == [
        (s["generation_id"], s["resumed_generation_id"], s["resumed_at_earliest"] - START) for s in found["stalls"]
    ]
