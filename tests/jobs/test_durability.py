"""Torn files of tables and streams are removed before a job continues, and committed rows survive a power loss."""

from __future__ import annotations

import errno
import json
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from jobs.tables.disk import durability, torn
from jobs.tables.disk.durability import after_sync, write_whole
from jobs.tables.disk.table_log import sums_of
from jobs.tables.disk.torn import repair_logs, repair_progress, torn_files
from jobs.tables.paths import actions
from jobs.tables.transactions import table_lock
from tests.faults.disk import Disk, unavailable


@pytest.fixture
def newest(warehouse) -> Path:
    """Return the newest commit of a table with two, with a checksum as Hadoop stores it."""
    table = warehouse / "coordinator_records"
    for number in range(2):
        write_deltalake(table, pa.table({"n": [number]}), mode="append")
    commit = table / "_delta_log" / f"{1:020}.json"
    raw = commit.read_bytes()
    sums = b"".join(zlib.crc32(raw[at : at + 512]).to_bytes(4) for at in range(0, len(raw), 512))
    sums_of(commit).write_bytes(b"crc\0" + (512).to_bytes(4) + sums)
    return commit


def test_a_whole_commit_stays(warehouse, newest) -> None:
    assert ([], []) == ([*torn_files(warehouse)], [*repair_logs(warehouse)])
    sums_of(newest).unlink()
    assert ([], []) == ([*torn_files(warehouse)], [*repair_logs(warehouse)])


