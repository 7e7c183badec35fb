"""Rows changed without Spark: every engine reads them, no other commit is lost, and statistics match the rows."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from jobs.config.errors import UserError
from jobs.maintain import LOCAL_DAYS
from jobs.retention.folder_files import vacuum
from jobs.tables import local_rewrite
from jobs.tables.create_tables import create_tables
from jobs.tables.delta_io import read
from jobs.tables.disk.data_file import LONGEST, Statistics, write
from jobs.tables.disk.table_log import checkpoint_of, commit_of
from jobs.tables.local_rewrite import commit, rewrite
from jobs.tables.paths import table_path
from jobs.tables.replace import replace_rows
from pipelines.arrow_types import row_type
from schemas.gold import DIAGNOSES
from schemas.silver import GENERATION_MEMBERS, GENERATIONS

START = datetime(2026, 11, 1, tzinfo=UTC)
VALUES = {
    pa.string(): 'it\'s \\ "quoted"',
    pa.int32(): -3,
    pa.int64(): 1 << 40,
    pa.float64(): 0.25,
    pa.bool_(): True,
    pa.timestamp("us", tz="UTC"): START,
}


def value(kind: pa.DataType):
    if pa.types.is_list(kind):
        return [value(kind.value_type), None]
    if pa.types.is_struct(kind):
        return {field.name: value(field.type) for field in kind}
    return VALUES[kind]


def rows(table, names, **values) -> pa.Table:
    """A full row for each group."""
    full = {field.name: value(field.type) for field in row_type(table)}
    return pa.Table.from_pylist([{**full, "group_id": name, **values} for name in names], pa.schema(row_type(table)))


def described(found: pa.Table, table) -> list[str]:
    return sorted(map(repr, found.select(table.names).cast(pa.schema(row_type(table))).to_pylist()))


@pytest.mark.parametrize("table", [GENERATIONS, GENERATION_MEMBERS, DIAGNOSES], ids=lambda table: table.name)
def test_every_engine_reads_what_was_written(spark, warehouse, table) -> None:
    create_tables(spark, warehouse, (table,))
    path = table_path(warehouse, table)
    first = rows(table, ["a", "b", "c'; --"])
    replace_rows(spark, warehouse, table, first.slice(0, 0), first)
    changed = rows(table, ["b"], **{table.names[-1]: None})
    replace_rows(spark, warehouse, table, first, pa.concat_tables([first.slice(0, 1), changed]))
    expected = described(pa.concat_tables([first.slice(0, 1), changed]), table)
    stored = DeltaTable(path)
    assert described(stored.to_pyarrow_table(), table) == expected
    assert described(read(spark, warehouse, table).toArrow(), table) == expected
    with duckdb.connect() as connection:
        assert described(connection.read_parquet(stored.file_uris()).to_arrow_table(), table) == expected
    assert 1 == stored.to_pyarrow_dataset().count_rows(filter=pc.field("group_id") == "b")
    assert 1 == read(spark, warehouse, table).where("group_id = 'b'").count()


def generation(numbers, **values) -> pa.Table:
    described = rows(GENERATIONS, [], **values)
    for number in numbers:
        at = START + timedelta(hours=number)
        described = pa.concat_tables(
            [described, rows(GENERATIONS, ["group"], generation_id=number, joined_at=at, **values)]
        )
    return described


@pytest.fixture
def path(spark, warehouse) -> str:
    """A table of two generations in as many files."""
    create_tables(spark, warehouse, (GENERATIONS,))
    path = table_path(warehouse, GENERATIONS)
    for number in range(2):
        replace_rows(spark, warehouse, GENERATIONS, generation([]), generation([number]))
    return path


def test_files_that_are_compacted_meanwhile_are_looked_for_again(spark, path, monkeypatch) -> None:
    holding, compacted = local_rewrite._holding, []

    def slow(*args):
        found = holding(*args)
        if not compacted:
            compacted.append(DeltaTable(path).optimize.compact()["numFilesRemoved"])
        return found

    monkeypatch.setattr(local_rewrite, "_holding", slow)
    replace_rows(spark, Path(path).parent, GENERATIONS, generation([1]), generation([1], member_count=9))
    assert [2] == compacted
    expected = pa.concat_tables([generation([0]), generation([1], member_count=9)])
    assert described(DeltaTable(path).to_pyarrow_table(), GENERATIONS) == described(expected, GENERATIONS)


def test_one_commit_adds_changes_and_takes_away(path) -> None:
    before = DeltaTable(path).version()
    rewrite(
        path,
        GENERATIONS,
        new=generation([2]),
        changed=generation([1], member_count=9),
        gone=generation([0]),
        since=None,
    )
    assert DeltaTable(path).version() == before + 1
    expected = pa.concat_tables([generation([1], member_count=9), generation([2])])
    assert described(DeltaTable(path).to_pyarrow_table(), GENERATIONS) == described(expected, GENERATIONS)


def test_rows_from_before_a_change_are_written_again_once(spark, path) -> None:
    DeltaTable(path).optimize.compact()
    for count in (8, 9):
        before = {1: generation([1]), 2: generation([1], member_count=8)}[count - 7]
        replace_rows(spark, Path(path).parent, GENERATIONS, before, generation([1], member_count=count))
        files = {uri: pq.read_table(uri)["generation_id"].to_pylist() for uri in DeltaTable(path).file_uris()}
        assert sorted(files.values()) == [[0], [1]]
        (old,) = (uri for uri, numbers in files.items() if numbers == [0])
        if count == 8:
            kept = old
    assert old == kept


def test_the_second_one_is_refused(path, monkeypatch) -> None:
    holding = local_rewrite._holding

    def slow(*args):
        found = holding(*args)
        DeltaTable(path).delete("generation_id = 1")
        return found

    monkeypatch.setattr(local_rewrite, "_holding", slow)
    with pytest.raises(CommitFailedError):
        rewrite(path, GENERATIONS, new=generation([]), changed=generation([1]), gone=generation([]), since=None)


def test_limits_are_those_of_the_rows_in_all_pieces_and_long_texts_have_none() -> None:
    rows = pa.table(
        {
            "n": pa.array([3, None, 1], pa.int32()),
            "at": pa.array([START, START + timedelta(microseconds=1_500), None], pa.timestamp("us", tz="UTC")),
            "text": ["b", "a", "a" * (LONGEST + 1)],
            "long": ["a", None, "b" * (LONGEST + 1)],
            "none": pa.nulls(3, pa.string()),
            "list": [["a"], None, []],
        }
    )
    for pieces in ([rows], [rows.slice(2), rows.slice(0, 0), rows.slice(0, 2)]):
        found = Statistics()
        for piece in pieces:
            found.add(piece)
        assert found.stored() == {
            "numRecords": 3,
            "minValues": {"n": 1, "at": "2026-11-01T00:00:00.000000Z", "text": "a"},
            "maxValues": {"n": 3, "at": "2026-11-01T00:00:00.001500Z", "text": "b"},
            "nullCount": {"n": 1, "at": 1, "text": 0, "long": 1, "none": 3},
        }


def test_a_file_that_waited_for_its_commit_is_as_young_as_the_commit(warehouse) -> None:
    create_tables(None, warehouse, (GENERATIONS,))
    path = table_path(warehouse, GENERATIONS)
    waited, gone = (write(Path(path), rows(GENERATIONS, [name])) for name in "ab")
    old = time.time() - 7 * 3_600
    os.utime(Path(path, waited.name), (old, old))
    commit(path, DeltaTable(path), removed=(), added=(), files=[waited])
    assert 0 == vacuum(warehouse, GENERATIONS, LOCAL_DAYS).files
    assert 1 == DeltaTable(path).to_pyarrow_table().num_rows
    Path(path, gone.name).unlink()
    with pytest.raises(UserError, match=f"{gone.name} was removed before it was committed"):
        commit(path, DeltaTable(path), removed=(), added=(), files=[gone])
    assert 1 == DeltaTable(path).version()


def test_expired_files_of_the_log_are_deleted_after_a_checkpoint_only(tmp_path) -> None:
    create_tables(None, tmp_path, (DIAGNOSES,))
    path = table_path(tmp_path, DIAGNOSES)
    log = Path(path, "_delta_log")

    def add(until: int) -> None:
        while (stored := DeltaTable(path)).version() < until:
            commit(path, stored, removed=[], added=(rows(DIAGNOSES, [f"g{stored.version()}"]),))

    add(12)
    expired = time.time() - 3600 * 3
    for file in log.iterdir():
        os.utime(file, (expired, expired))
    add(18)
    assert commit_of(log, 0).exists()
    add(19)
    assert checkpoint_of(log, 19).exists()
    assert not commit_of(log, 0).exists()
    assert 19 == DeltaTable(path).to_pyarrow_dataset().count_rows()
