"""Every process of a command returns free memory, and writes where it was when native code ends it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FRAGMENTS = """
import ctypes, sys
if sys.argv[1] == "settled":
    from dashboards.lake.allocators import settle_allocators
    settle_allocators()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]


def made(size):
    block = libc.malloc(size)
    ctypes.memset(block, 1, size)
    return block


kept = []
libc.free(made(30_000_000))
for _ in range(20):
    large = made(8_000_000)
    kept.append(made(100_000))
    libc.free(large)
    kept += [made(2_000_000 + 10_000 * len(kept))]
    libc.free(kept.pop())
print(open("/proc/self/smaps_rollup").read().split("Pss_Anon:")[1].split()[0])
"""
ABORTS = """
import os, subprocess, sys
from jobs.config.terminal import trace_crashes


def in_native_code():
    os.abort()


trace_crashes()
subprocess.run([sys.executable, "-c", "import os; os.abort()"])
in_native_code()
"""


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    known = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "PYTHONFAULT"))}
    command = [sys.executable, "-P", "-c", program, *arguments]
    return subprocess.run(command, env=known | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)


def test_large_blocks_are_returned_when_they_are_freed() -> None:
    usual, settled = (int(run(FRAGMENTS, how).stdout) for how in ("usual", "settled"))
    assert usual - settled > 5_000, "kB"


def test_an_abort_in_native_code_names_the_python_code_that_called_it_in_children_too() -> None:
    ended = run(ABORTS)
    assert ended.returncode < 0
    assert 2 == ended.stderr.count("Fatal Python error: Aborted")
    assert "in in_native_code" in ended.stderr
