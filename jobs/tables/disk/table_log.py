"""The files of a table's log, and the checksums that Hadoop keeps beside a file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import unquote

HINT = "_last_checkpoint"
"""The file that names the newest checkpoint. Delta works without it, but not if it names a missing checkpoint."""

CHECKPOINT_COMMITS = 10
"""Commits between two checkpoints of a table that deltalake writes."""


def newest_version(log: Path) -> int:
    """Return the newest version of a table, or -1 if there is none."""
    names = os.listdir(log) if log.is_dir() else []  # noqa: PTH208 - takes a third of the time of `Path` objects
    stems = (name.removesuffix(".json") for name in names if name.endswith(".json"))
    return max((int(stem) for stem in stems if stem.isdigit()), default=-1)


def commit_of(log: Path, version: int) -> Path:
    return log / f"{version:020}.json"


def checkpoint_of(log: Path, version: int) -> Path:
    """Return the path of a checkpoint in one file."""
    return log / f"{version:020}.checkpoint.parquet"


def sums_of(file: Path) -> Path:
    """Return the path of Hadoop's checksum file for a file."""
    return file.with_name(f".{file.name}.crc")


def actions_in(commit: Path) -> list[dict[str, Any]] | None:
    """Return the actions of a commit; None if the log no longer has it."""
    try:
        # As text, a line would also end at characters such as U+2028, which JSON may have in a group id.
        return [json.loads(line) for line in commit.read_bytes().splitlines()]
    except FileNotFoundError:
        return None


def added_files(commit: Path) -> list[str]:
    """Return the data files that a commit adds, as paths within the table; none if the log no longer has it."""
    return [unquote(action["add"]["path"]) for action in actions_in(commit) or () if "add" in action]
