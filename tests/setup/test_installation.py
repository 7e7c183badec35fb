"""What an installed Regroup says about itself and prepares: version and build, shell completion, jars for elsewhere."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import pytest

from jobs.cli import main
from jobs.command_line.parser import parser
from jobs.config.errors import UserError
from jobs.installation import build_info
from jobs.installation.arguments import SHELLS
from jobs.installation.completion import script
from jobs.setup.jar_downloads import jar_file
from jobs.setup.jars import jars, jars_dir, locked, resolve_given

DATE = {"commit": "0123456789abcdef", "date": "2026-11-27", "is_modified": False}


def test_the_version_names_the_commit(capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert 0 == ended.value.code
    assert re.fullmatch(
        r"regroup \d+\.\d+\.\d+ \((checkout [0-9a-f]{12}|build unknown: ).*\)\n", capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("record", "shown"),
    [
        (DATE, "(commit 0123456789ab, 2026-11-27)"),
        (DATE | {"is_modified": True}, "(commit 0123456789ab with local changes, 2026-11-27)"),
    ],
)
def test_a_wheel_has_a_record_of_its_build(tmp_path, monkeypatch, record, shown) -> None:
    file = tmp_path / "build.json"
    file.write_text(json.dumps(record))
    monkeypatch.setattr(build_info, "RECORD", file)
    assert build_info.described().endswith(shown)


def test_without_record_and_git_the_build_is_unknown(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(build_info, "ROOT", tmp_path)
    monkeypatch.setattr(build_info, "RECORD", tmp_path / "absent")
    assert "(build unknown: neither a released wheel nor a git checkout)" in build_info.described()


@pytest.mark.parametrize("shell", SHELLS)
def test_a_completion_is_a_script_with_every_command(shell) -> None:
    text = script(parser(), shell)
    for command in ("up", "ship-logs", "completion"):
        assert command in text
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=text, text=True, check=True)


def test_bash_completes_commands_and_options() -> None:
    ask = """
COMP_WORDS=(regroup re); COMP_CWORD=1; _shtab_regroup; echo "${COMPREPLY[@]}"
COMP_WORDS=(regroup replay --b); COMP_CWORD=2; _shtab_regroup; echo "${COMPREPLY[@]}"
"""
    done = subprocess.run(["bash"], input=script(parser(), "bash") + ask, text=True, check=True, capture_output=True)
    assert ["replay rebuild report receive-metrics", "--batches"] == done.stdout.splitlines()


def test_a_completion_survives_a_reader_that_ends(tmp_path) -> None:
    done = subprocess.run(
        ["bash", "-c", "set -o pipefail; ./regroup completion bash | head -1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr


@pytest.fixture
def given(tmp_path, monkeypatch):
    """A folder with the jars of Delta, copied for a machine without network."""
    folder = tmp_path / "given"
    folder.mkdir()
    for file in jars("delta"):
        shutil.copy(file, folder)
    monkeypatch.setenv("REGROUP_JARS", str(folder))
    return folder


def test_jars_of_a_given_folder_are_used_in_place(given, monkeypatch) -> None:
    monkeypatch.setattr("jobs.setup.jars.fetch", pytest.fail)
    before = {file.name for file in given.iterdir()}
    assert {given} == {file.parent for file in jars("delta")} == {jars_dir()}
    assert before == {file.name for file in given.iterdir()}, "nothing is written there"


def test_a_missing_or_damaged_jar_of_a_given_folder_is_named(given) -> None:
    coordinate = next(iter(locked()["delta"]))
    file = jar_file(coordinate, given)
    file.write_bytes(b"damaged")
    with pytest.raises(UserError, match=rf"{re.escape(file.name)} has another SHA-256 than in jars\.lock"):
        jars("delta")
    file.unlink()
    with pytest.raises(
        UserError, match=r"is not there, and REGROUP_JARS names this folder: fill it with `regroup jars"
    ):
        resolve_given(locked()["delta"], given)


@pytest.mark.parametrize(
    ("options", "tables"),
    [([], ("delta", "kafka")), (["--s3", "--without-kafka"], ("delta", "s3")), (["--without-kafka"], ("delta",))],
)
def test_jars_can_be_copied_for_another_machine(tmp_path, capsys, options, tables) -> None:
    assert 0 == main(["jars", *options, "--to", str(tmp_path / "for the other")])
    copied = {file.name for file in (tmp_path / "for the other").iterdir()}
    assert {jar_file(c, tmp_path).name for table in tables for c in locked()[table]} == copied
    assert f"{len(copied)} jars, " in capsys.readouterr().out
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert 2 == main(["jars", "--to", str(blocked)])
    assert "The jars cannot be copied to" in capsys.readouterr().err
