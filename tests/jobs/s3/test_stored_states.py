"""Checkpoints and states in a store: one writer, no lost update, and sentences instead of traces."""

from __future__ import annotations

import io
import tarfile
import time
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from dashboards.lake.address import ObjectStore
from jobs.cli import main
from jobs.config.errors import UserError
from jobs.config.settings import Settings
from jobs.processes.lease import Lease
from jobs.states.folder_archive import NoArchiveError, packed, unpack
from jobs.states.kept import as_stored, save_states
from jobs.states.stored_lease import StoredLease
from jobs.states.stored_object import ChangedError, StoredObject
from jobs.states.stored_states import HELD, STATES, StoredStates, in_a_folder
from testing.waiting import at_once, wait_until
from tests.jobs.s3.conftest import BUCKET

QUICK = {"beat_s": 0.05, "stale_s": 1.0}
NUMBERS = count()


@pytest.fixture
def store(server) -> ObjectStore:
    """An address for one test."""
    return ObjectStore("s3", BUCKET, f"states/{next(NUMBERS)}")


def settings(store: ObjectStore, **more) -> Settings:
    return Settings.load(environment={}, flags={"warehouse": Path(str(store)), **more})


def lease(store: ObjectStore, lost: list[str] | None = None) -> Lease:
    place = StoredLease(StoredObject(store, HELD))
    return Lease(place=place, on_lost=(lost if lost is not None else []).append, **QUICK)


def states(store: ObjectStore, folder: Path) -> StoredStates:
    return StoredStates(folder=folder, object=StoredObject(store, STATES))


def files(folder: Path) -> dict[str, str]:
    return {str(f.relative_to(folder)): f.read_text() for f in sorted(folder.rglob("*")) if f.is_file()}


def test_of_many_who_start_at_the_same_instant_one_has_the_lease(store) -> None:
    taken, refused = [], []

    def start() -> None:
        mine = lease(store)
        try:
            taken.append(mine.take())
        except BlockingIOError:
            refused.append(mine)

    at_once(6, start)
    assert (1, 5) == (len(taken), len(refused))
    with pytest.raises(BlockingIOError):
        lease(store).take()
    taken[0].close()
    lease(store).take().close()


def test_a_holder_that_was_killed_is_replaced_and_one_that_was_paused_ends(store) -> None:
    lost: list[str] = []
    paused = StoredLease(StoredObject(store, HELD))
    paused.write({"id": "gone", "holder": "process 1 on elsewhere", "beat": 7})
    began = time.monotonic()
    with lease(store, lost).take():
        assert time.monotonic() - began >= QUICK["stale_s"]
        with pytest.raises(FileExistsError):
            paused.write({"id": "gone", "holder": "process 1 on elsewhere", "beat": 8})
        other = StoredLease(StoredObject(store, HELD))
        wait_until(lambda: _wrote(other))
        wait_until(lambda: lost)
    assert [f"Ending, because process 2 on elsewhere now does this work (s3://{BUCKET}/{store.path}/{HELD})."] == lost


def _wrote(other: StoredLease) -> bool:
    """Return whether the object was written between two beats of the holder."""
    other.read()
    try:
        other.write({"id": "other", "holder": "process 2 on elsewhere", "beat": 1})
    except FileExistsError:
        return False
    return True


def test_a_command_finds_the_states_of_the_one_before(store) -> None:
    with in_a_folder(settings(store)) as first:
        (first.warehouse / "_checkpoints" / "build" / "offsets").mkdir(parents=True)
        (first.warehouse / "_checkpoints" / "build" / "offsets" / "0").write_text("v1")
        (first.warehouse / "_checkpoints" / "build" / "offsets" / ".0.crc").write_text("sum")
        (first.warehouse / "_checkpoints" / "build" / "held").write_text("1")
        written = files(first.warehouse)
        receipt = as_stored(first.warehouse / "_receipts" / "x.json")
    assert not first.warehouse.exists()
    with in_a_folder(Settings.load(environment={"REGROUP_WAREHOUSE": f"s3a://{BUCKET}/{store.path}"})) as second:
        found = files(second.warehouse)
    assert first.warehouse != second.warehouse
    assert f"_receipts/x.json in {store}/{STATES}" == receipt
    assert str(second.warehouse) == as_stored(second.warehouse)
    assert {"_tables": f"s3a://{BUCKET}/{store.path}", "_checkpoints/build/offsets/0": "v1"} == found
    assert {"_checkpoints/build/offsets/.0.crc", "_checkpoints/build/held"} == written.keys() - found.keys()


def test_what_a_batch_saved_is_there_after_a_kill(store, tmp_path) -> None:
    with in_a_folder(settings(store)) as running:
        (running.warehouse / "_clusters").mkdir()
        (running.warehouse / "_clusters" / "kafka").write_text("id")
        save_states(running.warehouse)
        states(store, tmp_path).load()
    assert {"_clusters/kafka": "id"} == files(tmp_path)


