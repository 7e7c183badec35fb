"""`./regroup` itself, in a copy whose programs are small stand-ins on a PATH of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

import pytest

from jobs.setup.environment import STAMPS

ROOT = Path(__file__).parents[2]
NEEDED = ("sh", "dirname", "readlink", "cmp", "id")
CHECKS = ("ruff", "mypy", "lint-imports")
ECHO = '#!/bin/sh\n[ "$1" = -c ] || echo "$@"\n'


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A fresh clone with a lock, beside an empty folder of programs."""
    (tmp_path / "programs").mkdir()
    for program in NEEDED:
        (tmp_path / "programs" / program).symlink_to(shutil.which(program))
    root = tmp_path / "a clone"
    root.mkdir()
    shutil.copy(ROOT / "regroup", root)
    (root / "uv.lock").write_text("a lock\n")
    return root


def install(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)


def start(clone: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": str(clone.parent / "programs"), "HOME": str(clone.parent)} | variables
    return subprocess.run([clone / "regroup", *arguments], env=environment, capture_output=True, text=True, check=False)


def make_ready(clone: Path, purpose: str) -> None:
    install(clone / ".venv" / "bin" / "python", ECHO)
    shutil.copy(clone / "uv.lock", clone / ".venv" / STAMPS[purpose].name)


def test_a_machine_without_python_gets_one_sentence(clone):
    done = start(clone, "up")
    assert 2 == done.returncode
    assert (
        "regroup: Regroup needs Python 3.11 to 3.14: install one of these, or uv, which brings its own.\n"
        == done.stderr
    )


def test_a_python_of_another_version_counts_as_none(clone):
    install(clone.parent / "programs" / "python3", "#!/bin/sh\nexit 1\n")
    assert "needs Python 3.11 to 3.14" in start(clone, "up").stderr


def test_a_fresh_clone_is_prepared_for_the_runtime(clone):
    install(clone.parent / "programs" / "python3.12", ECHO)
    assert start(clone, "up").stdout.startswith("-P -m jobs.setup.environment runtime\n")


@pytest.mark.parametrize("purpose", STAMPS)
def test_a_ready_clone_goes_straight_to_the_command(clone, purpose):
    make_ready(clone, purpose)
    assert "-P -m jobs.cli replay a b --warehouse c\n" == start(clone, "replay", "a b", "--warehouse", "c").stdout


@pytest.mark.parametrize("command", ["up", "test"])
def test_modules_are_compiled_once_also_where_no_bytecode_may_lie_beside_them(clone, command):
    make_ready(clone, "development")
    told = '#!/bin/sh\n[ "$1" = -c ] || echo "${PYTHONDONTWRITEBYTECODE-unset} ${PYTHONPYCACHEPREFIX-unset}"\n'
    install(clone / ".venv" / "bin" / "python", told)

    def told_of(**variables: str) -> set[str]:
        return set(start(clone, command, **variables).stdout.splitlines())

    assert {"unset unset"} == told_of()
    assert {f"unset {clone}/.venv/bytecode"} == told_of(PYTHONDONTWRITEBYTECODE="1")
    assert {"unset /elsewhere"} == told_of(PYTHONDONTWRITEBYTECODE="1", PYTHONPYCACHEPREFIX="/elsewhere")


def test_a_changed_lock_is_prepared_again(clone):
    make_ready(clone, "runtime")
    (clone / "uv.lock").write_text("another\n")
    assert start(clone, "up").stdout.startswith("-P -m jobs.setup.environment runtime\n")


@pytest.mark.parametrize("command", ["test", "bench"])
def test_the_tests_and_the_benches_need_the_development_packages(clone, command):
    make_ready(clone, "runtime")
    assert start(clone, command).stdout.startswith("-P -m jobs.setup.environment development\n")


def test_the_checks_run_before_pytest_which_gets_the_arguments(clone):
    make_ready(clone, "development")
    for check in CHECKS:
        install(clone / ".venv" / "bin" / check, f'#!/bin/sh\necho {check} "$@"\n')
    done = start(clone, "test", "-k", "two words")
    printed = (
        "ruff check .\nruff format --check .\nmypy\nlint-imports\n"
        "-P -m jobs.spark.class_archive\n-P -m jobs.lab.class_archive\n-P -m pytest -k two words\n"
    )
    assert (0, printed) == (done.returncode, done.stdout)


@pytest.mark.parametrize("failing", CHECKS)
def test_one_failing_check_fails_the_run_after_pytest_has_passed(clone, failing):
    make_ready(clone, "development")
    for check in CHECKS:
        install(clone / ".venv" / "bin" / check, f"#!/bin/sh\nexit {int(check == failing)}\n")
    done = start(clone, "test")
    assert (1, "-P -m jobs.spark.class_archive\n-P -m jobs.lab.class_archive\n-P -m pytest\n") == (
        done.returncode,
        done.stdout,
    )
    assert f"failed: [{failing}" in done.stderr


@pytest.mark.parametrize("needed", ["browser tests need chromium", "alert tests need prometheus-alertmanager"])
def test_a_program_that_cannot_be_installed_is_named(clone, needed):
    make_ready(clone, "development")
    assert f"The {needed}" in start(clone, "test").stderr


def test_another_clock_is_installed_for_the_fault_trials_alone(clone):
    make_ready(clone, "development")
    needed = "The clock tests need faketime, which could not be installed"
    assert [True, True, False] == [
        needed in start(clone, "test", *arguments).stderr for arguments in (["--faults"], ["-x", "--faults=3"], ["-x"])
    ]


def test_a_program_that_is_there_is_not_installed(clone):
    make_ready(clone, "development")
    for program in ("chromium", "alertmanager"):
        install(clone.parent / "programs" / program, "#!/bin/sh\n")
    assert "installing" not in start(clone, "test").stderr


def test_a_failed_set_up_ends_the_start(clone):
    install(clone.parent / "programs" / "python3", '#!/bin/sh\n[ "$1" = -c ]\n')
    assert 2 == start(clone, "up").returncode


def test_a_ready_clone_adds_less_than_a_tenth_of_a_second(clone):
    make_ready(clone, "runtime")

    def seconds() -> tuple[float, float]:
        """Return seconds of the clock and of the processor; other programs do not change the latter."""
        began, before = time.perf_counter(), getrusage(RUSAGE_CHILDREN)
        start(clone, "up")
        after = getrusage(RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return time.perf_counter() - began, used

    took, used = (min(each) for each in zip(*(seconds() for _ in range(5)), strict=True))
    assert used < 0.1
    assert took < 1, "nor does it wait for anything"


def test_ci_runs_exactly_the_tests():
    assert ["./regroup test"] == [line for line in (ROOT / ".ci" / "run").read_text().splitlines() if "regroup" in line]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
