"""Limits the processor time of a process and of all that it starts, by a control group of Linux, as root."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup")
PERIOD_US = 100_000
LONGEST_S = 30.0


@contextmanager
def limited(pid: int, cores: float) -> Iterator[None]:
    """Give a process, and those that it starts from now on, together at most the processor time of so many cores.

    The process must end before the block does, because a group with processes cannot be removed.

    Raises:
        OSError: this user may not create control groups.
    """
    quota, is_second = round(cores * PERIOD_US), (GROUPS / "cgroup.controllers").exists()
    group = (GROUPS if is_second else GROUPS / "cpu") / f"regroup-{os.getpid()}-{pid}"
    group.mkdir()
    try:
        if is_second:
            (group / "cpu.max").write_text(f"{quota} {PERIOD_US}", encoding="utf-8")
        else:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US), encoding="utf-8")
            (group / "cpu.cfs_quota_us").write_text(str(quota), encoding="utf-8")
        (group / "cgroup.procs").write_text(str(pid), encoding="utf-8")
        yield
    finally:
        until = time.monotonic() + LONGEST_S
        while (group / "cgroup.procs").read_text(encoding="utf-8") and time.monotonic() < until:
            time.sleep(0.1)
        group.rmdir()
