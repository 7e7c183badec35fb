"""Allocators of a process that runs for months: GNU's malloc, and the jemallocs that deltalake and DuckDB bring along.

All keep memory that was freed, in case it is needed again. A batch allocates tens of MB in many threads for a moment,
and each thread's arena keeps its share. The size above which GNU's malloc maps a block separately is left as it is:
fixed at 1 MB, it returned most, but decoding took 20-30 % more processor time, because each buffer was mapped anew.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from contextlib import suppress

M_ARENA_MAX = -8
"""Parameter of `mallopt`, from <malloc.h>."""

TRIMMED_EVERY_S = 30.0

SETTINGS = {
    # Arrow's default pool keeps memory that other threads freed: 270 MB after an hour of `up`, with 7 MB in use.
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    # By default, a process on two cores gets sixteen arenas, and each keeps freed memory.
    "MALLOC_ARENA_MAX": "2",
    # By default deltalake has eight arenas, and returns their free pages only while they are used.
    "_RJEM_MALLOC_CONF": "narenas:1,dirty_decay_ms:1000,muzzy_decay_ms:0",
}
"""Environment variables that allocators read when they are loaded. A variable that is already set keeps its value."""

OF_DUCKDB = {"allocator_background_threads": "true"}
"""Configuration of DuckDB's instances. Without a thread for it, DuckDB's jemalloc returns free pages only while queries
run: 50 to 110 MB stayed with a process after a large query. The thread returns them within ten seconds.
"""


def settle_allocators() -> None:
    """Set the allocators of this process and of its children. Call before other threads and libraries are loaded."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    # GNU's malloc read the environment when this process started. Other C libraries have no `mallopt`.
    with suppress(AttributeError, ValueError):
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, int(os.environ["MALLOC_ARENA_MAX"]))


def trim() -> None:
    """Return free memory to the operating system. Allocators keep it: after hours, more than all memory in use."""
    if (arrow := sys.modules.get("pyarrow")) is not None and hasattr(arrow, "default_memory_pool"):
        arrow.default_memory_pool().release_unused()
    # Only GNU's C library has this function.
    with suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def keep_trimmed() -> None:
    """Start a thread that returns free memory twice a minute, as long as the process runs."""
    threading.Thread(target=_trim_again, name="trim", daemon=True).start()


def _trim_again() -> None:
    while True:
        time.sleep(TRIMMED_EVERY_S)
        trim()
