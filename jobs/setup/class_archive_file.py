"""The paths of the archives of loaded classes, of Spark and of the broker, and the JVM options to use them."""

from __future__ import annotations

import hashlib
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from jobs.setup.jars import jars
from jobs.setup.java import java_home

SILENT = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")


def archive(package: Literal["delta", "kafka"] = "delta") -> Path:
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


def options(package: Literal["delta", "kafka"] = "delta") -> tuple[str, ...]:
    """Return the options of a JVM that uses the archive; none if the archive does not exist."""
    file = archive(package)
    return (f"-XX:SharedArchiveFile={file}", "-Xshare:auto", *SILENT) if file.exists() else ()
