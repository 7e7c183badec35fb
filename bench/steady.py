"""Hours of steady load on `./regroup up`: freshness of silver, gold, memory, open files and files of each table.

`./regroup bench steady [--minutes 120] [--records-per-s 2000] [--groups 1000] [--maintain-seconds 300]
[--rounds-per-generation 20] [--driver-memory 2g] [--history-minutes 0] [--past-days 0] [--past-groups 10000]
[--loop-per-s 0] [--log FILE] [--out FOLDER]`. Starts a broker whose `__consumer_offsets` gets records at that rate,
each with its write time. Every group rebalances once in 20 (or another number of) rounds of commits, which keeps all
groups in one storm; with 200 rounds, each group rests for a quarter of an hour. A row of `generations` is visible since
the commit of the first version that has it. Memory is the proportional set size (Pss) of `up` and its child processes.
`stolen` is the share of the cores' time that the host gave to other machines. With a history, records of that many
minutes are written first, and measuring begins when they are in silver, so that growth with history shows within
minutes. With a loop, a Connect group that never rests makes that many generations a second as well; freshness is that
of the others. With past days, silver and gold have the history of that many days of other groups when `up` starts
(`bench.fleet`; bronze is empty). The output of `up` goes to the log. With a folder, the curves of each process are
written there once a minute, with what its allocators hold, as `bench aged-day` does.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from deltalake import DeltaTable

from bench.aged_day import batches as batches_in
from bench.aged_day import files_in, growths
from bench.aged_day import table as by_process
from bench.fleet.history import write_history
from bench.load import LOOP_GROUP, OVERRIDES, PARTITIONS_PER_GROUP, Load, create_offsets_topic, produce, produce_loop
from dashboards.app import page
from dashboards.lake.lake import LocalLake, milliseconds
from dashboards.queries.store import Store
from jobs.lab.broker import Broker
from jobs.tables.create_tables import create_tables
from jobs.tables.disk.table_log import added_files, commit_of, newest_version
from jobs.tables.engine import connect, show
from jobs.tables.paths import table_path
from schemas.bronze import BRONZE
from schemas.folded_rows import count_of
from schemas.gold import ADVICE, ALERTS, GOLD, GROUP_HEALTH
from schemas.silver import GENERATIONS, SILVER
from schemas.tables import Table
from schemas.written import signed
from testing.ageing.curves import Sample, write
from testing.ageing.processes import descendants, environment, sample

LATE = timedelta(minutes=15)
CAUGHT_UP = timedelta(seconds=20)
HEAD = ("minute", "visible", "median s", "p95 s", "longest", "MB", "JVM MB", "files", "table files", "logs", "stolen")
LINE = "{:>6} {:>8} {:>10} {:>9} {:>9} {:>9} {:>8} {:>7} {:>12} {:>9} {:>7}"


def due(load: Load, begin: timedelta, end: timedelta) -> int:
    """Return the number of generations that begin between `begin` and `end` after the load's first record."""
    per_s = load.records_per_s / PARTITIONS_PER_GROUP
    rounds = range(int(begin.total_seconds() * per_s), int(end.total_seconds() * per_s))
    return sum(load.announced(*divmod(at, load.groups)) is not None for at in rounds)


@dataclass
class Freshness:
    """The time from the record of each generation until it could be read."""

    table: Path
    started: datetime
    waits: list[float] = field(default_factory=list)
    _seen: set[tuple[str, int]] = field(default_factory=set)
    _version: int = -1

    def read(self) -> None:
        """Add the rows of new versions, each with the time of the commit that first has it."""
        log = self.table / "_delta_log"
        newest = newest_version(log)
        for version in range(self._version + 1, newest + 1):
            # Old commits are deleted, and files that later commits replaced.
            with suppress(FileNotFoundError):
                commit = commit_of(log, version)
                committed = datetime.fromtimestamp(commit.stat().st_mtime, UTC)
                for name in added_files(commit):
                    self._add(self.table / name, committed)
        self._version = newest

    def _add(self, file: Path, committed: datetime) -> None:
        columns, since = ["group_id", "generation_id", "joined_at"], max(self.started, committed - LATE)
        wanted = [("joined_at", ">=", since), ("group_id", "!=", LOOP_GROUP)]
        rows = pq.read_table(file, columns=columns, filters=wanted)
        for group, generation, joined_at in zip(*(rows[name].to_pylist() for name in columns), strict=True):
            if (group, generation) not in self._seen:
                self._seen.add((group, generation))
                self.waits.append((committed - joined_at).total_seconds())

    @property
    def visible(self) -> int:
        return len(self._seen)


