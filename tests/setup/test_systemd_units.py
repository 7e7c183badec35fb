"""The systemd units: commands that exist, folders and exit codes that agree with the code and with the how-to page."""

from __future__ import annotations

import re
import shlex
import subprocess
from configparser import ConfigParser
from pathlib import Path
from shutil import which

import pytest

from jobs.command_line.parser import parser

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "systemd"
UNITS = sorted(FOLDER.glob("*.service"))
COMMON = FOLDER / "regroup-.service.d" / "10-common.conf"
HOW_TO = ROOT / "docs" / "how-to" / "install-on-a-host.md"


def values(file: Path) -> dict[str, list[str]]:
    """The values of each key, in order. Keys may be repeated."""
    found: dict[str, list[str]] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        key, sign, value = line.partition("=")
        if sign and not line.startswith("#"):
            found.setdefault(key, []).append(value)
    return found


def test_there_is_a_unit_for_each_way_to_run_on_a_host() -> None:
    expected = ["regroup-pages", "regroup-receive-metrics", "regroup-ship-logs", "regroup-up"]
    assert expected == [unit.stem for unit in UNITS]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_its_command_exists(unit: Path) -> None:
    found = values(unit)
    command = found["ExecStart"][0]
    for variable in found.get("Environment", ()):
        name, _, value = variable.partition("=")
        command = command.replace(f"${{{name}}}", value)
    program, *words = shlex.split(command)
    assert "/opt/regroup/bin/regroup" == program
    assert parser().parse_args(words).config == Path("/etc/regroup/regroup.toml")
    assert unit.stem.startswith("regroup-"), "the common settings apply to such names only"


def test_the_settings_are_no_mistake_of_spelling() -> None:
    for file in (*UNITS, COMMON):
        ConfigParser(strict=False, interpolation=None).read_string(file.read_text(encoding="utf-8"))
    program = which("systemd-analyze")
    if program is None:  # Not every system has systemd; if it is there, it checks the units itself.
        return
    for unit in UNITS:
        done = subprocess.run(
            [program, "verify", unit],
            env={"SYSTEMD_UNIT_PATH": f"{FOLDER}:"},
            check=False,
            capture_output=True,
            text=True,
        )
        complaints = [line for line in done.stderr.splitlines() if "is not executable" not in line]
        assert not [line for line in complaints if "regroup" in line], done.stderr


def test_a_unit_can_write_to_its_own_folders_only() -> None:
    common = values(COMMON)
    assert {"strict"} == set(common["ProtectSystem"])
    for key in ("NoNewPrivileges", "ProtectHome", "PrivateTmp", "PrivateDevices"):
        assert ["yes"] == common[key], key
    assert [""] == common["CapabilityBoundingSet"]
    assert "MemoryDenyWriteExecute" not in common, "Java and Python compile while they run"
    assert "REGROUP_WAREHOUSE=%S/regroup/warehouse" in common["Environment"]
    assert ["regroup"] == common["StateDirectory"] == common["CacheDirectory"] == common["User"]


def test_a_mistake_is_not_repeated() -> None:
    """`jobs.cli.main` returns 2 for a mistake that its user can mend."""
    assert ["2"] == values(COMMON)["RestartPreventExitStatus"]


def test_the_how_to_page_names_the_files_and_folders() -> None:
    page = HOW_TO.read_text(encoding="utf-8")
    for name in ("regroup.sysusers.conf", "regroup-.service.d", *(unit.stem for unit in UNITS)):
        assert name in page, name
    credential = re.search(r"file:/run/credentials/(\S+)/(\S+)\"", page)
    assert credential
    assert "regroup-up.service" == credential[1]
    assert f"LoadCredential={credential[2]}:" in page
    assert f"/etc/systemd/system/{credential[1]}.d/" in page
