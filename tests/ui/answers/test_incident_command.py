"""The command `regroup incident`: what it accepts, what it writes, and the capture that it puts beside a document."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

import pytest

from jobs.captures.recording import Capture
from jobs.cli import main

CAPTURE = Path(__file__).parents[2] / "captures" / "eager_churn"
BEGIN = {"markdown": "# imports-joiner: rebalance to generation", "html": "<!doctype html>", "json": '{\n  "kind": '}


@pytest.fixture
def incident(clusters):
    return lambda *arguments: main(["incident", *map(str, arguments), "--warehouse", str(clusters)])


@pytest.mark.parametrize("kind", BEGIN)
def test_the_command_writes_each_kind(incident, capsys, kind) -> None:
    code = incident("imports-joiner", "--format", kind)
    text = capsys.readouterr().out
    assert text.startswith(BEGIN[kind])
    assert code in (0, 1)
    if kind == "json":
        assert json.loads(text)["is_answered"] == (code == 0)


def test_a_rebalance_is_chosen_by_time_or_generation_and_its_episode_with_it(incident, capsys) -> None:
    assert incident("imports-joiner", "--generation", 9, "--format", "json") in (0, 1)
    first = json.loads(capsys.readouterr().out)
    assert ("rebalance", 9) == (first["kind"], first["rebalance"]["generation_id"])
    at = first["rebalance"]["joined_at"][:19] + "Z"
    assert incident("imports-joiner", "--at", at, "--format", "json") in (0, 1)
    assert json.loads(capsys.readouterr().out)["rebalance"] == first["rebalance"]
    assert incident("imports-joiner", "--at", at, "--episode", "--format", "json") in (0, 1)
    assert "episode" == json.loads(capsys.readouterr().out)["kind"]


def test_a_storm_is_chosen_by_id_or_time(warehouse, now, capsys) -> None:
    def made(wanted):
        code = main(["incident", "--storm", wanted, "--format", "json", "--warehouse", str(warehouse)])
        return code, json.loads(capsys.readouterr().out)["storm"]["storm_id"]

    began = datetime.fromtimestamp((now - 27 * 60_000) / 1000, UTC)
    assert (0, "together") == made("together") == made(f"{began:%Y-%m-%dT%H:%M:%SZ}")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "Name a group, or a storm with --storm"),
        (("a", "--storm", "b"), "either of them, not both"),
        (("--storm", "b", "--episode"), "are about a group, not about a storm"),
        (("--storm", "b"), "No storm has the id b."),
        (("a", "--at", "12:00", "--generation", "1"), "by --at or by --generation"),
        (("a", "--incarnation", "1"), "--incarnation needs the --generation"),
        (("a", "--capture", "x"), "--capture needs --output FILE"),
        (("nobody",), "There is no group nobody"),
        (("imports-joiner", "--at", "noon"), "--at 'noon' is not a valid time"),
        (("imports-joiner", "--generation", "9999"), "No rebalance of imports-joiner to generation 9999 is known"),
        (("imports-joiner", "--output", "/nowhere/x"), "The file /nowhere/x cannot be written"),
    ],
)
def test_what_cannot_be_answered_is_one_sentence_and_exit_code_2(incident, capsys, arguments, sentence) -> None:
    assert 2 == incident(*arguments)
    assert sentence in capsys.readouterr().err.splitlines()[-1]


def test_a_capture_folder_is_packed_beside_the_document_and_can_be_replayed(incident, tmp_path) -> None:
    file = tmp_path / "outage 12.html"
    assert incident("imports-joiner", "--format", "html", "--output", file, "--capture", CAPTURE) in (0, 1)
    packed = tmp_path / "outage_12.capture.zip"
    text, content = file.read_text(encoding="utf-8"), packed.read_bytes()
    for printed in ('href="outage_12.capture.zip"', sha256(content).hexdigest(), f"{len(content):,} bytes"):
        assert printed in text
    ZipFile(packed).extractall(tmp_path)
    assert Capture(CAPTURE).meta == Capture(tmp_path / "capture").meta
    assert len(Capture(CAPTURE).records()) == len(Capture(tmp_path / "capture").records()) > 0
    assert incident("imports-joiner", "--format", "html", "--output", file, "--capture", CAPTURE) in (0, 1)
    assert content == packed.read_bytes()


def test_a_file_is_attached_as_it_is_and_anything_else_is_refused(incident, tmp_path, capsys) -> None:
    (tmp_path / "sent.tar.gz").write_bytes(b"anything")
    file = tmp_path / "a.md"
    assert incident("imports-joiner", "--output", file, "--capture", tmp_path / "sent.tar.gz") in (0, 1)
    assert "[a.capture.gz](<a.capture.gz>)" in file.read_text(encoding="utf-8")
    assert b"anything" == (tmp_path / "a.capture.gz").read_bytes()
    assert 2 == incident("imports-joiner", "--output", file, "--capture", tmp_path / "missing")
    assert "There is no capture" in capsys.readouterr().err
    assert 2 == incident("imports-joiner", "--output", file, "--capture", tmp_path)
    assert "is not a capture folder" in capsys.readouterr().err


def test_without_a_capture_the_document_says_how_to_record_one(incident, capsys) -> None:
    incident("imports-joiner")
    assert "regroup capture --cluster churn --out FOLDER" in capsys.readouterr().out
