"""Compiles the lab's Java programs once, with the locked jars and an installed Java compiler."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from jobs.config.errors import UserError
from jobs.setup.jars import cache_dir, jars, locked
from jobs.setup.java import javac

SOURCES = Path(__file__).with_name("java")
RELEASE = "17"


@cache
def compiled(program: str, tables: tuple[str, ...]) -> Path:
    """Return the folder with the classes of `program`, compiled with the jars of these tables of the lock.

    Raises:
        UserError: no Java compiler is installed, or the sources do not compile.
    """
    sources = [SOURCES / "Orders.java", SOURCES / f"{program}.java"]
    folder = cache_dir().parent / "lab" / _digest(sources, tables)
    if folder.exists():
        return folder
    compiler = javac()
    if compiler is None:
        raise UserError(f"The lab's {program} needs a Java compiler: install a JDK 17 or 21, not only its runtime.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".new-"))
    classpath = os.pathsep.join(str(jar) for table in tables for jar in jars(table))
    command: list[str | Path] = [compiler, "--release", RELEASE, "-proc:none", "-cp", classpath, "-d", fresh, *sources]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        shutil.rmtree(fresh)
        raise UserError(f"The lab's {program} does not compile: {done.stderr.strip()[:300]}")
    try:
        fresh.rename(folder)
    except OSError:
        # Another process has already created the same classes.
        shutil.rmtree(fresh)
    return folder


def _digest(sources: list[Path], tables: tuple[str, ...]) -> str:
    lock = locked()
    hashed = hashlib.sha256(b"".join(source.read_bytes() for source in sources))
    hashed.update(str([lock[table] for table in tables]).encode())
    return f"{sources[-1].stem}-{hashed.hexdigest()[:16]}"
