"""Writes the memory of this process as its allocators know it to `$REGROUP_AGEING/<pid>.json`, every five seconds.

Python imports a module of this name at its start. It must import nothing of the product, because it runs before the
product. A process that is forked from this one starts its own thread.

If Python traces allocations (`PYTHONTRACEMALLOC`), it also appends the blocks in use by line of Python to
`$REGROUP_AGEING/<pid>.lines`, every minute.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import sys
import threading
import time
import tracemalloc
from contextlib import suppress
from pathlib import Path
from typing import Any

FOLDER = "REGROUP_AGEING"
EVERY_S = 5.0
LINES_EVERY_S = 60.0
LEAST_BLOCKS = 50
"""Blocks of a line below which it is left out."""

FIELDS = (
    "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"
)  # fmt: skip


class _Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in FIELDS]


def found() -> dict[str, float]:
    """Return MB by allocator. A library that this process has not loaded is left out.

    `malloc free` is address space. Pages of it may have been returned to the operating system.
    """
    sizes = {"python blocks": float(sys.getallocatedblocks())}
    with suppress(AttributeError):
        mallinfo2 = ctypes.CDLL(None).mallinfo2
        mallinfo2.restype = _Mallinfo
        info = mallinfo2()
        sizes |= {"malloc used": (info.uordblks + info.hblkhd) / 1e6, "malloc free": info.fordblks / 1e6}
    if (arrow := sys.modules.get("pyarrow")) is not None and hasattr(arrow, "total_allocated_bytes"):
        sizes["arrow"] = arrow.total_allocated_bytes() / 1e6
    if (engines := _engines()) is not None:
        sizes["duckdb"] = sum(_of_duckdb(each) for each in engines) / 1e6
        sizes["duckdb instances"] = len(engines)
    return sizes


def _engines() -> list[Any] | None:
    """Return the DuckDB instances that jobs and lakes keep; None without any."""
    engines = []
    module = sys.modules.get("jobs.tables.engine")
    if module is not None and hasattr(module, "_instance") and module._instance.cache_info().currsize:  # noqa: SLF001
        engines.append(module._instance())  # noqa: SLF001
    lake = getattr(sys.modules.get("dashboards.lake.lake"), "LocalLake", None)
    if lake is not None:
        # Not `gc.get_objects`: it also returns tuples that another thread is still building, and the building then
        # fails.
        engines += [each._duckdb for each in gc.get_referrers(lake) if type(each) is lake]  # noqa: SLF001
    return engines or None


def _of_duckdb(engine: Any) -> int:
    with engine.cursor() as cursor:
        return int(cursor.execute("SELECT sum(memory_usage_bytes) FROM duckdb_memory()").fetchone()[0])


def blocks_by_line() -> dict[str, int]:
    """Return the blocks in use by the line that allocated them."""
    by_line = tracemalloc.take_snapshot().statistics("lineno")
    counts = {_place(each.traceback[0]): each.count for each in by_line}
    return {line: count for line, count in counts.items() if count >= LEAST_BLOCKS}


def _place(line: tracemalloc.Frame) -> str:
    return f"{'/'.join(line.filename.split('/')[-3:])}:{line.lineno}"


def _go_on(folder: Path) -> None:
    whole, lines_at = folder / f"{os.getpid()}.json", time.monotonic() + LINES_EVERY_S
    while True:
        with suppress(Exception):  # A module may be half imported, or the process about to end.
            part = whole.with_suffix(".part")
            part.write_text(json.dumps(found()), encoding="utf-8")
            part.replace(whole)
            if tracemalloc.is_tracing() and time.monotonic() >= lines_at:
                lines_at += LINES_EVERY_S
                with whole.with_suffix(".lines").open("a", encoding="utf-8") as file:
                    file.write(json.dumps(blocks_by_line()) + "\n")
        time.sleep(EVERY_S)


def start() -> None:
    """Start the thread, if the environment names a folder."""
    if (folder := os.environ.get(FOLDER)) is not None:
        threading.Thread(target=_go_on, args=[Path(folder)], name="ageing", daemon=True).start()


if FOLDER in os.environ:
    start()
    os.register_at_fork(after_in_child=start)
