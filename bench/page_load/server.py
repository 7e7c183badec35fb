"""The pages in a process of their own, and its memory and processor time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit


@contextmanager
def serving(warehouse: Path) -> Iterator[tuple[str, int]]:
    """Run the pages in a separate process; yield host and port, and the process id."""
    command = [sys.executable, "-m", "dashboards.app", "--warehouse", str(warehouse), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            yield urlsplit(line.split()[-1]).netloc, process.pid
        finally:
            process.terminate()


def memory_mb(pid: int) -> tuple[float, float]:
    """Return the resident memory in MB now, and its maximum so far."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    lines = dict(line.split(":", 1) for line in text.splitlines())
    now, most = (int(lines[name].split()[0]) / 1000 for name in ("VmRSS", "VmHWM"))
    return now, most


def processor_ms(pid: int) -> float:
    """Return the processor time in ms of the process and its threads so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return 1000 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
