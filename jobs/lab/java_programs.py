"""Compiles the lab's Java programs once, with the locked jars and an installed Java compiler."""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path

from jobs.config.errors import UserError
from jobs.lab.built_once import built_once, completed, program_folder
from jobs.setup.jars import jars, locked
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
    folder = program_folder(_digest(sources, tables))
    if folder.exists():
        return folder
    compiler = javac()
    if compiler is None:
        raise UserError(f"The lab's {program} needs a Java compiler: install a JDK 17 or 21, not only its runtime.")
    classpath = os.pathsep.join(str(jar) for table in tables for jar in jars(table))

    def build(fresh: Path) -> None:
        options = ["--release", RELEASE, "-proc:none", "-cp", classpath, "-d", str(fresh)]
        completed(
            [compiler, *options, *sources],
            fresh,
            lambda printed: f"The lab's {program} does not compile: {printed[:300]}",
        )

    return built_once(folder, build)


def _digest(sources: list[Path], tables: tuple[str, ...]) -> str:
    lock = locked()
    hashed = hashlib.sha256(b"".join(source.read_bytes() for source in sources))
    hashed.update(str([lock[table] for table in tables]).encode())
    return f"{sources[-1].stem}-{hashed.hexdigest()[:16]}"
