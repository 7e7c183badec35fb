"""A rebuild from any point of a history that is not at rest gives the rows of a whole rebuild, and the same points."""

from __future__ import annotations

from dataclasses import replace
from hashlib import md5
from typing import Any

import pytest

from jobs.replay import Capture
from pipelines.silver.carrying import valid_points
from pipelines.silver.coordinator_assigned import state_points
from pipelines.silver.generations import ResumeState
from pipelines.silver.history import History
from pipelines.silver.rows import silver_rows
from schemas.states import RebalanceMode
from testing.recordings import CAPTURES
from testing.warehouses.rebuilding import batches, histories
from tests.silver.handmade import consumer, generation, history
from tests.silver.resuming.test_crash_loops import A_WORKS, B_WORKED, D_WORKS, LIVES, steady
from tests.silver.test_connect_simulated import Simulation
from tests.silver.test_determinism import comparable, is_after, since

NAMES = sorted(path.name for path in CAPTURES.iterdir() if path.is_dir())
Row = dict[str, Any]


@pytest.fixture(autouse=True)
def every_generation(monkeypatch) -> None:
    monkeypatch.setattr(valid_points, "EVERY", 1)
    monkeypatch.setattr(state_points, "EVERY", 1)


def base_of(point: Row, first_seen_at: int | None) -> ResumeState:
    return ResumeState(
        position=(point["base_log_epoch"], point["base_offset"]),
        incarnation=point["incarnation"],
        mode=RebalanceMode(point["base_rebalance_mode"]),
        first_seen_at=first_seen_at,
        carried=point["state"],
    )


def is_replaced(table: str, row: Row, point: Row) -> bool:
    """Return whether a rebuild from the point replaces the row, as `resume_points.after_base` decides in SQL."""
    if table == "stalls":
        name = md5(row["name"].encode(), usedforsecurity=False).hexdigest()
        unfinished = f"|{row['stopped_by_offset']}/{row['index']}/{name}|" in point["unfinished_stalls"]
        if unfinished and row["incarnation"] == point["incarnation"]:
            return True
    if table == "rebalances":
        unfinished = f"|{row['first_generation_id']}|" in point["unfinished_rebalances"]
        if unfinished and row["incarnation"] == point["incarnation"]:
            return True
    return is_after(table, row, point | {"generation_id": point["first_generation_id"]})


def resumed_from_each(given: History, quiet_ms: int) -> int:
    """Check that a rebuild from each point gives the rows of a whole rebuild; return the number of points."""
    whole = silver_rows(given, quiet_ms)
    for point in whole["resume_points"]:
        base = base_of(point, whole["groups"][0]["first_seen_at"])
        expected = {table: [r for r in rows if is_replaced(table, r, point)] for table, rows in whole.items()}
        found = silver_rows(since(given, base), quiet_ms, base)
        assert comparable(expected) == comparable(found)
    return len(whole["resume_points"])


@pytest.mark.parametrize("sources", ["offsets", "offsets,log"])
@pytest.mark.parametrize("name", NAMES)
def test_recorded_histories(name, sources) -> None:
    for given in histories(batches(name, sources=sources), Capture(CAPTURES / name).meta):
        for quiet_ms in (10, 10_000):
            resumed_from_each(given, quiet_ms)


@pytest.mark.parametrize("seed", range(30))
def test_simulated_connect_groups(seed) -> None:
    simulated = Simulation(seed)
    simulated.live(40)
    assert resumed_from_each(history(simulated.records), 10_000) > 3


@pytest.mark.parametrize("records", LIVES.values(), ids=LIVES)
def test_loops_of_crashes_within_which_the_same_stall_goes_on(records) -> None:
    records = [*records, *(generation(n, n * 20_000, [consumer("a", [0, 1])]) for n in range(8, 11))]
    given = history(records, commits=[*A_WORKS, *B_WORKED, *D_WORKS, *steady(121_000, 220_000, 0)])
    assert resumed_from_each(given, 10) >= 3
    assert resumed_from_each(given, 30_000) >= 3