def used(pid: int) -> tuple[float, float, int]:
    """Return the MB of all processes, the MB of the JVM, and the open files of all processes."""
    total = jvm = 0.0
    files = 0
    for each, _ in descendants(pid):
        with suppress(OSError):
            rollup = Path(f"/proc/{each}/smaps_rollup").read_text(encoding="ascii")
            pss = int(rollup.split("Pss:")[1].split()[0]) / 1000
            total += pss
            jvm += pss if Path(f"/proc/{each}/comm").read_text(encoding="ascii").strip() == "java" else 0
            files += sum(1 for _ in Path(f"/proc/{each}/fd").iterdir())
    return total, jvm, files


def ticks() -> tuple[int, int]:
    """Return the ticks of all cores since the boot: those that the host gave to other machines, and all."""
    fields = [int(each) for each in Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]]
    return fields[7], sum(fields)


def files_of(warehouse: Path) -> tuple[str, int, int]:
    """Return the table with the most data files in its newest version, their number, and the number of log files."""
    live: Counter[str] = Counter()
    logs = 0
    for table in (*BRONZE, *SILVER):
        path = table_path(warehouse, table)
        if DeltaTable.is_deltatable(str(path)):
            live[table.name] = len(DeltaTable(path).file_uris())
            logs += sum(1 for _ in (Path(path) / "_delta_log").iterdir())
    name, most = live.most_common(1)[0] if live else ("-", 0)
    return name, most, logs


def groups_in(warehouse: Path, table: Table) -> int:
    """Return the number of groups with rows in the table."""
    path = table_path(warehouse, table)
    if not DeltaTable.is_deltatable(path):
        return 0
    files = DeltaTable(path).file_uris()
    return len({group for file in files for group in pq.read_table(file, columns=["group_id"])["group_id"].to_pylist()})


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else float("nan")


def between_batches(log_path: str, minutes: int) -> list[float]:
    """Return the seconds from each batch of the second half to the next, which include waiting for the trigger."""
    at = [float(found) for found in re.findall(r"([\d.]+) s  Batch", log_path)]
    late = [each for each in at if each > max(at) - minutes * 30]
    return [after - before for before, after in pairwise(late)]


def catch_up(table: Path, up: subprocess.Popen[bytes], first: datetime) -> float:
    """Return the seconds until new records reach the table within `CAUGHT_UP`."""
    began = time.monotonic()
    freshness = Freshness(table=table, started=first)
    while min(freshness.waits, default=LATE.total_seconds()) > CAUGHT_UP.total_seconds() and up.poll() is None:
        freshness.waits.clear()
        freshness.read()
        time.sleep(0.5)
    return time.monotonic() - began


