"""Captures in an object store give the same rows as in a folder, and no secret or incomplete capture is left."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import gettempdir

import pytest

from jobs.captures.capture_store import PREFIX, local_copy, new_capture
from jobs.cli import main
from jobs.config.errors import UserError
from testing.recordings import CAPTURES
from tests.jobs.s3.conftest import BUCKET
from tests.jobs.s3.test_s3_jobs import rows

RECORDED = CAPTURES / "streams"
PLACE = Path(f"s3a://{BUCKET}/captures/streams")
LIMIT_MB = 512


def left_behind() -> list[Path]:
    return list(Path(gettempdir()).glob(f"{PREFIX}*"))


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.fixture
def stored(server) -> str:
    server.copy(RECORDED, BUCKET, "captures/streams")
    return str(PLACE)


def test_a_replay_from_an_address_gives_the_rows_of_a_folder(stored, tmp_path) -> None:
    before = left_behind()
    for capture, warehouse in ((str(RECORDED), "folder"), (f"s3a://{BUCKET}/captures/streams", "address")):
        assert 0 == main(["replay", capture, "--warehouse", str(tmp_path / warehouse)])
    assert rows(str(tmp_path / "folder")) == rows(str(tmp_path / "address"))
    assert before == left_behind()


def test_a_capture_that_was_stored_is_read_back_as_it_was(server, tmp_path) -> None:
    before, place = left_behind(), Path(f"s3://{BUCKET}/new/capture")
    with new_capture(place) as folder:
        for file in RECORDED.iterdir():
            shutil.copy(file, folder)
    with local_copy(place, LIMIT_MB) as copy:
        assert contents(RECORDED) == contents(copy)
    assert before == left_behind()
    with pytest.raises(UserError, match=r"There is a capture in .* already: give a new address"):
        new_capture(place).__enter__()


def test_what_was_recorded_is_not_lost_when_the_store_refuses(server, monkeypatch) -> None:
    before = set(left_behind())
    place = Path(f"s3://{BUCKET}/refused")
    recording = new_capture(place)
    (recording.__enter__() / "meta.json").write_text("{}", encoding="utf-8")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-the-secret")
    with pytest.raises(UserError, match=f"What was recorded is in .*{PREFIX}") as raised:
        recording.__exit__(None, None, None)
    (kept,) = set(left_behind()) - before
    assert "{}" == (kept / "meta.json").read_text(encoding="utf-8")
    assert "the store refuses these credentials" in str(raised.value)
    assert "not-the-secret" not in str(raised.value)
    shutil.rmtree(kept)


def test_nothing_is_left_if_nothing_was_recorded(server) -> None:
    before = left_behind()

    def record() -> None:
        with new_capture(Path(f"s3://{BUCKET}/unreachable")):
            raise UserError("The broker does not answer.")

    with pytest.raises(UserError, match=r"^The broker does not answer\.$"):
        record()
    assert before == left_behind()


@pytest.mark.parametrize(
    ("place", "limit_mb", "sentence"),
    [
        (f"s3a://{BUCKET}/nothing", LIMIT_MB, "There is no capture in s3://warehouses/nothing: it has no meta.json."),
        (str(PLACE), 0, "is larger than the setting capture_mb"),
        ("s3a://nowhere/x", LIMIT_MB, "The capture s3://nowhere/x cannot be used: the bucket does not exist"),
        (f"s3a://key:secret@{BUCKET}/x", LIMIT_MB, "The capture's address of s3a has a password"),
        ("ftp://host/x", LIMIT_MB, "The capture is an address of ftp, which Regroup cannot read"),
    ],
)
def test_a_capture_that_cannot_be_read_is_explained(stored, place, limit_mb, sentence) -> None:
    with pytest.raises(UserError, match=sentence):
        local_copy(Path(place), limit_mb).__enter__()
