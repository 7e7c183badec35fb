"""`regroup completion SHELL`: print a script with which the shell completes commands, options and files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import shtab

from jobs.config.settings import Settings
from jobs.config.terminal import lines_for_a_pipe


def run(settings: Settings, args: argparse.Namespace) -> int:  # noqa: ARG001 - the signature of commands
    """Print the script; return 0."""
    with lines_for_a_pipe():
        sys.stdout.write(script(args.top, args.shell))
    return 0


def script(top: argparse.ArgumentParser, shell: str) -> str:
    """Return the script. It is static: a completion starts no Python."""
    for each in _parsers(top):
        for action in each._actions:  # noqa: SLF001 - argparse has no public list of them
            if action.type is Path:
                action.complete = shtab.DIRECTORY if action.metavar == "DIR" else shtab.FILE  # type: ignore[attr-defined]
    return f"{shtab.complete(top, shell=shell)}\n"


def _parsers(top: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield top
    for action in top._actions:  # noqa: SLF001
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for each in action.choices.values():
                yield from _parsers(each)