def watch(
    pid: int, warehouse: Path, minutes: int, started: datetime, each_minute: Callable[[], None]
) -> tuple[list[float], list[float], int]:
    """Print a line and call `each_minute` a minute; return all waits after the warm-up, memory by minute, and the
    number of visible generations.
    """
    freshness = Freshness(table=Path(table_path(warehouse, GENERATIONS)), started=started)
    print(LINE.format(*HEAD))
    waits: list[float] = []
    memory: list[float] = []
    before = ticks()
    for minute in range(1, minutes + 1):
        until = started + timedelta(minutes=minute)
        while datetime.now(UTC) < until:
            freshness.read()
            time.sleep(0.5)
        new, freshness.waits = freshness.waits, []
        total, jvm, files = used(pid)
        name, most, logs = files_of(warehouse)
        middle, p95 = (f"{percentile(new, share):.1f}" for share in (0.5, 0.95))
        longest = f"{max(new, default=float('nan')):.1f}"
        now = ticks()
        stolen, every = (after - then for after, then in zip(now, before, strict=True))
        before = now
        cells = (
            minute,
            len(new),
            middle,
            p95,
            longest,
            f"{total:,.0f}",
            f"{jvm:,.0f}",
            files,
            f"{name[:7]} {most}",
            logs,
            f"{stolen / every:.0%}",
        )
        print(LINE.format(*cells), flush=True)
        memory.append(total)
        each_minute()
        if minute > min(5, minutes // 2):
            waits += new
    return waits, memory, freshness.visible


def write_past(warehouse: Path, groups: int, days: int) -> None:
    """Write the history of other groups up to now."""
    create_tables(None, warehouse, (*BRONZE, *SILVER, *GOLD))
    rows = write_history(warehouse, groups=groups, days=days, end=round(time.time() * 1000))
    print(f"{sum(rows.values()):,} rows of {groups:,} groups and {days} days before the start", flush=True)


def producing(stack: ExitStack, produce: Callable[..., None], given: tuple[Any, ...]) -> None:
    """Call `produce` in a process of its own that ends with the stack."""
    producer = multiprocessing.get_context("spawn").Process(target=produce, args=given)
    producer.start()
    stack.callback(producer.join)
    stack.callback(producer.terminate)


def report_loop(warehouse: Path, looped: datetime) -> None:
    """Print what is stored of the loop, how soon it raised alerts, and how long its page takes."""
    rows = loop_rows(warehouse, GENERATIONS, "group_id")
    print(f"the loop: {count_of(rows):,} generations in {len(rows):,} rows")
    for alert in sorted(loop_rows(warehouse, ALERTS, "subject"), key=lambda row: row["raised_at"]):
        after = alert["raised_at"] / 1000 - looped.timestamp()
        print(f"alert {alert['alert_name']} {after:.1f} s after the loop began: {alert['summary']}")
    store, asked = Store(LocalLake(warehouse)), f"?cluster=kafka&group={LOOP_GROUP}&from=now-1h"
    took = []
    for _ in range(11):
        began = time.monotonic()
        page(store, "/group", asked, None, round(time.time() * 1000))
        took.append(1000 * (time.monotonic() - began))
    print(f"its page: first {took[0]:,.0f} ms, then {percentile(took[1:], 0.5):,.0f} ms (median), made in this process")


def report_memory(memory: list[float]) -> None:
    """Print how much memory all processes had by minute, and by how much it grew."""
    half = memory[len(memory) // 2 :]
    if len(half) > 2:
        slope = statistics.linear_regression(range(len(half)), half).slope * 60
        most = f"at most {max(memory):,.0f} MB"
        print(f"memory {half[-1]:,.0f} MB at the end, {most}; second half {signed(slope)} MB an hour")


def loop_rows(warehouse: Path, table: Table, column: str) -> list[dict[str, Any]]:
    """Return the rows of a table whose value of `column` is the group of the loop, with timestamps in ms."""
    if not DeltaTable.is_deltatable(str(table_path(warehouse, table))):
        return []
    with connect() as engine:
        show(engine, "stored", warehouse, table)
        # Not Arrow's filter, which knows no equality for the strings that a merge writes.
        found = engine.sql(f"SELECT * FROM stored WHERE {column} = $name", params={"name": LOOP_GROUP}).to_arrow_table()
        rows: list[dict[str, Any]] = milliseconds(found).to_pylist()
    return rows


@dataclass
class Curves:
    """What each process of `up` holds, by minute, written to `out`; nothing if that is None."""

    out: Path | None
    folder: Path
    began: float = field(default_factory=time.monotonic)
    samples: list[Sample] = field(default_factory=list)

    def environment(self) -> dict[str, str]:
        """Return the environment with which processes of `up` write their memory and their temporary files here."""
        if self.out is None:
            return dict(os.environ)
        self.out.mkdir(parents=True, exist_ok=True)
        self._temporary.mkdir()
        return environment(self._inside, {**os.environ, "TMPDIR": str(self._temporary)})

    def add(self, pid: int, warehouse: Path, log: Path) -> None:
        """Add what the processes hold now."""
        if self.out is not None:
            seconds, files = time.monotonic() - self.began, files_in(warehouse, self._temporary)
            self.samples.append(Sample(seconds, len(batches_in(log)), sample(pid, self._inside), files))
            write(self.samples, self.out / "curves")

    def report(self) -> None:
        """Print the last sample, and by how much each process grows."""
        if self.samples:
            for line in (*by_process(self.samples), *growths(self.samples), f"curves: {self.out}"):
                print(line)

    @property
    def _inside(self) -> Path:
        return self.folder / "inside"

    @property
    def _temporary(self) -> Path:
        return self.folder / "temporary"


def options() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=int, default=120)
    parser.add_argument("--records-per-s", type=int, default=2_000)
    parser.add_argument("--groups", type=int, default=1_000)
    parser.add_argument("--maintain-seconds", type=float, default=300)
    parser.add_argument("--rounds-per-generation", type=int, default=20)
    parser.add_argument("--driver-memory", default="2g")
    parser.add_argument("--history-minutes", type=int, default=0)
    parser.add_argument("--past-days", type=int, default=0)
    parser.add_argument("--past-groups", type=int, default=10_000)
    parser.add_argument("--loop-per-s", type=int, default=0)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def main() -> None:
    arguments = options()
    rate, minutes, history = arguments.records_per_s, arguments.minutes, timedelta(minutes=arguments.history_minutes)
    # More than the measured minutes, because records are also written during the catch-up with the history.
    written = rate * round(60 * minutes + 1.5 * history.total_seconds())
    load = Load(
        records=written,
        groups=arguments.groups,
        records_per_s=rate,
        rounds_per_generation=arguments.rounds_per_generation,
    )
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        servers = stack.enter_context(Broker(folder / "broker", overrides=OVERRIDES)).bootstrap_servers
        create_offsets_topic(servers, load.partitions)
        warehouse = folder / "warehouse"
        config = folder / "regroup.toml"
        config.write_text(
            f'driver_memory = "{arguments.driver_memory}"\nmaintain_seconds = {arguments.maintain_seconds}\n'
            f'[clusters.kafka]\nbootstrap_servers = "{servers}"\n'
        )
        if arguments.past_days:
            write_past(warehouse, arguments.past_groups, arguments.past_days)
        command = [sys.executable, "-m", "jobs.cli", "up", "--config", str(config), "--warehouse", str(warehouse)]
        log_path, curves = arguments.log or folder / "up.log", Curves(arguments.out, folder)
        with log_path.open("wb") as log:
            up = subprocess.Popen([*command, "--port", "0"], stdout=log, stderr=log, env=curves.environment())
        stack.callback(up.wait)
        stack.callback(up.send_signal, signal.SIGINT)
        generations = Path(table_path(warehouse, GENERATIONS))
        while not DeltaTable.is_deltatable(str(generations)) and up.poll() is None:
            time.sleep(0.5)
        first = datetime.now(UTC) - history
        producing(stack, produce, (servers, load, round(first.timestamp() * 1000), range(load.groups)))
        looped = datetime.now(UTC)
        if arguments.loop_per_s:
            given = (servers, load.partitions, arguments.loop_per_s, round(looped.timestamp() * 1000))
            producing(stack, produce_loop, given)
        if history:
            print(f"{catch_up(generations, up, first):,.0f} s to have {history} in silver", flush=True)
        started = datetime.now(UTC)
        add = partial(curves.add, up.pid, warehouse, log_path)
        waits, memory, visible = watch(up.pid, warehouse, minutes, started, add)
        ended = up.poll()
        batches = between_batches(log_path.read_text(encoding="utf-8"), minutes)
        analysed = {each.name: groups_in(warehouse, each) for each in (GROUP_HEALTH, ADVICE)}
        if arguments.loop_per_s:
            report_loop(warehouse, looped)
    fate = "ran to the end" if ended is None else f"ended with {ended}"
    middle, p95 = (percentile(waits, share) for share in (0.5, 0.95))
    begin = started - first
    print(
        f"{visible:,} of {due(load, begin, begin + timedelta(minutes=minutes - 1)):,} generations visible; `up` {fate}"
    )
    print(f"record to silver after the warm-up: median {middle:.1f} s, p95 {p95:.1f} s")
    print(f"groups analysed: {', '.join(f'{groups:,} in {name}' for name, groups in analysed.items())}")
    print(f"a batch every {percentile(batches, 0.5):.1f} s in the second half")
    curves.report()
    report_memory(memory)


if __name__ == "__main__":
    main()
