"""The pages over a warehouse as a process of their own, and how chromium is started to read them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BROWSER = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


@contextmanager
def serving(warehouse: Path | str) -> Iterator[str]:
    """The pages over a warehouse, in a process of their own; yields their address.

    Raises:
        AssertionError: they did not start, or they ended with an error or wrote one; the message has what they wrote.
    """
    command = [
        sys.executable,
        "-W",
        "error::UserWarning",
        "-m",
        "dashboards.app",
        "--warehouse",
        str(warehouse),
        "--port",
        "0",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            assert process.stderr
            line = process.stdout.readline()
            assert line.startswith("Pages: http://127.0.0.1:"), process.stderr.read()
            yield line.split()[1].rstrip("/")
        finally:
            process.terminate()
            errors = process.communicate(timeout=120)[1]
    assert (process.returncode, errors) == (0, ""), f"The pages ended with {process.returncode} and wrote: {errors!r}"
