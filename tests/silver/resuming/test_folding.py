"""Generations of a loop that differ in number and times only are one row, and all counts stay the same."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from jobs.captures.recording import Capture
from jobs.replay import CaptureRecords
from pipelines.gold.health import health_rows
from pipelines.gold.storms.disturbances import disturbances
from pipelines.gold.storms.storms import number_of
from pipelines.silver.carrying import folding, valid_points
from pipelines.silver.history import History
from pipelines.silver.rows import silver_rows
from schemas.folded_rows import count_of
from testing.recordings import CAPTURES
from testing.records.endless import going_on
from testing.warehouses.rebuilding import histories
from tests.silver.handmade import history
from tests.silver.resuming.test_batches_of_loops import META, tables_of
from tests.silver.resuming.test_carried_points import resumed_from_each
from tests.silver.test_connect_simulated import Simulation

WHOLE = 10
LOOP = 2_100
"""Generations of the loop: more than four blocks by number, and two by time."""


def recorded(count: int = LOOP, apart_ms: int = 200) -> list[Any]:
    begun = list(Capture(CAPTURES / "connect_mismatch").records())
    return [*begun, *going_on(begun[-1], count, apart_ms)]


def looping(count: int = LOOP) -> History:
    (found,) = histories([CaptureRecords(records=recorded(count))], Capture(CAPTURES / "connect_mismatch").meta)
    return found


@pytest.fixture(scope="module")
def rows() -> dict[str, tuple[Any, Any]]:
    """Return by table the rows of a loop as they are stored, and the same without folding."""
    given = looping()
    stored = silver_rows(given, 1_000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folding, "WHOLE", 1 << 40)
        whole = silver_rows(given, 1_000)
    return {name: (stored[name], whole[name]) for name in whole}  # type: ignore[literal-required]


def test_generations_between_the_first_and_last_hundreds_are_folded(rows) -> None:
    stored, whole = rows["generations"]
    assert count_of(stored) == len(whole)
    assert len(stored) < len(whole) / 1.5
    folded = [g for g in stored if g["folded_count"]]
    assert all(g["folded_count"] >= folding.WHOLE for g in folded)
    assert whole[: folding.WHOLE] == stored[: folding.WHOLE]
    assert whole[-folding.WHOLE :] == stored[-folding.WHOLE :]
    for g in folded:
        meant = [each for each in whole if g["generation_id"] <= each["generation_id"] <= g["last_generation_id"]]
        assert len(meant) == g["folded_count"]
        assert g["last_completed_at"] == meant[-1]["completed_at"]
        of_folded = ("folded_count", "last_generation_id", "last_completed_at", "unstable_ms")
        assert meant[0] == g | dict.fromkeys(of_folded)


def test_members_of_a_folded_row_last_until_its_last_generation(rows) -> None:
    stored, whole = rows["generation_members"]
    folded = {g["generation_id"]: g["last_generation_id"] for g in rows["generations"][0] if g["folded_count"]}
    ends = {(m["generation_id"], m["member_id"]): m["valid_to_at"] for m in whole}
    assert folded
    for first, last in folded.items():
        mine = [m for m in stored if m["generation_id"] == first]
        assert mine
        assert {m["member_id"]: m["valid_to_at"] for m in mine} == {
            m["member_id"]: ends[last, m["member_id"]] for m in mine
        }


def test_every_event_is_counted(rows) -> None:
    stored, whole = rows["group_events"]
    assert len(stored) < len(whole)
    kinds = {e["kind"] for e in whole}
    assert {k: sum(e["kind"] == k for e in whole) for k in kinds} == {
        k: count_of(e for e in stored if e["kind"] == k) for k in kinds
    }


def test_nothing_else_changes(rows) -> None:
    for name in ("stalls", "groups", "rebalances", "resume_points"):
        stored, whole = rows[name]
        assert stored == whole, name
    known = {g["generation_id"] for g in rows["generations"][0]}
    assert {s["generation_id"] for s in rows["stalls"][0]} <= known


def test_health_counts_the_same(rows) -> None:
    found, expected = (
        [
            (row["hour_at"], row["rebalances"], row["unstable_ms"], row["lost_resource_seconds"])
            for row in health_rows({name: both[at] for name, both in rows.items()}, 1 << 50)  # type: ignore[arg-type]
        ]
        for at in (0, 1)
    )
    assert expected == found


def test_storms_count_the_same(rows) -> None:
    folded, whole = (disturbances("branch-connect", rows["generations"][at], rows["group_events"][at]) for at in (0, 1))
    assert len(folded) < len(whole) / 1.5
    assert number_of(folded) == number_of(whole) == len(whole)


@pytest.mark.parametrize("seed", range(15))
def test_a_rebuild_from_any_point_folds_the_same(seed, monkeypatch) -> None:
    monkeypatch.setattr(valid_points, "EVERY", 4)
    # A rebuild that may fold begins where a block begins.
    monkeypatch.setattr(valid_points, "WITHIN_MS", valid_points.EVERY_MS)
    monkeypatch.setattr(folding, "WHOLE", 1)
    simulated = Simulation(seed)
    simulated.live(60)
    given = history(simulated.records)
    assert resumed_from_each(given, 10_000) > 3
    assert any(g["folded_count"] for g in silver_rows(given, 10_000)["generations"])


@pytest.mark.parametrize(
    ("seed", "apart_ms", "every", "every_ms", "within_ms", "large"),
    [
        (1, 200, WHOLE, 300_000, 60_000, 1_000),
        (2, 200, WHOLE, 300_000, 60_000, 1_000),
        (1, 200, WHOLE, 300_000, 1, 1_000),
        (1, 5_000, 1_000, 60_000, 20_000, 1_000),
        (2, 5_000, WHOLE, 60_000, 1, 1_000),
        (1, 200, WHOLE, 300_000, 60_000, 1),
    ],
    ids=["one", "another", "points within blocks", "blocks by time", "blocks by number and time", "a large group"],
)
def test_any_batches_fold_the_same(
    tmp_path: Path, monkeypatch, seed, apart_ms, every, every_ms, within_ms, large
) -> None:
    for name, value in {"EVERY": every, "EVERY_MS": every_ms, "WITHIN_MS": within_ms, "LARGE": large}.items():
        monkeypatch.setattr(valid_points, name, value)
    monkeypatch.setattr(folding, "WHOLE", WHOLE - 3)
    random, records, quiet_ms = Random(seed), recorded(120, apart_ms), max(1_000, 2 * apart_ms)
    begun = len(records) - 120
    parts = [CaptureRecords(records=records[:begun])]
    while begun < len(records):
        until = begun + random.choice((1, 3, 12, 25))
        parts.append(CaptureRecords(records=records[begun:until]))
        begun = until
    whole = tables_of(tmp_path / "whole", [CaptureRecords(records=records)], META, quiet_ms)
    assert any("'folded_count': 1" in row for row in whole["generations"])
    assert whole == tables_of(tmp_path / "parts", parts, META, quiet_ms)
