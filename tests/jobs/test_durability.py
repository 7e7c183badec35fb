"""Torn files of tables and streams are refused by name, and committed rows survive a power loss."""

from __future__ import annotations

import errno
import os
import zlib
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from jobs.config.errors import UserError
from jobs.tables.disk import durability
from jobs.tables.disk.durability import refuse_torn
from jobs.tables.transactions import table_lock


@pytest.fixture
def newest(warehouse) -> Path:
    """Return the newest commit of a table with two, with a checksum as Hadoop stores it."""
    table = warehouse / "coordinator_records"
    for number in range(2):
        write_deltalake(table, pa.table({"n": [number]}), mode="append")
    commit = table / "_delta_log" / f"{1:020}.json"
    raw = commit.read_bytes()
    sums = b"".join(zlib.crc32(raw[at : at + 512]).to_bytes(4) for at in range(0, len(raw), 512))
    commit.with_name(f".{commit.name}.crc").write_bytes(b"crc\0" + (512).to_bytes(4) + sums)
    return commit


def test_a_whole_commit_is_not_refused(warehouse, newest) -> None:
    refuse_torn(warehouse)
    newest.with_name(f".{newest.name}.crc").unlink()
    refuse_torn(warehouse)


@pytest.mark.parametrize("left", ["nothing", "half", "all but a byte", "the first line"])
def test_a_torn_commit_is_refused_by_name_and_the_table_is_good_without_it(warehouse, newest, left) -> None:
    raw = newest.read_bytes()
    first = raw.index(b"\n") + 1
    size = {"nothing": 0, "half": len(raw) // 2, "all but a byte": len(raw) - 1, "the first line": first}[left]
    os.truncate(newest, size)
    with pytest.raises(UserError, match=rf"coordinator_records is torn.* delete {newest}, "):
        refuse_torn(warehouse)
    newest.unlink()
    refuse_torn(warehouse)
    assert not newest.with_name(f".{newest.name}.crc").exists()
    assert [0] == DeltaTable(newest.parents[1]).to_pyarrow_table()["n"].to_pylist()


def test_what_is_written_in_turn_is_on_the_disk(warehouse, newest, monkeypatch) -> None:
    synced = []
    monkeypatch.setattr(durability, "_sync", synced.append)
    table = newest.parents[1]
    with table_lock(str(table)):
        write_deltalake(table, pa.table({"n": [2]}), mode="append")
        assert synced == []
    (data,) = set(map(Path, DeltaTable(table).file_uris())) - set(map(Path, DeltaTable(table, 1).file_uris()))
    assert synced[:2] == [data, newest.with_name(f"{2:020}.json")]
    assert set(synced[2:]) == {table, newest.parent}


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
def test_a_torn_checkpoint_is_refused_by_name_and_the_table_is_good_without_it(warehouse, newest, left) -> None:
    table, log = newest.parents[1], newest.parent
    DeltaTable(table).create_checkpoint()
    refuse_torn(warehouse)
    checkpoint = log / f"{1:020}.checkpoint.parquet"
    if left is None:
        checkpoint.unlink()
    else:
        os.truncate(checkpoint, int(checkpoint.stat().st_size * left))
    with pytest.raises(UserError, match=rf"coordinator_records is torn or missing: delete {checkpoint}, .*_last_check"):
        refuse_torn(warehouse)
    checkpoint.unlink(missing_ok=True)
    (log / "_last_checkpoint").unlink()
    refuse_torn(warehouse)
    assert [0, 1] == sorted(DeltaTable(table).to_pyarrow_table()["n"].to_pylist())


@pytest.mark.parametrize("left", [None, 0.0, 0.5])
def test_a_table_goes_on_without_the_name_of_its_checkpoint(warehouse, newest, left) -> None:
    table, hint = newest.parents[1], newest.with_name("_last_checkpoint")
    DeltaTable(table).create_checkpoint()
    if left is None:
        hint.unlink()
    else:
        os.truncate(hint, int(hint.stat().st_size * left))
    refuse_torn(warehouse)
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


@pytest.mark.parametrize("name", ["offsets/10", "commits/10", "metadata"])
@pytest.mark.parametrize("left", [0.0, 0.4])
def test_torn_progress_is_refused_by_its_folder(warehouse, progress, name, left) -> None:
    refuse_torn(warehouse)
    file = progress / name
    os.truncate(file, int(file.stat().st_size * left))
    with pytest.raises(UserError, match=rf"The progress in {progress} is torn.*delete that folder"):
        refuse_torn(warehouse)
