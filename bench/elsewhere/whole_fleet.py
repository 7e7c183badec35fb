"""Build, analysis and storms of a large fleet, with tables in a folder and with tables that Spark keeps elsewhere.

Each command runs as it does in a schedule, in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from bench.elsewhere.fleet_bronze import STARTS, write_bronze
from jobs.config.settings import Settings
from jobs.gold.storms import update_storms
from jobs.spark.spark import session_of
from jobs.tables.append import append_frame
from jobs.tables.create_tables import create_tables, needs_spark
from jobs.tables.location import bind
from schemas.bronze import BRONZE
from schemas.gold import STORMS

PLACES = ("folder", "elsewhere")
TICKS = os.sysconf("SC_CLK_TCK")
POLL_S = 0.2
"""Seconds between two measurements of the processes. Linux keeps the highest memory use of each."""


def measure(groups: int, churning: int, memory: str, places: Sequence[str] = PLACES, starts: int = STARTS) -> None:
    """Print the seconds, the processor seconds and the highest memory use of each step for each place."""
    with tempfile.TemporaryDirectory(prefix="regroup-fleet-") as name:
        folder, began = Path(name), time.monotonic()
        size = sum(file.stat().st_size for file in write_bronze(folder, groups, churning, starts).values()) / 1e6
        took = time.monotonic() - began
        print(f"{groups:,} groups of {starts} starts, {churning:,} that churn: {size:,.0f} MB, {took:.0f} s")
        print(f"{'':22} {'seconds':>8} {'processor s':>12} {'driver MB':>10} {'its JVM':>8} {'others':>8}", flush=True)
        for place in places:
            warehouse = folder / place / "states"
            if place == "elsewhere":
                bind(warehouse, str(folder / place / "tables"))
            this = [sys.executable, "-P", "-m", "bench.elsewhere.whole_fleet"]
            command = [sys.executable, "-P", "-m", "jobs.cli"]
            options = ["--once", "--warehouse", str(warehouse)]
            _run(f"{place}: bronze", [*this, "fill", str(warehouse), memory], memory)
            _run(f"{place}: build", [*command, "build", *options], memory)
            _run(f"{place}: analyze", [*command, "analyze", *options], memory)
            _run(f"{place}: storms", [*this, "storms", str(warehouse), memory], memory)


def _run(what: str, command: Sequence[str], memory: str) -> None:
    began = time.monotonic()
    process = subprocess.Popen(command, env=os.environ | {"REGROUP_DRIVER_MEMORY": memory}, stdout=subprocess.DEVNULL)
    highest: dict[str, float] = defaultdict(float)
    done = threading.Event()
    watch = threading.Thread(target=_watch, args=(process.pid, highest, done))
    watch.start()
    try:
        code = process.wait()
    finally:
        # As when the benchmark is ended by a signal.
        process.terminate()
        process.wait()
        done.set()
        watch.join()
    used = f"{time.monotonic() - began:8.0f} {highest['processor']:12.0f}"
    sizes = f"{highest['driver']:10,.0f} {highest['jvm']:8,.0f} {highest['others']:8,.0f}"
    print(f"{what:22} {used} {sizes}{'' if code == 0 else f'  failed with exit code {code}'}", flush=True)


def _watch(pid: int, highest: dict[str, float], done: threading.Event) -> None:
    """Note the highest memory use in MB of the process, of its JVM, and of its other processes together, and the
    processor seconds of all. What a process uses in its last moments is missing.
    """
    of_others: dict[int, float] = {}
    seconds: dict[int, float] = {}
    while not done.wait(POLL_S):
        for each, name in _family(pid).items():
            with suppress(OSError, KeyError):
                status = Path(f"/proc/{each}/status").read_text(encoding="utf-8")
                lines = dict(line.split(":", 1) for line in status.splitlines())
                most = int(lines["VmHWM"].split()[0]) / 1000
                times = Path(f"/proc/{each}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[11:13]
                seconds[each] = sum(map(int, times)) / TICKS
                if each == pid or name == "java":
                    role = "driver" if each == pid else "jvm"
                    highest[role] = max(most, highest[role])
                else:
                    of_others[each] = most
        highest["others"], highest["processor"] = sum(of_others.values()), sum(seconds.values())


def _family(pid: int) -> dict[int, str]:
    """Return the names of a process and of all that it started, by their ids."""
    found, rest = {pid: ""}, [pid]
    while rest:
        for tasks in Path(f"/proc/{rest.pop()}/task").glob("*/children"):
            with suppress(OSError):
                for child in map(int, tasks.read_text(encoding="utf-8").split()):
                    found[child] = Path(f"/proc/{child}/comm").read_text(encoding="utf-8").strip()
                    rest.append(child)
    return found


def fill(settings: Settings) -> None:
    """Write the bronze tables from the files two folders above the warehouse."""
    warehouse = settings.warehouse
    spark = session_of(settings, "bench")
    create_tables(spark, warehouse, BRONZE)
    for table in BRONZE:
        if (file := warehouse.parents[1] / f"{table.name}.parquet").exists():
            append_frame(spark.read.parquet(str(file)).select(*table.names), warehouse, table)


def storms(settings: Settings) -> None:
    """Search all silver for storms."""
    is_needed = needs_spark(settings.warehouse, (STORMS,))
    update_storms(session_of(settings, "bench") if is_needed else None, settings, again=True)


if __name__ == "__main__":
    step, name, size = sys.argv[1:]
    {"fill": fill, "storms": storms}[step](Settings(warehouse=Path(name), driver_memory=size))
