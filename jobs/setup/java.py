"""Finds the Java for Spark and the embedded broker: a complete Java 17 or 21 on this machine."""

from __future__ import annotations

import os
import re
import shutil
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from jobs.config.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

SUPPORTED = (17, 21)
# Spark's launcher adds this module by name. Runtimes trimmed with jlink often lack it, and then fail to start.
NEEDED_MODULE = "jdk.incubator.vector"
INSTALL_FOLDERS = ("/usr/lib/jvm/*", "/opt/java/*", "/Library/Java/JavaVirtualMachines/*/Contents/Home")


@cache
def java_home() -> Path:
    """Return the folder of the first suitable Java in JAVA_HOME, PATH and the usual install folders.

    Raises:
        UserError: none of them is a complete Java 17 or 21.
    """
    seen: dict[Path, str] = {}
    for home in _candidates():
        if home not in seen:
            seen[home] = _misfit(home)
            if not seen[home]:
                return home
    found = f" (found: {'; '.join(f'{home} {why}' for home, why in seen.items())})" if seen else ""
    raise UserError(
        f"Regroup needs Java 17 or 21{found}: install one, for example with `apt-get install openjdk-17-jre-headless` "
        "or `brew install openjdk@21`, or point JAVA_HOME at it."
    )


def java() -> Path:
    """Return the `java` executable of `java_home()`."""
    return java_home() / "bin" / "java"


def javac() -> Path | None:
    """Return the compiler of the first Java 17 or 21 that has one; None if all are runtimes without a compiler."""
    homes = (home for home in _candidates() if not _misfit(home))
    return next((home / "bin" / "javac" for home in homes if (home / "bin" / "javac").exists()), None)


def _candidates() -> Iterator[Path]:
    if os.environ.get("JAVA_HOME"):
        yield Path(os.environ["JAVA_HOME"]).resolve()
    if on_path := shutil.which("java"):
        yield Path(on_path).resolve().parent.parent
    for pattern in INSTALL_FOLDERS:
        yield from sorted({home.resolve() for home in Path("/").glob(pattern[1:]) if (home / "bin" / "java").exists()})


def _misfit(home: Path) -> str:
    """Return why the folder is unsuitable, or an empty string. Reads the `release` file of every JDK and JRE."""
    if not os.access(home / "bin" / "java", os.X_OK):
        return "has no bin/java"
    try:
        release = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "has no release file"
    version = re.search(r'^JAVA_VERSION="(\d+)', release, re.MULTILINE)
    if version is None or int(version[1]) not in SUPPORTED:
        return f"is Java {version[1]}" if version else "has no version in its release file"
    modules = re.search(r'^MODULES="(.*)"', release, re.MULTILINE)
    if modules and NEEDED_MODULE not in modules[1].split():
        return f"is a trimmed Java {version[1]} without {NEEDED_MODULE}"
    return ""
