"""What commands print. Names, log lines and library messages are untrusted: they may hold control sequences."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import TextIO

from schemas.visible import visible_stream, visible_text

LONGEST = 4_000
"""Characters of one line; the rest is cut off."""


def say(text: str, file: TextIO | None = None) -> None:
    """Print one line, at once. A line break inside `text` is shown as a sign, so no name can forge a second line."""
    print(one_visible_line(text), file=file or sys.stdout, flush=True)


def warn(text: str) -> None:
    """Print one line to stderr."""
    say(text, sys.stderr)


def write_line(line: str) -> None:
    """Print one line of ASCII whole, whatever its length, once the buffer of stdout is full or flushed."""
    print(line)


def flush_lines() -> None:
    """Print what `write_line` still has in the buffer."""
    sys.stdout.flush()


@contextmanager
def lines_for_a_pipe() -> Iterator[None]:
    """End the block in silence if the reader of stdout, such as `head`, is gone; else flush at the end of the block."""
    try:
        yield
        flush_lines()
    except BrokenPipeError:
        # What is still buffered has to go somewhere when the process ends.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def one_visible_line(text: str, longest: int = LONGEST) -> str:
    """Return the text without hidden characters, at most `longest` characters of it."""
    shown = visible_text(text[:longest])
    return shown if len(shown) <= longest and len(text) <= longest else f"{shown[: longest - 1]}…"


def guard_streams() -> ExitStack:
    """Let everything that this process prints pass `visible_stream`, libraries and tracebacks included.

    Returns:
        A context that puts the streams back at its end.
    """
    guarded = ExitStack()
    guarded.enter_context(redirect_stdout(visible_stream(sys.stdout)))
    guarded.enter_context(redirect_stderr(visible_stream(sys.stderr)))
    return guarded
