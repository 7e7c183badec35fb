"""A capture is untrusted: `replay` reads it, quarantines some of its lines, or says in one sentence why it cannot."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from jobs.captures.recording import Capture
from jobs.cli import main
from jobs.config.errors import UserError
from jobs.replay import bronze_of, split
from jobs.tables.new_rows import NewRows
from schemas.bronze import BRONZE
from tests.hostile.captures import BOMBS, LINE, READ, RECORDED, REFUSED, folder_with

ROOT = Path(__file__).parents[2]
REPLAY = """
import sys
from jobs.cli import main
code = main(["replay", *sys.argv[1:]])
status = open("/proc/self/status").read()
print(status.split("VmHWM:")[1].split()[0])
sys.exit(code)
"""


@pytest.fixture
def sentence(capsys, tmp_path):
    def run(folder: Path, *arguments: str) -> str:
        assert 2 == main(["replay", str(folder), "--warehouse", str(tmp_path / "w"), *arguments])
        printed = capsys.readouterr().err
        assert printed.endswith(".\n")
        assert printed.removesuffix("\n").isprintable()
        assert not (tmp_path / "w").exists()
        return printed

    return run


@pytest.mark.parametrize("attack", REFUSED)
def test_a_hostile_capture_is_refused_in_one_sentence(sentence, tmp_path, attack) -> None:
    change, expected = REFUSED[attack]
    assert expected in sentence(folder_with(tmp_path, change))


@pytest.mark.parametrize("attack", READ)
def test_a_strange_capture_is_read_and_what_is_unusable_goes_into_quarantine(tmp_path, attack) -> None:
    change, expected = READ[attack]
    capture = Capture(folder_with(tmp_path, change))
    (batch,) = split(capture, ["offsets", "log", "admin"], 1, None)
    rows = bronze_of(batch, "c", capture.meta)
    assert expected == len(rows["quarantine"])
    for table in BRONZE:
        NewRows.of(table, rows.get(table.name, []))


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_small_file_never_becomes_much_memory(tmp_path, bomb) -> None:
    folder = folder_with(tmp_path, BOMBS[bomb])
    used = {}
    for name, given in (("recorded", RECORDED), ("hostile", folder)):
        # Without a usable --batches, the recorded one is refused just before it would be read.
        command = [sys.executable, "-P", "-c", REPLAY, given, "--warehouse", tmp_path / "w"]
        command += ["--batches", "0"] if name == "recorded" else []
        environment = os.environ | {"REGROUP_CAPTURE_MB": "64", "PYTHONPATH": str(ROOT)}
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
        assert 2 == ended.returncode, ended.stderr
        used[name] = int(ended.stdout) / 1024
    assert "needs more than 64 MB of memory" in ended.stderr
    assert "raise capture_mb in the settings" in ended.stderr
    assert used["hostile"] - used["recorded"] < 200


def test_a_pipe_does_not_hang_a_process(tmp_path) -> None:
    folder = folder_with(tmp_path, REFUSED["a log is a pipe"][0])
    command = [sys.executable, "-P", "-m", "jobs.cli", "replay", folder, "--warehouse", tmp_path / "w"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert 2 == ended.returncode
    assert "a named pipe" in ended.stderr


def test_a_link_to_a_folder_is_not_followed(sentence, tmp_path) -> None:
    (tmp_path / "link").symlink_to(RECORDED)
    assert "is not a capture folder (a symbolic link)" in sentence(tmp_path / "link")


def test_a_folder_that_is_exchanged_meanwhile_is_not_followed(tmp_path) -> None:
    folder = folder_with(tmp_path, lambda _: None)
    capture = Capture(folder)
    before = len(capture.records())
    folder.rename(tmp_path / "away")
    folder.symlink_to("/etc")
    assert before == len(capture.records())
    (tmp_path / "away" / "broker-1.log.gz").unlink()
    (tmp_path / "away" / "broker-1.log.gz").symlink_to("/etc/passwd")
    with pytest.raises(UserError, match="a symbolic link"):
        list(capture.lines())


def test_a_million_files_are_counted_against_the_limit(tmp_path) -> None:
    folder = folder_with(tmp_path, lambda _: None)
    for number in range(1_500):
        (folder / f"file-{number}").touch()
    with pytest.raises(UserError, match="needs more than 1 MB of memory"):
        list(Capture(folder, limit_mb=1).lines())


def test_a_layout_that_the_settings_state_may_be_stated_by_a_capture(tmp_path) -> None:
    pattern = "%d{ISO8601} | %p | %m | %c%n"
    folder = folder_with(tmp_path, lambda folder: None)
    meta = (folder / "meta.json").read_text()
    (folder / "meta.json").write_text(re.sub(r'"log_pattern": "[^"]*"', f'"log_pattern": "{pattern}"', meta))
    with pytest.raises(UserError, match="may only name a known layout"):
        Capture(folder)
    assert pattern == Capture(folder, layouts={pattern}).meta["log_pattern"]


def test_an_oversized_line_of_a_log_is_cut_and_kept_in_quarantine(tmp_path) -> None:
    long = LINE.replace("group g ", f"group {'g' * 70_000} ")
    folder = folder_with(tmp_path, lambda folder: (folder / "broker-2.log").write_text(long + LINE))
    cut, whole = [line for line in Capture(folder).lines() if line.file == "broker-2.log"]
    assert (65_536, True) == (len(cut.text), cut.is_oversized)
    assert (LINE.strip(), False) == (whole.text, whole.is_oversized)


@pytest.mark.parametrize("batches", ["0", "-1", "1000000000000"])
def test_an_impossible_number_of_batches_is_refused(sentence, batches) -> None:
    assert "--batches must be from 1 to 10,000" in sentence(RECORDED, "--batches", batches)


@pytest.mark.parametrize("name", ["../w2", "", "x" * 300, "a\x1b[31m", ".."])
def test_a_cluster_name_that_is_no_file_name_is_refused(sentence, name) -> None:
    if name:
        assert "cannot be used" in sentence(RECORDED, "--cluster", name)
