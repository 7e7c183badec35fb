"""A reader that opens pages of growing tables, one after the other, as long as a block lasts."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from urllib.parse import quote

import pyarrow.parquet as pq

from bench.page_load.client import client

ADDRESS = re.compile(r"Pages: http://([^/\s]+)/")
PAUSE_S = 2.0


def addresses(warehouse: Path) -> list[str]:
    """Return the addresses of the pages, and of some groups."""
    found = ["/", "/?range=24h", "/storms", "/advice", "/reassignments", "/health"]
    for file in sorted((warehouse / "groups").glob("*.parquet"))[:1]:
        groups = pq.read_table(file, columns=["cluster", "group_id"]).slice(0, 20).to_pylist()
        found += [f"/group?cluster={quote(g['cluster'])}&group={quote(g['group_id'], safe='')}" for g in groups]
    return found


@contextmanager
def reading(log: Path, warehouse: Path, pause_s: float = PAUSE_S) -> Iterator[None]:
    """Open one page after the other, with pauses, at the address that the log names. A failure is left for the next."""
    stopped = threading.Event()

    def go_on() -> None:
        while not stopped.wait(pause_s):
            with suppress(OSError, HTTPException, AssertionError):
                host = ADDRESS.findall(log.read_text(encoding="utf-8", errors="replace"))[-1:]
                reader = client(host[0]) if host else None
                began = time.monotonic()
                while reader is not None and time.monotonic() - began < 60:
                    for address in addresses(warehouse):
                        reader.open(address)
                        if stopped.wait(pause_s):
                            return

    thread = threading.Thread(target=go_on, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join(120)
