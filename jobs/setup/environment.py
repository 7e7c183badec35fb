"""Prepares the environment of `./regroup`: creates `.venv` from `uv.lock`, finds Java and fetches jars.

It runs before any package is installed, so it uses only the standard library and modules that need no package.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from jobs.config.errors import UserError
from jobs.setup.java import java_home
from jobs.setup.locked_packages import LockedPackages, requirement

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
BYTECODE = VENV / "bytecode"
"""Where `./regroup` lets Python write compiled modules."""
LOCK = ROOT / "uv.lock"
OWN_UV = ROOT / ".regroup" / "uv"
# The purposes of an environment, with the options of `uv export` that select their packages.
PURPOSES = {"runtime": ("--no-dev", "--extra", "spark", "--extra", "otlp"), "development": ("--all-extras",)}
# A copy of the lock from which the environment was made. It is written last; ./regroup compares it at every start.
STAMPS = {"runtime": VENV / "regroup.lock", "development": VENV / "regroup-dev.lock"}
# The lock names the address of each file at its registry. Exported requirements have only hashes, so that a configured
# mirror of pip or uv can serve the files.
EXPORT = ("export", "--quiet", "--frozen", "--no-emit-project", "--no-annotate", "--no-header")
# Users with a mirror have configured it for pip; uv has its own variables for the same settings.
PIP_TO_UV = {
    "PIP_INDEX_URL": "UV_DEFAULT_INDEX",
    "PIP_EXTRA_INDEX_URL": "UV_INDEX",
    "PIP_FIND_LINKS": "UV_FIND_LINKS",
    "PIP_CERT": "SSL_CERT_FILE",
}


def prepare(purpose: str) -> None:
    """Make `.venv` contain exactly the locked packages of a purpose.

    It can be interrupted and repeated, and two processes may run it at once.

    Raises:
        UserError: Java, the network or the permission to write is missing.
    """
    _say(f"Java: {java_home()}")
    with _alone():
        if _is_prepared(purpose):
            return
        for stamp in STAMPS.values():
            stamp.unlink(missing_ok=True)
        # Python knows a changed module by its time and size, and both may be equal in two versions of a package.
        shutil.rmtree(BYTECODE, ignore_errors=True)
        uv = uv_program()
        if not _runs(VENV / "bin" / "python", "-c", "import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))"):
            _say(f"virtual environment: {VENV}")
            _run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(VENV)], "create the environment")
        _say(f"packages: {purpose}, of {LOCK.name} (about 1 GB the first time)")
        requirements = ROOT / ".regroup" / f"{purpose}.txt"
        export = [*EXPORT, *PURPOSES[purpose], "--project", str(ROOT), "--output-file", str(requirements)]
        _run([uv, *export], f"read {LOCK.name}")
        _run(
            [uv, "pip", "sync", "--require-hashes", "--python", str(VENV / "bin" / "python"), str(requirements)],
            f"install the {purpose} packages of {LOCK.name}",
        )
        _say("jars: Delta Lake, and Kafka for the embedded broker (about 60 MB the first time)")
        if subprocess.run([VENV / "bin" / "python", "-P", "-m", "jobs.setup.jars"], check=False).returncode:
            sys.exit(2)
        shutil.copyfile(LOCK, STAMPS[purpose])
        _say("ready")


def _is_prepared(purpose: str) -> bool:
    """Return whether `.venv` was made from this lock for this purpose, or for development, which has all packages."""
    stamps = {STAMPS[purpose], STAMPS["development"]}
    return any(stamp.exists() and stamp.read_bytes() == LOCK.read_bytes() for stamp in stamps)


def uv_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return `environ` with pip's settings also under uv's names, unless uv's own are set."""
    translated = {
        theirs: environ[ours].replace(" ", ",") if theirs == "UV_FIND_LINKS" else environ[ours]
        for ours, theirs in PIP_TO_UV.items()
        if environ.get(ours)
    }
    return {**translated, **environ}


@contextmanager
def _alone() -> Iterator[None]:
    """Allow one set-up at a time; a second one waits, and then finds everything ready."""
    (ROOT / ".regroup").mkdir(exist_ok=True)
    with (ROOT / ".regroup" / "lock").open("w") as guard:
        try:
            fcntl.flock(guard, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("waiting for another start that is setting up")
            fcntl.flock(guard, fcntl.LOCK_EX)
        yield


def uv_program() -> str:
    """Return the path of an installed uv that can read the lock, or else of a uv that pip installs by its hashes.

    Raises:
        UserError: Python has no `venv`, or pip could not install uv.
    """
    for uv in (shutil.which("uv"), str(OWN_UV / "bin" / "uv")):
        if uv and _runs(uv, *EXPORT, "--only-group", "setup", "--project", str(ROOT)):
            return uv
    _say("no installed uv can read uv.lock: installing one for Regroup")
    make = [sys.executable, "-m", "venv", "--clear", str(OWN_UV)]
    _run(make, "create an environment for uv (Debian: install python3-venv, or install uv yourself)")
    pip = [str(OWN_UV / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    requirements = OWN_UV / "requirements.txt"
    lines = map(requirement, LockedPackages(LOCK).group("setup"))
    requirements.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    _run([*pip, "--require-hashes", "-r", str(requirements)], "install uv")
    return str(OWN_UV / "bin" / "uv")


def _runs(program: str | Path, *arguments: str) -> bool:
    try:
        return subprocess.run([program, *arguments], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _run(command: list[str], purpose: str) -> None:
    if subprocess.run(command, env=uv_environment(os.environ), stdout=sys.stderr, check=False).returncode:
        raise UserError(
            f"Regroup could not {purpose}: see the reason above, check the network or the mirror, and start again; "
            "the set-up continues where it stopped."
        )


def _say(text: str) -> None:
    sys.stderr.write(f"regroup: {text}\n")
    sys.stderr.flush()


def main() -> int:
    """Run `python -m jobs.setup.environment PURPOSE`; report a failure in one sentence."""
    try:
        prepare(sys.argv[1])
    except UserError as error:
        _say(str(error))
    except OSError as error:
        _say(f"{ROOT} cannot be written ({error}): make the folder writable, or clone Regroup into a writable folder.")
    except KeyboardInterrupt:
        _say("set-up interrupted; the next start continues it.")
    else:
        return 0
    return 2


if __name__ == "__main__":
    sys.exit(main())
