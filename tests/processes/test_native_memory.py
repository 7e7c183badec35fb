"""Every process of a command returns free memory, and writes where it was when native code ends it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FREED = """
import ctypes, json, os, subprocess, sys
from dashboards.lake.allocators import SETTINGS, settle_allocators, trim

settle_allocators()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]


def made(size):
    block = libc.malloc(size)
    ctypes.memset(block, 1, size)
    return block


def used():
    return int(open("/proc/self/smaps_rollup").read().split("Pss_Anon:")[1].split()[0])


blocks = [made(100_000) for _ in range(400)]
for block in blocks[:-1]:
    libc.free(block)
before = used()
trim()
child = "import os, json; print(json.dumps(dict(os.environ)))"
known = json.loads(subprocess.run([sys.executable, "-c", child], capture_output=True, check=True).stdout)
print(json.dumps([before - used(), [known.get(name) == value for name, value in SETTINGS.items()]]))
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
    known = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MALLOC_", "PYTHONFAULT", "_RJEM", "ARROW"))
    }
    command = [sys.executable, "-P", "-c", program, *arguments]
    return subprocess.run(command, env=known | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)


def test_freed_memory_below_a_block_in_use_is_returned_and_children_have_the_same_settings() -> None:
    ended = run(FREED)
    returned, have = json.loads(ended.stdout)
    assert returned > 20_000, "kB"
    assert all(have)


def test_an_abort_in_native_code_names_the_python_code_that_called_it_in_children_too() -> None:
    ended = run(ABORTS)
    assert ended.returncode < 0
    assert 2 == ended.stderr.count("Fatal Python error: Aborted")
    assert "in in_native_code" in ended.stderr
