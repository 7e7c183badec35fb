"""A member that is gone again before it commits resumed nothing: its stalls and the stall before them are one stall."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.silver.generations import ResumeState
from pipelines.silver.rows import silver_rows
from schemas.states import RebalanceMode
from tests.silver.handmade import (
    START,
    Commit,
    Record,
    consumer,
    generation,
    history,
    rows,
)
from tests.silver.test_determinism import comparable, is_after, since

DIED = 10_000
"""Milliseconds after START of the last commits of the first owner of partition 1."""


def steady(since_ms: int, until: int, partition: int) -> list[Commit]:
    """Commits with progress every second, at one record per 10 ms."""
    return [(at, partition, at // 10) for at in range(since_ms, until + 1, 1_000)]


A_WORKS = steady(1_000, 120_000, 0)
B_WORKED = steady(1_000, DIED, 1)
D_WORKS = steady(61_000, 120_000, 1)


def loop(*owners: str, first: int = 20_000, spacing: int = 10_000) -> list[Record]:
    """A keeps partition 0. Partition 1 has another, new owner in each generation."""
    started = generation(1, 0, [consumer("a", [0]), consumer("b", [1])])
    later = [
        generation(n + 2, first + n * spacing, [consumer("a", [0]), consumer(owner, [1])])
        for n, owner in enumerate(owners)
    ]
    return [started, *later]


def of_partition(found: Any, partition: int = 1) -> list[tuple[int, int | None, str, str | None]]:
    """Generation of the stop, generation of the resumption, former owner and next owner of each stall."""
    return [
        (s["generation_id"], s["resumed_generation_id"], s["from_member_id"][:1], (s["to_member_id"] or "-")[:1])
        for s in sorted(found["stalls"], key=lambda s: s["stopped_by_offset"])
        if s["index"] == partition
    ]


def test_owners_that_never_commit_before_they_are_gone_make_one_stall() -> None:
    found = rows(loop("c", "e", "f", "g", "d"), commits=[*A_WORKS, *B_WORKED, *D_WORKS])
    assert [(2, 6, "b", "d")] == of_partition(found)
    (stall,) = (s for s in found["stalls"] if s["index"] == 1)
    assert DIED <= stall["stopped_at_latest"] - START
    assert 60_005 == stall["resumed_at_earliest"] - START
    assert 60_005 - DIED - 500 == stall["stopped_ms"], "it died half a commit interval after its last commit"
    assert "inferred" == stall["evidence"]
    assert 5 == len(of_partition(found, 0)), "the other member gave up and resumed each time"


def test_while_nobody_resumes_the_stall_stays_open() -> None:
    found = rows([*loop("c", "e"), generation(4, 45_000, [consumer("a", [0])])], commits=[*A_WORKS, *B_WORKED])
    assert [(2, None, "b", "-")] == of_partition(found)


def test_an_owner_that_committed_resumed() -> None:
    found = rows(loop("c", "d"), commits=[*A_WORKS, *B_WORKED, (21_000, 1, 1_100), *D_WORKS])
    assert [(2, 2, "b", "c"), (3, 3, "c", "d")] == of_partition(found)


@pytest.mark.parametrize(
    "before",
    [
        pytest.param([(at, 1, 100) for at in range(1_000, DIED, 1_000)], id="nothing came before either"),
        pytest.param(steady(1_000, 4_000, 1), id="nothing came to any member for long before the stop"),
        pytest.param([(1_000, 1, 1), (9_500, 1, 2)], id="a record every eight seconds"),
        pytest.param([], id="the group does not commit"),
    ],
)
def test_an_owner_that_had_nothing_to_commit_resumed(before: list[Commit]) -> None:
    records = loop("c", "d", first=11_000, spacing=4_000)
    found = rows(records, commits=[*steady(1_000, 4_000, 0), *before])
    assert [(2, 2, "b", "c"), (3, 3, "c", "d")] == of_partition(found)


def test_an_owner_that_committed_in_an_earlier_generation_is_not_new() -> None:
    records = [
        generation(1, 0, [consumer("a", [0]), consumer("b", [1])]),
        generation(2, 20_000, [consumer("a", [1]), consumer("c", [0])]),
        generation(3, 30_000, [consumer("c", [0, 1])]),
    ]
    found = rows(records, commits=[*steady(1_000, 19_000, 0), *B_WORKED])
    assert [(2, 2, "b", "a"), (3, 3, "a", "c")] == of_partition(found)


def test_a_rebalance_while_the_new_member_lives_does_not_make_it_an_owner_that_resumed() -> None:
    records = [
        *loop("c"),
        generation(3, 24_000, [consumer("a", []), consumer("c", [1]), consumer("e", [0])]),
        generation(4, 30_000, [consumer("a", [1]), consumer("e", [0])]),
    ]
    found = rows(records, commits=[*steady(1_000, 23_000, 0), *B_WORKED, *steady(31_000, 60_000, 1)])
    assert [(2, 4, "b", "a")] == of_partition(found)


def test_a_static_member_that_crashes_in_a_loop_makes_one_stall() -> None:
    def static(process: str) -> Record:
        return consumer(process, [1]) | {"groupInstanceId": "b"}

    first = generation(1, 0, [consumer("a", [0]), static("b")])

    def replaced(at: int, process: str) -> Record:
        again = generation(1, 0, [consumer("a", [0]), static(process)])
        return again | {"at": START + at}

    records = [first, replaced(15_000, "c"), replaced(20_000, "e"), replaced(25_000, "d")]
    found = rows(records, commits=[*A_WORKS, *B_WORKED, *steady(26_000, 60_000, 1)])
    assert [(1, 1, "b", "d")] == of_partition(found)
    (stall,) = (s for s in found["stalls"] if s["index"] == 1)
    assert (25_000, "static_restart") == (stall["resumed_at_earliest"] - START, stall["cause"])


LIVES = {
    "a loop": loop("c", "e", "f", "g", "d"),
    "a loop that goes on": loop("c", "e", "f", "g"),
    "two loops": loop("c", "e", "d", "f", "g", "d"),
}


@pytest.mark.parametrize("records", LIVES.values(), ids=LIVES)
def test_a_rebuild_from_any_base_gives_the_rows_of_a_whole_rebuild(records: list[Record]) -> None:
    records = [*records, *(generation(n, n * 20_000, [consumer("a", [0, 1])]) for n in range(8, 11))]
    given = history(records, commits=[*A_WORKS, *B_WORKED, *D_WORKS, *steady(121_000, 220_000, 0)])
    whole, bases = silver_rows(given, 10), 0
    of_number = {g["generation_id"]: g for g in whole["generations"]}
    for episode in whole["rebalances"]:
        if episode["base_offset"] is None:
            continue
        base = ResumeState(
            position=(episode["base_log_epoch"], episode["base_offset"]),
            incarnation=episode["incarnation"],
            mode=RebalanceMode(episode["base_rebalance_mode"]),
            first_seen_at=whole["groups"][0]["first_seen_at"],
        )
        first: dict[str, Any] = dict(of_number[episode["first_generation_id"]]) | {"base_at": episode["base_at"]}
        expected = {t: [r for r in of_table if is_after(t, r, first)] for t, of_table in whole.items()}
        assert comparable(expected) == comparable(silver_rows(since(given, base), 10, base))
        bases += 1
    assert bases


def test_no_base_lies_within_the_stall_of_a_crash_loop() -> None:
    found = silver_rows(history(loop("c", "e", "d"), commits=[*A_WORKS, *B_WORKED, *D_WORKS]), 10)
    bases = {e["first_generation_id"]: e["base_offset"] for e in found["rebalances"]}
    assert {1: None, 2: 0, 3: None, 4: None} == bases


def test_members_that_came_and_went_are_no_loop_if_each_worked() -> None:
    works = [c for at in (21_000, 31_000, 41_000) for c in ((at, 1, at // 10), (at + 5_000, 1, at // 10 + 500))]
    found = rows(loop("c", "e", "f"), commits=[*A_WORKS, *B_WORKED, *works])
    assert 3 == len(of_partition(found))
