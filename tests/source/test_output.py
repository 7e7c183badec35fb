"""A task's rows are yielded if they are few, else written as files of the tables; the rows are the same."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.tables.output import WRITTEN, Output
from pipelines.arrow_types import row_type
from schemas.bronze import COORDINATOR_RECORDS, COVERAGE, QUARANTINE

TABLES = (COORDINATOR_RECORDS, QUARANTINE, COVERAGE)
KEYS = {"cluster": "c", "log_epoch": 0, "source_partition": 0, "group_id": "g"}


def rows(first: int) -> dict[str, pa.Array]:
    """Three records, of which none could not be read."""
    records = [KEYS | {"source_offset": first + at, "body": "{}"} for at in range(3)]
    return {
        COORDINATOR_RECORDS.name: pa.array(records, row_type(COORDINATOR_RECORDS)),
        QUARANTINE.name: pa.array([], row_type(QUARANTINE)),
    }


@pytest.mark.parametrize(
    ("few", "held", "files"),
    [(100, 200, 0), (0, 200, 1), (0, 1, 4), (100, 2, 2)],
    ids=["few", "many", "a file each time", "too many to hold"],
)
def test_handed_on_or_written_they_are_the_same_rows(tmp_path: Path, few, held, files) -> None:
    each = sum(array.nbytes for array in rows(0).values())
    folders = {table.name: str(tmp_path / table.name) for table in TABLES[:2]}
    for folder in folders.values():
        Path(folder).mkdir()
    output = Output(tables=TABLES, folders=folders, few_bytes=few * each, file_bytes=held * each)
    batches = [batch for at in range(4) for batch in output.of(rows(3 * at))]
    batches += output.rest()
    described = pa.Table.from_batches(batches)
    written = described[WRITTEN].drop_null().to_pylist()
    assert files == len(written) == len(list(tmp_path.rglob("*.parquet")))
    found = described[COORDINATOR_RECORDS.name].drop_null().to_pylist()
    for file in written:
        assert COORDINATOR_RECORDS.name == file["table"]
        path = Path(folders[file["table"]], file["name"])
        assert path.stat().st_size == file["size"]
        found += (stored := pq.read_table(path).to_pylist())
        assert file["rows"] == len(stored)
    assert list(range(12)) == sorted(row["source_offset"] for row in found)


def test_without_folders_rows_are_handed_on_at_once() -> None:
    output = Output(tables=TABLES, few_bytes=0, file_bytes=1)
    (batch,) = output.of(rows(0))
    assert 3 == batch.num_rows
    assert [] == list(output.rest())