def test_a_loop_in_which_every_partition_has_an_owner_has_points_too(monkeypatch) -> None:
    monkeypatch.setattr(valid_points, "EVERY", 500)
    records = [generation(n, n * 10, [consumer("a", [0]), consumer("b", [1])]) for n in range(1, 1_201)]
    given = history(records, commits=steady(1_000, 12_000, 0))
    found = silver_rows(given, 10_000)
    # The blocks of this group begin 162 numbers earlier.
    blocks = [(p["first_generation_id"], p["block_until_generation_id"]) for p in found["resume_points"]]
    assert [(338, 838), (838, 1_338)] == blocks
    assert [True, True] == [p["begins_block"] for p in found["resume_points"]]
    (episode,) = found["rebalances"]
    assert (1, 1_200, 1_200) == tuple(episode[n] for n in ("first_generation_id", "last_generation_id", "generations"))
    assert 2 == resumed_from_each(given, 10_000)


def test_a_slow_group_that_does_not_rest_has_a_point_every_minute_and_a_block_every_five(monkeypatch) -> None:
    monkeypatch.setattr(valid_points, "EVERY", 500)
    records = [generation(n, n * 9_000, [consumer("a", [0]), consumer("b", [1])]) for n in range(1, 101)]
    given = history(records)
    assert 15 == resumed_from_each(given, 10_000)
    assert 3 == sum(point["begins_block"] is True for point in silver_rows(given, 10_000)["resume_points"])
    assert not silver_rows(given, 8_000)["resume_points"], "with this pause, each generation begins at rest"


def test_a_large_group_has_a_point_before_each_generation(monkeypatch) -> None:
    monkeypatch.setattr(valid_points, "EVERY", 500)
    records = [generation(n, n * 9_000, [consumer("a", [0]), consumer("b", [1])]) for n in range(1, 41)]
    given = history(records, commits=steady(1_000, 350_000, 0))
    monkeypatch.setattr(valid_points, "LARGE", 3)
    assert 6 == resumed_from_each(given, 10_000)
    monkeypatch.setattr(valid_points, "LARGE", 2)
    assert 39 == resumed_from_each(given, 10_000)
    assert 1 == sum(point["begins_block"] is True for point in silver_rows(given, 10_000)["resume_points"])


def test_a_group_has_more_points_while_it_is_large(monkeypatch) -> None:
    monkeypatch.setattr(valid_points, "EVERY", 500)
    monkeypatch.setattr(valid_points, "LARGE", 3)
    few, many = [consumer("a", [0]), consumer("b", [1])], [consumer("a", [0]), consumer("b", [1]), consumer("c", [2])]
    records = [generation(n, n * 2_000, many if 10 < n <= 15 else few) for n in range(1, 31)]
    begun = [p["first_generation_id"] for p in silver_rows(history(records), 10_000)["resume_points"]]
    assert {11, 12, 13, 14, 15} <= {*begun}
    assert len(begun) <= 7
    assert len(begun) == resumed_from_each(history(records), 10_000)


def test_blocks_of_different_groups_begin_at_different_numbers_and_times(monkeypatch) -> None:
    monkeypatch.setattr(valid_points, "EVERY", 500)
    records = [generation(n, n * 2_000, [consumer("a", [0]), consumer("b", [1])]) for n in range(1, 601)]
    given = history(records)
    numbers, times = set(), set()
    for group in range(100):
        rows = silver_rows(replace(given, group_id=f"orders-{group}"), 10_000)
        for point in rows["resume_points"]:
            assert point["first_generation_id"] < point["block_until_generation_id"]
            assert point["settled_at"] < point["block_until_at"] <= point["settled_at"] + 300_000
            numbers.add(point["block_until_generation_id"] % 500)
            times.add(point["block_until_at"] // 10_000 % 30)
    assert len(numbers) > 80
    assert len(times) > 25
