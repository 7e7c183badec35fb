"""`regroup bench`: run a benchmark of the folder bench/. A checkout contains that folder; the wheel does not."""

from __future__ import annotations

import argparse
import ast
import runpy
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jobs.config.errors import UserError
from jobs.config.settings import Settings
from jobs.config.terminal import say

FOLDER = Path(__file__).parent.parent / "bench"


def run(_: Settings, args: argparse.Namespace) -> int:
    """Run one benchmark with its own arguments. Without a name, list all benchmarks.

    Raises:
        UserError: no benchmark has this name, or this installation is not a checkout.
    """
    there = measurements(FOLDER)
    if not there:
        raise UserError(f"There is no folder {FOLDER}: run the benchmarks from a checkout of the repository.")
    if args.name is None:
        for name, text in there.items():
            say(f"{name:15} {text}")
        return 0
    name = args.name.replace("-", "_")
    if name not in there:
        raise UserError(f"There is no benchmark {args.name}: choose one of {', '.join(there)}.")
    sys.argv = [f"regroup bench {args.name}", *args.arguments]
    sys.path.insert(0, str(FOLDER.parent))
    try:
        with _ended_by_sigterm():
            runpy.run_module(f"bench.{name}", run_name="__main__")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Raise `SystemExit` on SIGTERM, so that a benchmark stops the processes that it started."""
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def measurements(folder: Path) -> dict[str, str]:
    """Return the name and the first docstring line of every module that has a `main`, without importing any."""
    found = {}
    for path in sorted(folder.glob("*.py")):
        module = ast.parse(path.read_text(encoding="utf-8"))
        if any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in module.body):
            found[path.stem] = (ast.get_docstring(module) or "").split("\n")[0]
    return found
