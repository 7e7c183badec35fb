"""No test reads or writes the warehouse of whoever runs the tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from jobs.cli import main
from jobs.config.settings import Settings
from tests.setup.test_bundle import ROOT


def test_the_default_warehouse_is_none_of_this_folder() -> None:
    chosen = Settings.load().warehouse
    assert ROOT not in chosen.parents
    assert Path.cwd() not in chosen.parents


@pytest.fixture
def used(tmp_path, monkeypatch) -> Path:
    """A warehouse where the default would be."""
    monkeypatch.chdir(tmp_path)
    warehouse = tmp_path / ".regroup" / "warehouse"
    warehouse.mkdir(parents=True)
    return warehouse


def test_a_command_that_names_no_warehouse_leaves_the_default_one_alone(used, tmp_path) -> None:
    assert 2 == main(["replay", str(tmp_path), "--sources", "offset"])
    assert [] == list(used.iterdir())


def test_neither_does_a_process_that_a_test_starts(used, tmp_path) -> None:
    command = [sys.executable, "-P", "-m", "jobs.cli", "replay", str(tmp_path / "missing")]
    printed = subprocess.run(command, check=False, capture_output=True, text=True)
    assert 2 == printed.returncode
    assert [] == list(used.iterdir())


def test_a_mistyped_command_makes_no_warehouse(tmp_path, capsys) -> None:
    missing = tmp_path / "new" / "warehouse"
    assert 2 == main(["replay", str(tmp_path / "missing"), "--warehouse", str(missing)])
    assert not missing.exists()
    assert not missing.parent.exists()
