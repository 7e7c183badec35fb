"""The rows that are cached of each rebuild are the rows that the tables have."""

from __future__ import annotations

import pyarrow as pa
import pytest

from jobs.config.settings import Settings
from jobs.replay import Capture, replay, split
from jobs.retention.compact import compact
from jobs.silver import rebuilt_rows
from jobs.silver.rebuilt_rows import RebuiltRows
from jobs.tables.create_tables import create_tables
from jobs.tables.replace import replace_rows
from jobs.tables.silver_rows import stored_rows
from jobs.tables.since_points import since_points
from pipelines.silver.resume_points import after_base
from schemas.bronze import BRONZE
from schemas.gold import MARKS
from schemas.silver import GENERATIONS, REASSIGNMENT_TABLES, SILVER, STALLS
from testing.recordings import CAPTURES
from tests.jobs.conftest import CLUSTER
from tests.maintain.test_compact import Here
from tests.silver.commits.test_pending_first_commits import described

BATCHES = 12


@pytest.fixture
def cached(monkeypatch) -> list[int]:
    """Compare each answer with the tables. The number of rows that came from the cache is added to the list."""
    since, of, found = RebuiltRows.since, RebuiltRows._of, []

    def compared(self, table, points):
        rows = since(self, table, points)
        assert described(rows) == described(since_points(self.warehouse, table, points, after_base(table))), table.name
        return rows

    def counted(self, table, points):
        rows = of(self, table, points)
        found.append(rows.num_rows)
        return rows

    monkeypatch.setattr(RebuiltRows, "since", compared)
    monkeypatch.setattr(RebuiltRows, "_of", counted)
    return found


def replayed(warehouse, name: str, *, seed: int | None = None):
    """Yield after each batch of the capture."""
    capture, settings = Capture(CAPTURES / name), Settings(warehouse=warehouse)
    create_tables(None, warehouse, (*BRONZE, *SILVER, *REASSIGNMENT_TABLES, MARKS))
    for batch in split(capture, ["offsets", "log"], BATCHES, seed):
        replay(None, settings, CLUSTER, capture.meta, batch)
        yield


@pytest.mark.parametrize(
    ("name", "seed"),
    [("eager_churn", None), ("rolling_restart", 1), ("migration", 1), ("connect_mismatch", None), ("streams", 1)],
)
def test_they_are_the_rows_of_the_tables_in_any_order_of_batches(warehouse, cached, name, seed) -> None:
    for number, _ in enumerate(replayed(warehouse, name, seed=seed)):
        if number % 5 == 0:
            compact(warehouse, STALLS, Here())
    assert sum(cached) > 0


def test_rows_that_another_process_changed_are_read(warehouse, cached) -> None:
    for number, _ in enumerate(replayed(warehouse, "eager_churn")):
        if number % 3 == 0:
            rows = stored_rows(warehouse, GENERATIONS, GENERATIONS.names)
            other = rows.set_column(
                GENERATIONS.names.index("evidence"), "evidence", pa.array(["changed"] * rows.num_rows)
            ).cast(rows.schema)
            replace_rows(None, warehouse, GENERATIONS, rows, other)
    assert sum(cached) > 0


def test_the_oldest_rebuilds_are_removed_when_the_rows_are_too_many(warehouse, cached, monkeypatch) -> None:
    monkeypatch.setattr(rebuilt_rows, "BYTES", 20_000)
    for _ in replayed(warehouse, "rolling_restart"):
        kept = rebuilt_rows.rebuilt_rows(warehouse)
        assert sum(each.bytes for each in kept._rebuilds.values()) <= 20_000
        assert {number for _, number in kept._groups.values()} == {*kept._rebuilds}
    assert cached


def test_only_one_warehouse_has_a_cache(tmp_path) -> None:
    first = rebuilt_rows.rebuilt_rows(tmp_path / "a")
    assert rebuilt_rows.rebuilt_rows(tmp_path / "a") is first
    assert rebuilt_rows.rebuilt_rows(tmp_path / "b") is not first
    assert rebuilt_rows.rebuilt_rows(tmp_path / "a") is not first
