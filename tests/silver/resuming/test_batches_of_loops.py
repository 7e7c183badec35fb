"""Batches that resume within a history that is not at rest give the tables of one batch, whichever batches they are."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from jobs.config.settings import Settings
from jobs.replay import Capture, CaptureRecords, replay, split
from jobs.silver.inputs import SilverInputs
from jobs.tables.create_tables import create_tables
from jobs.tables.paths import table_path
from pipelines.silver.carrying import valid_points
from pipelines.silver.coordinator_assigned import state_points
from schemas.bronze import BRONZE
from schemas.gold import MARKS
from schemas.silver import REASSIGNMENT_TABLES, REBALANCES, RESUME_POINTS, SILVER, STALLS
from testing.recordings import CAPTURES
from testing.records.endless import going_on

META: dict[str, Any] = {}

BETWEEN_BLOCKS, WITHIN_BLOCKS = (2, 60_000), (1_000, 1)
"""Generations of a block, and milliseconds between the points within one."""


@pytest.fixture
def resumed(monkeypatch, request) -> list[int]:
    """Return how many groups of each batch resumed with a state; points are close together."""
    found: list[int] = []
    restarts = SilverInputs.restarts

    def counted(inputs: SilverInputs) -> Any:
        known = restarts(inputs)
        found.append(pc.sum(pc.is_valid(known["state"])).as_py() or 0)
        return known

    monkeypatch.setattr(SilverInputs, "restarts", counted)
    every, within_ms = getattr(request, "param", BETWEEN_BLOCKS)
    monkeypatch.setattr(valid_points, "EVERY", every)
    monkeypatch.setattr(valid_points, "WITHIN_MS", within_ms)
    monkeypatch.setattr(state_points, "EVERY", 1)
    return found


def tables_of(
    warehouse: Path, given: list[CaptureRecords], meta: dict[str, Any], quiet_ms: int = 1_000
) -> dict[str, list[str]]:
    settings = Settings(warehouse=warehouse, quiet_ms=quiet_ms)
    create_tables(None, warehouse, (*BRONZE, *SILVER, *REASSIGNMENT_TABLES, MARKS))
    for batch in given:
        replay(None, settings, "kafka", meta, batch)
    out = {}
    for table in SILVER:
        stored = DeltaTable(table_path(warehouse, table)).to_pyarrow_table(columns=list(table.names))
        out[table.name] = sorted(map(repr, stored.to_pylist()))
    return out


@pytest.mark.parametrize(
    ("name", "quiet_ms", "resumed"),
    [
        ("connect_mismatch", 1_000, BETWEEN_BLOCKS),
        ("connect_mismatch", 1_000, WITHIN_BLOCKS),
        ("refused_assignments", 1_000, BETWEEN_BLOCKS),
        ("eager_churn", 60_000, BETWEEN_BLOCKS),
        ("eager_churn", 60_000, WITHIN_BLOCKS),
        ("rolling_restart", 60_000, BETWEEN_BLOCKS),
        ("share_registry", 60_000, BETWEEN_BLOCKS),
        ("streams", 60_000, BETWEEN_BLOCKS),
    ],
    indirect=["resumed"],
)
def test_a_recorded_history(tmp_path, resumed, name, quiet_ms) -> None:
    capture = Capture(CAPTURES / name)
    whole = tables_of(tmp_path / "whole", split(capture, ("offsets", "log"), 1, None), capture.meta, quiet_ms)
    assert not sum(resumed)
    parts = split(capture, ("offsets", "log"), 15, 3)
    found = tables_of(tmp_path / "parts", parts, capture.meta, quiet_ms)
    assert {} == {name: (rows, found[name]) for name, rows in whole.items() if rows != found[name]}
    assert sum(resumed)


@pytest.mark.parametrize(
    ("seed", "resumed"), [(1, BETWEEN_BLOCKS), (2, BETWEEN_BLOCKS), (2, WITHIN_BLOCKS)], indirect=["resumed"]
)
def test_a_loop_while_stalls_of_an_earlier_episode_go_on(tmp_path, resumed, seed) -> None:
    recorded = list(Capture(CAPTURES / "connect_mismatch").records())
    records = [*recorded, *going_on(recorded[-1], 100, 200)]
    whole = tables_of(tmp_path / "whole", [CaptureRecords(records=records)], META)
    random, parts, begun = Random(seed), [CaptureRecords(records=recorded)], len(recorded)
    while begun < len(records):
        until = begun + random.randint(1, 25)
        parts.append(CaptureRecords(records=records[begun:until]))
        begun = until
    assert whole == tables_of(tmp_path / "parts", parts, META)
    assert sum(resumed) > 4
    assert any("'resumed_at_latest': None" in row for row in whole[STALLS.name])
    (last,) = (row for row in whole[REBALANCES.name] if "'first_generation_id': 11" in row)
    assert "'generations': 138" in last, "one episode"


def test_a_slow_loop_reads_whole_blocks_at_its_first_two_borders_only(tmp_path, monkeypatch) -> None:
    read: list[int] = []
    history = SilverInputs.history

    def counted(inputs: SilverInputs, points: pa.Table) -> dict[str, pa.Table] | None:
        found = history(inputs, points)
        if found is not None:
            read.append(found["record"].num_rows)
        return found

    monkeypatch.setattr(SilverInputs, "history", counted)
    recorded = list(Capture(CAPTURES / "connect_mismatch").records())
    loop = list(going_on(recorded[-1], 100, 9_000))
    given = [CaptureRecords(records=recorded), *(CaptureRecords(records=[record]) for record in loop)]
    points = tables_of(tmp_path, given, META, 20_000)[RESUME_POINTS.name]
    assert sum("'begins_block': True" in point for point in points) >= 2
    # At the first two borders, no block is known from whose beginning a rebuild could resume.
    *usual, second, first = sorted(read[3:])
    assert first == 91
    assert second == 57
    assert max(usual) == 9, "the generations of a minute and the previous ones"
