"""Compaction of small files next to batches: which files, what streams see, and what a batch replaces meanwhile."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from jobs.processes.worker_process import WorkerProcess
from jobs.retention import compact as compaction
from jobs.retention.compact import AGES_S, FEW_FILES, Made, compact, files_to_merge, merged_file
from jobs.tables import local_rewrite
from jobs.tables.create_tables import create_tables
from jobs.tables.delta_io import follow
from jobs.tables.disk.data_file import write
from jobs.tables.paths import table_path
from jobs.tables.replace import replace_rows
from schemas.bronze import OFFSET_COMMITS
from schemas.silver import GENERATIONS
from tests.jobs.test_local_rewrite import START, described, rows

FILES = FEW_FILES + 2


def generation(number: int, **values) -> pa.Table:
    at = START + timedelta(hours=number)
    return rows(GENERATIONS, ["group"], generation_id=number, joined_at=at, **values)


@pytest.fixture
def path(spark, warehouse) -> str:
    """A table with a file for each generation."""
    create_tables(spark, warehouse, (GENERATIONS,))
    for number in range(FILES):
        replace_rows(spark, warehouse, GENERATIONS, rows(GENERATIONS, []), generation(number))
    return table_path(warehouse, GENERATIONS)


class Here(WorkerProcess):
    """A worker in this process; it calls `meanwhile` before it returns the result."""

    def __init__(self, meanwhile=lambda: None) -> None:
        super().__init__(merged_file)
        self.meanwhile = meanwhile

    def ask(self, *question):
        found = merged_file(*question)
        self.meanwhile()
        return found


def stored(path) -> list:
    return described(DeltaTable(path).to_pyarrow_table(), GENERATIONS)


def test_small_files_become_one_with_the_same_rows_and_streams_see_nothing_of_it(spark, warehouse, path) -> None:
    before, seen = stored(path), []

    def read_on() -> int:
        stream = follow(spark, warehouse, GENERATIONS).writeStream.foreachBatch(lambda new, _: seen.append(new.count()))
        there = stream.option("checkpointLocation", str(warehouse.parent / "stream")).trigger(availableNow=True)
        there.start().awaitTermination()
        return sum(seen)

    assert FILES == read_on()
    with WorkerProcess(merged_file) as worker:
        assert Made(FILES, 1) == compact(warehouse, GENERATIONS, worker)
        assert Made() == compact(warehouse, GENERATIONS, worker)
    assert before == stored(path)
    assert 1 == len(DeltaTable(path).file_uris())
    assert FILES == read_on()


def test_a_merged_file_has_one_row_group_for_those_of_small_files(warehouse) -> None:
    for table in (OFFSET_COMMITS, GENERATIONS):
        create_tables(None, warehouse, (table,))
        path = table_path(warehouse, table)
        files = [write(Path(path), rows(table, ["group"])).name for _ in range(FILES)]
        made = merged_file(warehouse, table, [f"{path}/{file}" for file in files])
        assert pq.read_metadata(Path(path, made.name)).num_row_groups == 1
        assert FILES == made.rows


def test_a_merged_file_has_small_row_groups_in_the_order_of_the_clustering(warehouse, path, monkeypatch) -> None:
    monkeypatch.setattr(compaction, "ROWS_TOGETHER", FILES // 3)
    made = merged_file(warehouse, GENERATIONS, [*DeltaTable(path).file_uris()][::-1])
    file = pq.ParquetFile(Path(path, made.name))
    assert file.num_row_groups >= 3
    order = file.read(list(GENERATIONS.cluster_by)).to_pylist()
    assert order == sorted(order, key=lambda row: [*row.values()])
    assert len(order) == FILES == made.rows


def test_what_a_batch_replaced_meanwhile_stays_as_it_made_it(spark, warehouse, path) -> None:
    def batch() -> None:
        replace_rows(spark, warehouse, GENERATIONS, generation(1), generation(1, member_count=9))

    assert Made() == compact(warehouse, GENERATIONS, Here(batch))
    assert FILES == DeltaTable(path).to_pyarrow_table().num_rows
    assert 1 == DeltaTable(path).to_pyarrow_dataset().count_rows(filter=pc.field("member_count") == 9)
    mentioned = {uri.rsplit("/", 1)[-1] for uri in DeltaTable(path).file_uris()}
    unread = {file.name for file in Path(path).glob("*.parquet")} - mentioned
    # It is the one that the batch replaced; no file of the failed compaction is left.
    assert 1 == len(unread)


def test_what_a_batch_adds_meanwhile_stays(spark, warehouse, path) -> None:
    def batch() -> None:
        replace_rows(spark, warehouse, GENERATIONS, rows(GENERATIONS, []), generation(FILES))

    assert Made(FILES, 1) == compact(warehouse, GENERATIONS, Here(batch))
    assert list(range(FILES + 1)) == sorted(DeltaTable(path).to_pyarrow_table()["generation_id"].to_pylist())
    assert 2 == len(DeltaTable(path).file_uris())


def test_a_commit_whose_attempt_failed_only_afterwards_stays(warehouse, path, monkeypatch) -> None:
    committed = local_rewrite.commit

    def late(*args, **given) -> None:
        committed(*args, **given)
        raise error

    before = stored(path)
    for error in (CommitFailedError("the checkpoint after it"), OSError("the disk after it")):
        with monkeypatch.context() as patched:
            patched.setattr(local_rewrite, "commit", late)
            if isinstance(error, OSError):
                for number in range(FILES):
                    write_deltalake(path, generation(FILES + number), mode="append")
                before = stored(path)
                with pytest.raises(OSError, match="the disk after it"):
                    compact(warehouse, GENERATIONS, Here())
            else:
                assert Made(FILES, 1) == compact(warehouse, GENERATIONS, Here())
        assert before == stored(path)


def test_batches_wait_for_the_commit_alone(warehouse, path) -> None:
    building = threading.Lock()

    def meanwhile() -> None:
        assert not building.locked()

    assert Made(FILES, 1) == compact(warehouse, GENERATIONS, Here(meanwhile), building)
    building.acquire()
    assert Made() == compact(warehouse, GENERATIONS, Here(), building)


def test_files_of_one_age_are_put_together_up_to_a_large_one(path) -> None:
    large, now = 1 << 30, time.time() + 1
    (every,) = files_to_merge(path, None, large, now)
    assert FILES == len(every)
    assert (
        files_to_merge(path, None, large, now + min(AGES_S))
        == files_to_merge(path, None, large, now + max(AGES_S))
        == [every]
    )
    assert [] == files_to_merge(path, None, 1, now)
    modified = sorted(Path(file).stat().st_mtime for file in every)
    assert [] == files_to_merge(path, None, large, modified[FILES // 2] + min(AGES_S))
    size = sum(Path(file).stat().st_size for file in every)
    assert [] == files_to_merge(path, None, size // 2, now)


@pytest.mark.parametrize(
    ("step", "after", "made"),
    [
        (timedelta(minutes=1), timedelta(minutes=20), [10]),
        (timedelta(seconds=100), timedelta(minutes=40), [6, 6]),
        (timedelta(seconds=100), timedelta(hours=2), [12]),
        (timedelta(minutes=10), timedelta(hours=20), [6, 6]),
        (timedelta(minutes=10), timedelta(hours=30), [12]),
        (timedelta(hours=2), timedelta(hours=30), []),
        (timedelta(hours=2), timedelta(days=30), [12]),
    ],
)
def test_older_files_are_put_together_by_windows_that_widen(warehouse, step, after, made) -> None:
    """Twelve files, each with a row this much later than the previous one; now is this long after the first row."""
    path, first = table_path(warehouse, GENERATIONS), datetime(2100, 1, 1, tzinfo=UTC)
    for number in range(12):
        row = rows(GENERATIONS, ["group"], generation_id=number, joined_at=first + number * step)
        write_deltalake(path, row, mode="append")
    found = files_to_merge(path, GENERATIONS.time, 1 << 30, (first + after).timestamp())
    assert made == [len(files) for files in found]
