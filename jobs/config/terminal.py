"""The output of commands. Names, log lines and library messages are untrusted and may contain control sequences."""

from __future__ import annotations

import faulthandler
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import TextIO

from schemas.visible import visible_stream, visible_text

LONGEST = 4_000
"""Highest number of characters of one line; the rest is cut off."""


def say(text: str, file: TextIO | None = None) -> None:
    """Print one line and flush. A line break in `text` becomes a visible marker, so no name can forge a second line."""
    print(one_visible_line(text), file=file or sys.stdout, flush=True)


def warn(text: str) -> None:
    """Print one line to stderr."""
    say(text, sys.stderr)


def trace_crashes() -> None:
    """Let this process and its children write the Python stack of each thread to stderr if native code ends them."""
    os.environ.setdefault("PYTHONFAULTHANDLER", "1")
    # Without a file, as in a notebook, there is nothing to write to.
    with suppress(AttributeError, OSError, ValueError, RuntimeError):
        faulthandler.enable(sys.stderr)


def write_line(line: str) -> None:
    """Print one line of ASCII, of any length. It appears when stdout's buffer is full or flushed."""
    print(line)


def flush_lines() -> None:
    """Print the buffered lines of `write_line`."""
    sys.stdout.flush()


@contextmanager
def lines_for_a_pipe() -> Iterator[None]:
    """Flush at the end of the block. If the reader of stdout, such as `head`, has ended, end the block silently."""
    try:
        yield
        flush_lines()
    except BrokenPipeError:
        # The remaining buffer is flushed when the process ends, so it needs a target that accepts it.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def one_visible_line(text: str, longest: int = LONGEST) -> str:
    """Return at most `longest` characters of the text, without hidden characters."""
    shown = visible_text(text[:longest])
    return shown if len(shown) <= longest and len(text) <= longest else f"{shown[: longest - 1]}…"


def guard_streams() -> ExitStack:
    """Send all output of this process through `visible_stream`, including that of libraries and tracebacks.

    Returns:
        A context that restores the streams at its end.
    """
    guarded = ExitStack()
    guarded.enter_context(redirect_stdout(visible_stream(sys.stdout)))
    guarded.enter_context(redirect_stderr(visible_stream(sys.stderr)))
    return guarded