@pytest.mark.parametrize("left", ["nothing", "half", "all but a byte", "the first line"])
def test_a_torn_commit_is_deleted_and_the_table_is_good_without_it(warehouse, newest, left) -> None:
    raw = newest.read_bytes()
    first = raw.index(b"\n") + 1
    size = {"nothing": 0, "half": len(raw) // 2, "all but a byte": len(raw) - 1, "the first line": first}[left]
    os.truncate(newest, size)
    assert [newest] == [each.path for each in torn_files(warehouse)]
    (sentence,) = repair_logs(warehouse)
    assert sentence == (
        "The newest commit of the table coordinator_records is torn, as after a loss of power or on a full disk. It was "
        "deleted, and rows from Kafka, and rows made from them, are written again."
    )
    assert not sums_of(newest).exists()
    assert ([], []) == ([*torn_files(warehouse)], [*repair_logs(warehouse)])
    assert [0] == DeltaTable(newest.parents[1]).to_pyarrow_table()["n"].to_pylist()


@pytest.mark.parametrize("at", [0, 0.3, 0.7])
def test_a_commit_with_a_lost_block_in_its_middle_is_torn(warehouse, newest, at) -> None:
    """A disk may write a later block first; the file system then shows zeros before it."""
    sums_of(newest).unlink()
    raw = bytearray(newest.read_bytes())
    first = int(len(raw) * at)
    raw[first : first + 8] = bytes(8)
    newest.write_bytes(raw)
    assert [newest] == [each.path for each in torn_files(warehouse)]
    assert 1 == len([*repair_logs(warehouse)])
    assert [0] == DeltaTable(newest.parents[1]).to_pyarrow_table()["n"].to_pylist()


@pytest.mark.parametrize("name", ["a\u2028b", "\x85", "\u2029", "a\nb", "\x1c\x0b\x0c", "é😀", "\r"])
def test_a_commit_with_any_group_id_in_its_statistics_is_read(warehouse, name) -> None:
    table = warehouse / "coordinator_records"
    with table_lock(str(table)):
        write_deltalake(table, pa.table({"group_id": [name]}))
    (added,) = [action["add"] for action in actions(str(table), 0) or () if "add" in action]
    assert name == json.loads(added["stats"])["minValues"]["group_id"]
    assert [] == [*torn_files(warehouse)]


def test_two_torn_commits_of_one_table_are_both_deleted(warehouse, newest) -> None:
    write_deltalake(newest.parents[1], pa.table({"n": [2]}), mode="append")
    for version in (1, 2):
        os.truncate(newest.with_name(f"{version:020}.json"), 0)
    assert 2 == len([*repair_logs(warehouse)])
    assert [0] == DeltaTable(newest.parents[1]).to_pyarrow_table()["n"].to_pylist()


@pytest.mark.parametrize("left", [0, 6, 8, 11])
def test_a_whole_commit_stays_if_only_its_checksums_are_torn(warehouse, newest, left) -> None:
    os.truncate(sums_of(newest), left)
    assert [] == [*repair_logs(warehouse)]
    assert newest.exists()
    assert not sums_of(newest).exists()


def test_a_commit_that_was_repaired_and_written_again_stays(warehouse, newest, monkeypatch) -> None:
    """Two jobs that start at once both find the torn commit; the second waits until the first has written."""
    whole = newest.read_bytes()
    os.truncate(newest, 0)

    @contextmanager
    def waits(table: Path, *, alone: bool) -> Iterator[None]:
        assert (table, alone) == (newest.parents[1], True)
        newest.write_bytes(whole)
        yield

    monkeypatch.setattr(torn, "write_lock", waits)
    assert [] == [*repair_logs(warehouse)]
    assert newest.read_bytes() == whole


def test_what_is_written_in_turn_is_on_the_disk(warehouse, newest, monkeypatch) -> None:
    synced = []
    monkeypatch.setattr(durability, "sync", synced.append)
    table = newest.parents[1]
    with table_lock(str(table)):
        write_deltalake(table, pa.table({"n": [2]}), mode="append")
        assert synced == []
    (data,) = set(map(Path, DeltaTable(table).file_uris())) - set(map(Path, DeltaTable(table, 1).file_uris()))
    assert synced[:2] == [data, newest.with_name(f"{2:020}.json")]
    assert set(synced[2:]) == {table, newest.parent}


def test_rows_and_notes_survive_a_power_cut_and_an_unfinished_commit_does_not_stop_the_next(tmp_path) -> None:
    if why := unavailable():
        pytest.skip(why)
    with Disk(tmp_path / "disk", tmp_path / "disk.img") as disk:
        table, note = disk.folder / "rows", disk.folder / "_kept" / "rows"
        for number in range(20):
            with table_lock(str(table)):
                write_deltalake(table, pa.table({"n": [number]}), mode="append")
        DeltaTable(table).create_checkpoint()
        write_whole(note, "17")
        write_deltalake(table, pa.table({"n": [20]}), mode="append")
        disk.cut()
        list(repair_logs(disk.folder))
        rows = sorted(DeltaTable(table).to_pyarrow_table()["n"].to_pylist())
        # The kernel may have written the last commit by itself.
        assert rows in ([*range(20)], [*range(21)])
        assert note.read_text() == "17"
        with table_lock(str(table)):
            write_deltalake(table, pa.table({"n": [21]}), mode="append")
        assert [*rows, 21] == sorted(DeltaTable(table).to_pyarrow_table()["n"].to_pylist())


@pytest.mark.parametrize(("number", "is_told"), [(errno.EIO, True), (errno.ENOSPC, True), (errno.EINVAL, False)])
def test_what_could_not_be_kept_is_reported_and_a_storage_that_knows_no_such_thing_is_not(
    newest, monkeypatch, number, is_told
) -> None:
    def fails(opened) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fails)
    with (
        pytest.raises(OSError, match=os.strerror(number)) if is_told else nullcontext(),
        table_lock(str(newest.parents[1])),
    ):
        write_deltalake(newest.parents[1], pa.table({"n": [2]}), mode="append")


@pytest.mark.parametrize("left", [None, 0.0, 0.5, 0.999])
def test_a_torn_checkpoint_is_removed_and_the_table_is_good_without_it(warehouse, newest, left) -> None:
    table, log = newest.parents[1], newest.parent
    DeltaTable(table).create_checkpoint()
    assert [] == [*torn_files(warehouse)]
    checkpoint = log / f"{1:020}.checkpoint.parquet"
    if left is None:
        checkpoint.unlink()
    else:
        os.truncate(checkpoint, int(checkpoint.stat().st_size * left))
    assert [checkpoint] == [each.path for each in torn_files(warehouse)]
    (sentence,) = repair_logs(warehouse)
    assert sentence == (
        "The newest checkpoint of the table coordinator_records is torn or missing, as after a loss of power or on a "
        "full disk. It was deleted, and older commits are read instead."
    )
    assert [] == [*torn_files(warehouse)]
    assert [0, 1] == sorted(DeltaTable(table).to_pyarrow_table()["n"].to_pylist())


