"""A task of Kafka Streams resumes with its own first commit, not with its assignment: first its state is restored."""

from __future__ import annotations

from pipelines.silver.generations import ResumeState
from pipelines.silver.rows import silver_rows
from schemas.rows import SilverRows
from schemas.states import RebalanceMode
from tests.silver.handmade import START, Commit, Record, generation, history
from tests.silver.test_determinism import comparable, is_after, since
from tests.silver.test_other_groups import streams

RATE = 10
"""Milliseconds per record."""


def steady(since_ms: int, until: int, partition: int) -> list[Commit]:
    return [(at, partition, at // RATE) for at in range(since_ms, until + 1, 1_000)]


def given(*members: Record, number: int, at: int) -> Record:
    return generation(number, at, members, protocol="stream")


MOVED = [
    given(streams("a", [0]), streams("b", [1]), number=1, at=0),
    given(streams("a", [0, 1]), number=2, at=20_000),
]
WORKED = [*steady(1_000, 80_000, 0), *steady(1_000, 10_000, 1)]


def the_stall(found: SilverRows) -> tuple[int, int, int | None]:
    """Bounds and estimate, in milliseconds after START, of the end of the only stall of partition 1."""
    (stall,) = (s for s in found["stalls"] if s["index"] == 1)
    assert stall["resumed_at_earliest"] is not None
    assert stall["resumed_at_latest"] is not None
    assert stall["stopped_ms"] is not None
    return (
        stall["resumed_at_earliest"] - START,
        stall["resumed_at_latest"] - START,
        stall["resumed_generation_id"],
    )


def test_the_first_commit_bounds_the_restoration_however_long_it_took() -> None:
    found = silver_rows(history(MOVED, commits=[*WORKED, *steady(50_000, 80_000, 1)]), 10_000)
    assert (20_005, 50_000, 2) == the_stall(found)
    (stall,) = (s for s in found["stalls"] if s["index"] == 1)
    # It was restored at 49,000 at the latest, because it commits every second.
    restored = 20_005 + 0.8 * (49_000 - 20_005)
    assert round(restored) - 10_500 == stall["stopped_ms"]


def test_the_first_commit_may_come_generations_later() -> None:
    records = [*MOVED, given(streams("a", [0, 1]), streams("c", []), number=3, at=30_000)]
    records[1]["value"]["members"][0]["subscription"]["ownedPartitions"] = {"orders": [0]}
    records[2]["value"]["members"][0]["subscription"]["ownedPartitions"] = {"orders": [0, 1]}
    found = silver_rows(history(records, commits=[*WORKED, *steady(50_000, 80_000, 1)]), 10_000)
    assert (20_005, 50_000, 2) == the_stall(found)


def test_a_task_that_moves_on_before_it_was_restored_is_one_stall() -> None:
    records = [*MOVED, given(streams("a", [0]), streams("c", [1]), number=3, at=30_000)]
    found = silver_rows(history(records, commits=[*WORKED, *steady(50_000, 80_000, 1)]), 10_000)
    assert (30_005, 50_000, 3) == the_stall(found)


def test_a_task_without_records_resumes_with_its_assignment() -> None:
    found = silver_rows(history(MOVED, commits=steady(1_000, 80_000, 0)), 10_000)
    assert (20_005, 25_005, 2) == the_stall(found)


def test_a_rebuild_from_any_base_gives_the_rows_of_a_whole_rebuild() -> None:
    members = [streams("a", [0, 1]), streams("c", [])], [streams("a", [0]), streams("c", [1])]
    records = [*MOVED, *(given(*members[n % 2], number=n, at=n * 20_000) for n in range(3, 9))]
    commits = [*WORKED, *steady(81_000, 200_000, 0), *steady(65_000, 200_000, 1)]
    whole_history = history(records, commits=commits)
    whole = silver_rows(whole_history, 10)
    of_number = {g["generation_id"]: g for g in whole["generations"]}
    bases = [episode for episode in whole["rebalances"] if episode["base_offset"] is not None]
    for episode in bases:
        base = ResumeState(
            position=(episode["base_log_epoch"], episode["base_offset"]),
            incarnation=episode["incarnation"],
            mode=RebalanceMode(episode["base_rebalance_mode"]),
            first_seen_at=whole["groups"][0]["first_seen_at"],
        )
        first = dict(of_number[episode["first_generation_id"]]) | {"base_at": episode["base_at"]}
        expected = {t: [r for r in of_table if is_after(t, r, first)] for t, of_table in whole.items()}
        assert comparable(expected) == comparable(silver_rows(since(whole_history, base), 10, base))
    assert len(bases) > 2
