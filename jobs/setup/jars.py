"""The jars that Regroup runs: fetched once, verified by SHA-256, and kept in the user's cache."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from xml.sax.saxutils import quoteattr

from jobs.config.errors import UserError
from jobs.setup.java import java

LOCK = Path(__file__).with_name("jars.lock")
IVY_SETTINGS = "REGROUP_IVY_SETTINGS"
ALWAYS = ("delta", "kafka")
"""Tables of the lock that every use needs. The others are fetched when a scenario of the lab first runs."""
# Ivy's [ext] would be the POM's packaging, but every locked artifact is a plain jar.
PATTERN = "[organisation].[module]-[revision].jar"


def jars(name: str) -> list[Path]:
    """Return the verified files of one table of `jars.lock`, in the lock's order.

    The first call fetches missing jars. Later calls use neither the network nor a JVM.

    Raises:
        UserError: a jar cannot be fetched, or its SHA-256 differs from the lock.
    """
    return resolve(locked()[name], cache_dir())


def locked() -> dict[str, dict[str, str]]:
    """Return the lock: table name to {"organisation:artifact:revision": SHA-256 in hex}."""
    lock: dict[str, dict[str, str]] = tomllib.loads(LOCK.read_text(encoding="utf-8"))
    return lock


def cache_dir() -> Path:
    """Return the folder of the jars: `regroup/jars` below `$XDG_CACHE_HOME` or `~/.cache`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "regroup" / "jars"


def resolve(lock: dict[str, str], cache: Path) -> list[Path]:
    """Return the files of `lock` in `cache`, verified by SHA-256. Several processes may call this at once."""
    if _missing(lock, cache):
        try:
            cache.mkdir(parents=True, exist_ok=True)
            with (cache / ".lock").open("w") as guard:
                fcntl.flock(guard, fcntl.LOCK_EX)
                if missing := _missing(lock, cache):
                    _fetch(missing, cache)
                    _remember(lock, cache)
        except OSError as error:
            raise UserError(
                f"The jars cannot be stored in {cache} ({error.strerror}): make it writable or set XDG_CACHE_HOME."
            ) from error
    return [_file(coordinate, cache) for coordinate in lock]


def _file(coordinate: str, cache: Path) -> Path:
    organisation, artifact, revision = coordinate.split(":")
    return cache / f"{organisation}.{artifact}-{revision}.jar"


def _identity(file: Path) -> list[int]:
    stat = file.stat()
    return [stat.st_size, stat.st_mtime_ns]


def _missing(lock: dict[str, str], cache: Path) -> dict[str, str]:
    """Return the locked jars that are absent or differ. A hashed jar is trusted until its size or mtime changes."""
    try:
        verified = json.loads((cache / "verified.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        verified = {}
    return {c: sha for c, sha in lock.items() if not _is_good(_file(c, cache), sha, verified)}


def _is_good(file: Path, sha256: str, verified: dict[str, list[object]]) -> bool:
    try:
        return verified.get(file.name) == [*_identity(file), sha256] or _sha256(file) == sha256
    except OSError:
        return False


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _remember(lock: dict[str, str], cache: Path) -> None:
    """Record which files were hashed, so that the next start can skip them."""
    note = cache / "verified.json"
    try:
        verified = json.loads(note.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        verified = {}
    for coordinate, sha256 in lock.items():
        file = _file(coordinate, cache)
        verified[file.name] = [*_identity(file), sha256]
    fresh = note.with_suffix(".new")
    fresh.write_text(json.dumps(verified, indent=1), encoding="utf-8")
    fresh.replace(note)


def _fetch(missing: dict[str, str], cache: Path) -> None:
    """Retrieve exact coordinates with the Ivy in pyspark. Move each file into place after its hash is verified."""
    sys.stderr.write(f"regroup: fetching {len(missing)} jars into {cache}\n")
    with tempfile.TemporaryDirectory(dir=cache, prefix=".fetch-") as folder:
        staging = Path(folder)
        reason = _run_ivy(missing, staging)
        for coordinate, sha256 in missing.items():
            file = _file(coordinate, staging)
            if not file.exists():
                raise UserError(
                    f"The jar {coordinate} cannot be fetched{reason}: check the network, or name a mirror "
                    f"in an Ivy settings file and set {IVY_SETTINGS} to its path."
                )
            if _sha256(file) != sha256:
                raise UserError(
                    f"The jar {coordinate} has another SHA-256 than in jars.lock, so it was deleted: "
                    "check the repository or mirror it comes from."
                )
            file.replace(_file(coordinate, cache))


def _run_ivy(wanted: dict[str, str], staging: Path) -> str:
    """Retrieve `wanted` into `staging`. Return Ivy's error in brackets, or an empty string."""
    description = staging / "ivy.xml"
    description.write_text(_ivy_module(wanted), encoding="utf-8")
    settings = os.environ.get(IVY_SETTINGS)
    if settings and not Path(settings).is_file():
        raise UserError(f"{IVY_SETTINGS} names {settings}, which is not a file: correct the path or unset it.")
    command: list[str | Path] = [java(), "-jar", _ivy_jar(), "-warn", "-ivy", description, "-cache", staging / "cache"]
    command += ["-settings", settings] if settings else []
    command += ["-retrieve", staging / PATTERN]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    causes = [line.strip() for line in (done.stdout + done.stderr).splitlines() if "Exception" in line]
    return f" ({causes[0][:200]})" if causes else ""


def _ivy_module(wanted: dict[str, str]) -> str:
    dependency = '<dependency org={} name={} rev={} transitive="false" conf="default->master(default)"/>'
    dependencies = "".join(dependency.format(*map(quoteattr, coordinate.split(":"))) for coordinate in wanted)
    return (
        '<ivy-module version="2.0"><info organisation="regroup" module="jars"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{dependencies}</dependencies></ivy-module>"
    )


def _ivy_jar() -> Path:
    pyspark = importlib.util.find_spec("pyspark")
    if pyspark is None or pyspark.origin is None:
        raise UserError("pyspark is not installed: start Regroup with ./regroup, which installs it.")
    return next((Path(pyspark.origin).parent / "jars").glob("ivy-*.jar"))


if __name__ == "__main__":
    try:
        for table in ALWAYS:
            jars(table)
    except UserError as error:
        sys.exit(f"regroup: {error}")
