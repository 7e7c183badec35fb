"""The container's definition, as far as it can be told without building it: no engine runs where the tests do."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from tests.setup.test_bundle import ROOT

LINES = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8").splitlines()
COPIED = [words[2:-1] for words in map(str.split, LINES) if words[:1] == ["COPY"]]


def test_what_is_copied_is_there_and_is_not_left_out_of_what_is_sent() -> None:
    sent = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    for name in (name for names in COPIED for name in names):
        assert (ROOT / name).exists(), name
        assert f"!{name}" in sent, name


def test_what_is_copied_is_enough_to_start(tmp_path: Path) -> None:
    for name in (name for names in COPIED for name in names):
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, target)
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    asked = [tmp_path / ".venv" / "bin" / "python", "-P", "-m", "jobs.cli", "--help"]
    told = subprocess.run(
        asked, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=True
    )
    assert "maintain" in told.stdout or "quality" in told.stdout


def test_it_does_not_run_as_root_and_names_no_registry() -> None:
    users = [line for line in LINES if line.startswith("USER")]
    assert users == ["USER regroup"]
    assert LINES.index(users[0]) < next(at for at, line in enumerate(LINES) if line.startswith("COPY"))
    (image,) = (line.split()[1] for line in LINES if line.startswith("FROM"))
    assert re.fullmatch(r"[a-z]+:[a-z0-9.-]+", image)
