"""Fetches exact Maven coordinates with the Ivy of pyspark, reports progress, and verifies each file by SHA-256."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from xml.sax.saxutils import quoteattr

from jobs.config.errors import UserError
from jobs.setup.java import java

IVY_SETTINGS = "REGROUP_IVY_SETTINGS"
# Ivy's [ext] would be the POM's packaging, but every locked artifact is a plain jar.
PATTERN = "[organisation].[module]-[revision].jar"
REPORT_S = 5.0
STALLED_S = 120.0
"""Seconds without a new byte after which a fetch is given up. Ivy itself waits for ever."""


def jar_file(coordinate: str, folder: Path) -> Path:
    """Return the path in `folder` of the jar "organisation:artifact:revision"."""
    organisation, artifact, revision = coordinate.split(":")
    return folder / f"{organisation}.{artifact}-{revision}.jar"


def sha256_of(file: Path) -> str:
    """Return the SHA-256 of the file's bytes, in hex."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def fetch(missing: dict[str, str], cache: Path) -> None:
    """Retrieve exact coordinates into `cache`. Move each file into place after its hash is verified.

    Raises:
        UserError: a jar cannot be fetched, or its SHA-256 differs.
    """
    _say(f"fetching {len(missing)} jars into {cache}")
    with tempfile.TemporaryDirectory(dir=cache, prefix=".fetch-") as folder:
        staging = Path(folder)
        reason = _run_ivy(missing, staging)
        for coordinate, sha256 in missing.items():
            file = jar_file(coordinate, staging)
            if not file.exists():
                raise UserError(
                    f"The jar {coordinate} cannot be fetched{reason}: check the network, or name a mirror "
                    f"in an Ivy settings file and set {IVY_SETTINGS} to its path; without network, copy the jars of "
                    "another machine and set REGROUP_JARS to their folder."
                )
            if sha256_of(file) != sha256:
                raise UserError(
                    f"The jar {coordinate} has another SHA-256 than in jars.lock, so it was deleted: "
                    "check the repository or mirror it comes from."
                )
            file.replace(jar_file(coordinate, cache))


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
    with (staging / "output").open("w+", encoding="utf-8", errors="replace") as output:
        is_stalled = not _ended(subprocess.Popen(command, stdout=output, stderr=output), staging, len(wanted))
        output.seek(0)
        causes = [line.strip() for line in output if "Exception" in line]
    if is_stalled:
        return f" (no byte arrived for {STALLED_S:.0f} s)"
    return f" ({causes[0][:200]})" if causes else ""


def _ended(ivy: subprocess.Popen[bytes], staging: Path, wanted: int) -> bool:
    """Wait for Ivy, and report progress every few seconds. Return False if it was stopped because nothing arrived."""
    size, since = 0, time.monotonic()
    try:
        while True:
            try:
                ivy.wait(REPORT_S)
            except subprocess.TimeoutExpired:
                # Descriptions of the jars arrive first, and count as progress.
                files = _sizes(staging / "cache")
                if sum(files.values()) != size:
                    size, since = sum(files.values()), time.monotonic()
                    number = min(wanted, sum(".jar" in file.name for file in files))
                    _say(f"fetched {number} of {wanted} jars, {size / 1e6:.0f} MB")
                if time.monotonic() - since > STALLED_S:
                    return False
            else:
                return True
    finally:
        ivy.kill()
        ivy.wait()


def _sizes(folder: Path) -> dict[Path, int]:
    found = {}
    for file in folder.glob("**/*"):
        # Ivy renames a file when it is complete.
        with suppress(FileNotFoundError):
            if file.is_file():
                found[file] = file.stat().st_size
    return found


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
        raise UserError(
            "pyspark is not installed, and its Ivy fetches the jars: install regroup[spark], or start Regroup with "
            "./regroup of a checkout, which installs it."
        )
    return next((Path(pyspark.origin).parent / "jars").glob("ivy-*.jar"))


def _say(text: str) -> None:
    sys.stderr.write(f"regroup: {text}\n")
    sys.stderr.flush()
