"""The jars that Regroup runs: fetched once, verified by SHA-256, and kept in the user's cache."""

from __future__ import annotations

import fcntl
import json
import os
import sys
import tomllib
from pathlib import Path

from jobs.config.errors import UserError
from jobs.setup.jar_downloads import fetch, jar_file, sha256_of

LOCK = Path(__file__).with_name("jars.lock")
GIVEN = "REGROUP_JARS"
"""Environment variable: a folder that has all jars, for machines without network and for images."""
ALWAYS = ("delta", "kafka")
"""Tables of the lock that every use needs. The others are fetched when a scenario of the lab first runs, `s3` when a
job first uses tables in S3.
"""
OF_CLUSTERS = ("delta", "s3")
"""Tables of the lock that a Spark cluster may lack. The others are for the lab."""


def jars(name: str) -> list[Path]:
    """Return the verified files of one table of `jars.lock`, in the lock's order.

    The first call fetches missing jars. Later calls use neither the network nor a JVM. If `REGROUP_JARS` names a
    folder, the files there are used in place, nothing is fetched, and the folder is never written.

    Raises:
        UserError: a jar cannot be fetched or is not in the given folder, or its SHA-256 differs from the lock.
    """
    given = os.environ.get(GIVEN)
    return resolve_given(locked()[name], Path(given)) if given else resolve(locked()[name], cache_dir())


def jars_dir() -> Path:
    """Return the folder that `jars` uses: that of `REGROUP_JARS`, or else `cache_dir()`."""
    given = os.environ.get(GIVEN)
    return Path(given) if given else cache_dir()


def locked() -> dict[str, dict[str, str]]:
    """Return the lock: table name to {"organisation:artifact:revision": SHA-256 in hex}."""
    lock: dict[str, dict[str, str]] = tomllib.loads(LOCK.read_text(encoding="utf-8"))
    return lock


def cache_dir() -> Path:
    """Return the folder of the jars: `regroup/jars` below `$XDG_CACHE_HOME` or `~/.cache`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "regroup" / "jars"


def resolve_given(lock: dict[str, str], folder: Path) -> list[Path]:
    """Return the files of `lock` in a folder that the user gives, verified by SHA-256. Nothing is fetched or written.

    Raises:
        UserError: the folder lacks a jar, or a jar has another SHA-256 than the lock.
    """
    for coordinate in _missing(lock, folder):
        file = jar_file(coordinate, folder)
        why = "has another SHA-256 than in jars.lock" if file.exists() else "is not there"
        raise UserError(
            f"{file} {why}, and {GIVEN} names this folder: fill it with `regroup jars --all --to DIR` of the same "
            f"version of Regroup on a machine with network, or unset {GIVEN}."
        )
    return [jar_file(coordinate, folder) for coordinate in lock]


def resolve(lock: dict[str, str], cache: Path) -> list[Path]:
    """Return the files of `lock` in `cache`, verified by SHA-256. Several processes may call this at once."""
    if _missing(lock, cache):
        try:
            cache.mkdir(parents=True, exist_ok=True)
            with (cache / ".lock").open("w") as guard:
                fcntl.flock(guard, fcntl.LOCK_EX)
                if missing := _missing(lock, cache):
                    fetch(missing, cache)
                    _remember(lock, cache)
        except OSError as error:
            raise UserError(
                f"The jars cannot be stored in {cache} ({error.strerror}): make it writable or set XDG_CACHE_HOME."
            ) from error
    return [jar_file(coordinate, cache) for coordinate in lock]


def _identity(file: Path) -> list[int]:
    stat = file.stat()
    return [stat.st_size, stat.st_mtime_ns]


def _missing(lock: dict[str, str], cache: Path) -> dict[str, str]:
    """Return the locked jars that are absent or differ. A hashed jar is trusted until its size or mtime changes."""
    try:
        verified = json.loads((cache / "verified.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        verified = {}
    return {c: sha for c, sha in lock.items() if not _is_good(jar_file(c, cache), sha, verified)}


def _is_good(file: Path, sha256: str, verified: dict[str, list[object]]) -> bool:
    try:
        return verified.get(file.name) == [*_identity(file), sha256] or sha256_of(file) == sha256
    except OSError:
        return False


def _remember(lock: dict[str, str], cache: Path) -> None:
    """Record which files were hashed, so that the next start can skip them."""
    note = cache / "verified.json"
    try:
        verified = json.loads(note.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        verified = {}
    for coordinate, sha256 in lock.items():
        file = jar_file(coordinate, cache)
        verified[file.name] = [*_identity(file), sha256]
    fresh = note.with_suffix(".new")
    fresh.write_text(json.dumps(verified, indent=1), encoding="utf-8")
    fresh.replace(note)


if __name__ == "__main__":
    try:
        for table in ALWAYS:
            jars(table)
    except UserError as error:
        sys.exit(f"regroup: {error}")
