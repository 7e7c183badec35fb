"""The lines of Python whose allocations grow, from what `testing.ageing.inside` writes of a process that is traced."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

Blocks = dict[str, int]
"""Blocks in use by the line that allocated them, such as `dashboards/lake/lake.py:80`."""

TRACED = {"PYTHONTRACEMALLOC": "1"}
"""The environment of processes that are traced. Python keeps a record of each block, so memory and time are higher."""


def snapshots(path: Path) -> list[Blocks]:
    """Return what a process has written, the oldest first. A last line that is not complete is left out."""
    try:
        whole = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in whole[: whole.rfind("\n") + 1].splitlines()]


def grown(of_process: list[Blocks], most: int = 12) -> list[tuple[str, int, int]]:
    """Return the lines with the most additional blocks after the first third, with the blocks before and at the end."""
    if len(of_process) < 2:
        return []
    first, last = of_process[len(of_process) // 3], of_process[-1]
    lines = sorted(first.keys() | last.keys(), key=lambda line: first.get(line, 0) - last.get(line, 0))
    found = [(line, first.get(line, 0), last.get(line, 0)) for line in lines[:most]]
    return [each for each in found if each[2] > each[1]]


def report(inside: Path, names: Mapping[int, str]) -> list[str]:
    """Return the lines that grow, by process; `names` are those of the processes."""
    out = []
    for pid, name in names.items():
        for line, before, after in grown(snapshots(inside / f"{pid}.lines")):
            out.append(f"{name}: {before:,} to {after:,} blocks of Python ({after - before:+,}) from {line}")
    return out