def test_a_process_that_lost_the_warehouse_writes_nothing_more(store, tmp_path) -> None:
    mine, other = states(store, tmp_path / "mine"), states(store, tmp_path / "other")
    for each in (mine, other):
        each.folder.mkdir()
        each.load()
    (other.folder / "a").write_text("theirs")
    other.save()
    (mine.folder / "a").write_text("mine")
    for _ in range(2):
        with pytest.raises(UserError, match=r"^Another process wrote s3://.*: start this job again"):
            mine.save()
    states(store, tmp_path).load()
    assert "theirs" == (tmp_path / "a").read_text()


def test_states_that_did_not_change_are_not_stored_again(store, tmp_path) -> None:
    mine = states(store, tmp_path)
    (tmp_path / "a").write_text("x")
    mine.save()
    StoredObject(store, STATES).remove()
    mine.save()
    assert StoredObject(store, STATES).read() is None
    (tmp_path / "a").write_text("y")
    with pytest.raises(UserError, match="Another process wrote"):
        mine.save()


def test_an_object_is_written_only_if_it_is_the_one_that_was_read(store) -> None:
    first, second = StoredObject(store, "x"), StoredObject(store, "x")
    assert first.read() is None
    first.write(b"1")
    with pytest.raises(ChangedError):
        second.write(b"2")
    assert b"1" == second.read()
    second.write(b"2")
    with pytest.raises(ChangedError):
        first.write(b"3")
    first.remove()
    with pytest.raises(ChangedError):
        second.write(b"4")


@pytest.mark.parametrize(
    "content", [b"", b"no archive", packed(Path(__file__).parent)[:100]], ids=["empty", "text", "torn"]
)
def test_an_object_that_is_no_archive_is_explained(store, tmp_path, content) -> None:
    StoredObject(store, STATES).write(content)
    with pytest.raises(UserError, match=r"^The states in s3://.* cannot be read \(.*\): remove that object\."):
        states(store, tmp_path).load()


@pytest.mark.parametrize("name", ["../outside", "/outside"])
def test_an_archive_writes_only_into_its_folder(tmp_path, name) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        archive.addfile(tarfile.TarInfo(name), io.BytesIO())
    (tmp_path / "folder").mkdir()
    with suppress(NoArchiveError):
        unpack(out.getvalue(), tmp_path / "folder")
    assert not (tmp_path / "outside").exists()
    assert not Path("/outside").exists()


def test_the_same_files_are_the_same_bytes(tmp_path) -> None:
    for name in ("a", "b"):
        (tmp_path / name / "_checkpoints").mkdir(parents=True)
        (tmp_path / name / "_checkpoints" / "x").write_text("1")
        time.sleep(1.1)
    assert packed(tmp_path / "a") == packed(tmp_path / "b")


@pytest.mark.parametrize(
    ("words", "variables", "sentence"),
    [
        (["up"], {}, "`up` does not work with tables in s3://"),
        (["build", "--once", "--tables", "s3://other/x"], {}, "but the setting tables says s3://other/x: leave"),
        (["build", "--once"], {"SPARK_REMOTE": "sc://x"}, "With Spark Connect, a warehouse cannot be an address"),
        (["build", "--once"], {"DATABRICKS_RUNTIME_VERSION": "17"}, "name a folder in a volume with --warehouse"),
        (["build", "--once"], {"AWS_SECRET_ACCESS_KEY": "wrong"}, "the store refuses these credentials"),
    ],
)
def test_what_cannot_be_is_one_sentence(store, monkeypatch, capsys, words, variables, sentence) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert 2 == main([*words, "--warehouse", str(store)])
    printed = capsys.readouterr().err
    assert sentence in printed
    assert 1 == printed.count("\n")


def test_a_second_command_is_refused_and_names_the_first(store, capsys, monkeypatch) -> None:
    monkeypatch.setattr(
        "jobs.states.stored_states.Lease", lambda place, on_lost: Lease(place=place, on_lost=on_lost, **QUICK)
    )
    with in_a_folder(settings(store)):
        assert 2 == main(["build", "--once", "--warehouse", str(store)])
    assert f"writes the warehouse {store}, where only one process may write at a time" in capsys.readouterr().err


def test_a_command_whose_lease_was_taken_ends_and_stores_nothing(store, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(
        "jobs.states.stored_states.Lease", lambda place, on_lost: Lease(place=place, on_lost=on_lost, **QUICK)
    )
    with pytest.raises(KeyboardInterrupt), in_a_folder(settings(store)) as mine:  # noqa: PT012
        (mine.warehouse / "state").write_text("mine")
        wait_until(lambda: _wrote(StoredLease(StoredObject(store, HELD))))
        for _ in range(600):
            time.sleep(0.1)  # `interrupt_main` does not wake a longer sleep
    assert "Ending, because process 2 on elsewhere now does this work" in capsys.readouterr().err
    states(store, tmp_path).load()
    assert {} == files(tmp_path)


def test_sentences_name_the_address(store) -> None:
    with pytest.raises(UserError, match=f"^The warehouse {store} has no tables yet"), in_a_folder(settings(store)) as s:
        raise UserError(f"The warehouse {s.warehouse} has no tables yet")
