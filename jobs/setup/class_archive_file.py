"""Archives of the loaded classes of Spark and of the broker: paths, creation, and the JVM options to use them."""

from __future__ import annotations

import hashlib
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from jobs.setup.jars import jars
from jobs.setup.java import java_home

Package = Literal["delta", "kafka"]

SILENT = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")


def archive(package: Package = "delta") -> Path:
    """Return the path of the archive of these jars' classes in the environment of this Python.

    The file has a few hundred MB with Spark's, 50 MB with the broker's.
    """
    parts = [
        (java_home() / "release").read_text(encoding="utf-8", errors="replace"),
        version("pyspark"),
        *(jar.name for jar in jars(package)),
    ]
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    return Path(sys.prefix) / "regroup" / f"classes-{key}.jsa"


def options(package: Package = "delta") -> tuple[str, ...]:
    """Return the options of a JVM that uses the archive; none if the archive does not exist."""
    file = archive(package)
    return (f"-XX:SharedArchiveFile={file}", "-Xshare:auto", *SILENT) if file.exists() else ()


def create(package: Package, notice: str, dump: Callable[[Path, Path], None]) -> None:
    """Create the archive, unless it exists. `dump` writes it to its first argument; the second one is a folder for it.

    Raises:
        OSError: the environment cannot be written.
    """
    file = archive(package)
    if file.exists():
        return
    sys.stderr.write(f"regroup: {notice}\n")
    file.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        part = Path(folder) / "classes.jsa"
        dump(part, Path(folder))
        part.replace(file)