@pytest.mark.parametrize("left", [None, 0.0, 0.5])
def test_a_table_goes_on_without_the_name_of_its_checkpoint(warehouse, newest, left) -> None:
    table, hint = newest.parents[1], newest.with_name("_last_checkpoint")
    DeltaTable(table).create_checkpoint()
    if left is None:
        hint.unlink()
    else:
        os.truncate(hint, int(hint.stat().st_size * left))
    assert [] == [*repair_logs(warehouse)]
    assert [0, 1] == sorted(DeltaTable(table).to_pyarrow_table()["n"].to_pylist())


@pytest.fixture
def progress(warehouse) -> Path:
    """Spark's progress files of a stream with two sources, the second of which has no data yet."""
    folder = warehouse / "_checkpoints" / "ingest" / "kafka" / "topic"
    for name, text in (("offsets", 'v1\n{"conf":{}}\n{"places":{}}\n-'), ("commits", 'v1\n{"nextBatchWatermarkMs":0}')):
        (folder / name).mkdir(parents=True)
        for batch in (8, 9, 10):
            (folder / name / str(batch)).write_text(text)
    (folder / "metadata").write_text('{"id":"e5f62582"}')
    return folder


@pytest.mark.parametrize("name", ["offsets/10", "metadata"])
@pytest.mark.parametrize("left", [0.0, 0.4])
def test_progress_with_a_torn_position_is_deleted(warehouse, progress, name, left) -> None:
    assert [] == [*repair_progress(progress)]
    file = progress / name
    os.truncate(file, int(file.stat().st_size * left))
    assert [progress] == [each.path for each in torn_files(warehouse)]
    (sentence,) = repair_progress(progress)
    assert sentence == (
        f"The progress in {progress} is torn, as after a loss of power or on a full disk. It was deleted, and the "
        "stream finds its position in the tables."
    )
    assert not progress.exists()
    assert [] == [*repair_progress(progress)]


@pytest.mark.parametrize("left", [0.0, 0.4])
def test_only_the_notes_of_completed_batches_are_deleted_if_they_alone_are_torn(warehouse, progress, left) -> None:
    files = [progress / "commits" / name for name in ("10", "9")]
    for file in files:
        os.truncate(file, int(file.stat().st_size * left))
    assert files[:1] == [each.path for each in torn_files(warehouse)]
    assert [*repair_progress(progress)] == [
        f"The newest file of the progress, {file}, is torn, as after a loss of power or on a full disk. It was deleted, "
        "and its batch is repeated."
        for file in files
    ]
    assert ["8"] == [each.name for each in files[0].parent.iterdir()]


def test_torn_checksums_of_progress_are_deleted(progress) -> None:
    for name in ("offsets/10", "commits/10", "metadata"):
        sums_of(progress / name).write_bytes(b"crc\0")
    assert [] == [*repair_progress(progress)]
    assert [] == [*progress.rglob("*.crc")]


@pytest.mark.parametrize(
    ("number", "names"),
    [(0, ["metadata", "", "offsets/0", "offsets"]), (10, ["commits/9", "commits", "offsets/10", "offsets"])],
)
def test_the_offsets_of_a_batch_are_on_the_disk_before_its_rows(progress, monkeypatch, number, names) -> None:
    steps = []
    monkeypatch.setattr(durability, "sync", steps.append)
    after_sync(progress, lambda rows, batch: steps.append((rows, batch)))("rows", number)
    *synced, written = (each for each in steps if not str(each).endswith(".crc"))
    assert [progress / name for name in names] == synced
    assert ("rows", number) == written


def test_a_small_file_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch) -> None:
    file = tmp_path / "new" / "note"
    synced = []
    monkeypatch.setattr(durability, "sync", lambda path: synced.append((path, file.exists())))
    write_whole(file, "text")
    assert file.read_text() == "text"
    assert [(file.name, False), ("new", True)] == [(path.name.split(".")[0], existed) for path, existed in synced]
    assert [file] == [*file.parent.iterdir()]
