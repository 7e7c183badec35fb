"""The path of the archive of Spark's and Delta's classes, and the JVM options to use it."""

from __future__ import annotations

import hashlib
import sys
from importlib.metadata import version
from pathlib import Path

from jobs.setup.jars import jars
from jobs.setup.java import java_home

SILENT = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")


def archive() -> Path:
    """Return the path of the archive in the environment of this Python. The file has a few hundred MB."""
    parts = [
        (java_home() / "release").read_text(encoding="utf-8", errors="replace"),
        version("pyspark"),
        *(jar.name for jar in jars("delta")),
    ]
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    return Path(sys.prefix) / "regroup" / f"classes-{key}.jsa"


def options() -> tuple[str, ...]:
    """Return the options of a JVM that uses the archive; none if the archive does not exist."""
    file = archive()
    return (f'"-XX:SharedArchiveFile={file}"', "-Xshare:auto", *SILENT) if file.exists() else ()
