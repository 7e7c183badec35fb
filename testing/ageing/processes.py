"""Memory, open files and threads of a process and its descendants, by the role of each."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from testing.ageing.inside.sitecustomize import FOLDER

INSIDE = Path(__file__).parent / "inside"
PYTHON = {"jobs.cli": 1, "testing.ageing.cli": 1, "jobs.processes.worker_process": 2}
"""Modules that start others, with the position of the argument that says which."""

Figures = dict[str, float]


def environment(folder: Path, known: Mapping[str, str]) -> dict[str, str]:
    """Return `known` with what makes every Python process write its memory to the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = ":".join([str(INSIDE), *filter(None, [known.get("PYTHONPATH")])])
    return {**known, "PYTHONPATH": path, FOLDER: str(folder)}


def descendants(pid: int) -> Iterator[tuple[int, int]]:
    """Yield the process and all its descendants, each with its parent."""
    parents = {pid: 0}
    waiting = [pid]
    while waiting:
        each = waiting.pop()
        yield each, parents[each]
        for child in _children(each):
            parents[child] = each
            waiting.append(child)


def _children(pid: int) -> Iterator[int]:
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            # A thread may end meanwhile; those after it have children too.
            with suppress(OSError):
                yield from map(int, (task / "children").read_text(encoding="ascii").split())


def role(arguments: list[str], parent: list[str]) -> str:
    """Return the role of a process with these arguments, whose parent has those."""
    if Path(arguments[0]).name == "java":
        return "java"
    if "-I" in arguments:
        return "launcher" if any(each.endswith("python_launcher.py") for each in arguments) else "supervisor"
    if "-m" not in arguments:
        return Path(arguments[0]).name
    module, *rest = arguments[arguments.index("-m") + 1 :]
    if module == "jobs.spark.worker_daemon":
        return "spark worker" if arguments == parent else "spark daemon"
    position = PYTHON.get(module)
    return rest[position - 1] if position else module


def sample(pid: int, inside: Path) -> dict[str, Figures]:
    """Return the figures by role, summed over the processes of a role. MB, except for counts."""
    found: dict[str, Figures] = defaultdict(lambda: defaultdict(float))
    lines: dict[int, list[str]] = {}
    for each, parent in descendants(pid):
        with suppress(OSError, IndexError):
            lines[each] = Path(f"/proc/{each}/cmdline").read_text(encoding="utf-8").strip("\0").split("\0")
            name = role(lines[each], lines.get(parent, []))
            for figure, value in (_outside(each) | _inside(inside, each)).items():
                found[name][figure] += value
            found[name]["processes"] += 1
    return {name: dict(figures) for name, figures in found.items()}


def _outside(pid: int) -> Figures:
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    sizes = {name: int(size) / 1000 for name, size in re.findall(r"^(Pss\w*): +(\d+) kB", rollup, re.MULTILINE)}
    return {
        "pss": sizes["Pss"],
        "pss anon": sizes["Pss_Anon"],
        "pss file": sizes["Pss_File"],
        "open files": sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()),
        "threads": sum(1 for _ in Path(f"/proc/{pid}/task").iterdir()),
    }


def _inside(folder: Path, pid: int) -> Figures:
    try:
        found: Figures = json.loads((folder / f"{pid}.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return found
