"""A day's batches of `up` back to back: memory by process and allocator, open files, Delta logs, temporary files.

`./regroup bench aged-day [--batches 17280] [--minutes 60] [--records-per-s 500] [--groups 200]
[--rounds-per-generation 50] [--alone | --readers] [--trace] [--out FOLDER]`. A day has 17,280 batches at the usual
trigger of five seconds; here the trigger is zero, and the run ends after `--batches` or `--minutes`, whatever comes
first. Small files are merged every 30 seconds instead of 300, and logs are kept for ten
minutes instead of two hours, so that tables have about as many files as usual. It starts a broker with a constant load.
A group rebalances every 50 rounds of its commits and rests in between; with `--rounds-per-generation 2` none ever
rests. A reader opens pages all the time.

With `--alone`, `serve` and `notify` run as processes of their own next to `up`. With `--readers`, they run without `up`
and without a broker: a process writes commits like those of `up` (`testing.ageing.commits`), several a second.

Growth is the median slope of the last two thirds of the batches, which a single peak does not change. What allocators
hold is written by a thread in each Python process (`testing.ageing.inside`). The curves are written to FOLDER as JSON
and CSV. Except with `--readers`, an hour of batches has an hour of history; growth with the length of the history is
measured by `bench steady --history-minutes`.

`--trace` also tells which lines of Python allocated the blocks that grow. It makes every Python process slower and
larger, so use its figures of memory for nothing else.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
import signal
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

from bench.load import OVERRIDES, Load, create_offsets_topic, produce
from bench.page_load.reader import PAUSE_S, reading
from jobs.lab.broker import Broker
from jobs.tables.create_tables import create_tables
from jobs.tables.delta_io import checkpoint_path
from schemas.bronze import BRONZE
from schemas.silver import SILVER
from testing.ageing.curves import Sample, after_warm_up, growth, verdict, write
from testing.ageing.lines import TRACED, report
from testing.ageing.processes import Figures, environment, sample
from testing.ageing.programs import Programs

DAY = 17_280
BATCH = re.compile(r"([\d.]+) s  Batch (\d+) is in silver")
EVERY_S = 10.0
NO_BROKER = "127.0.0.1:9"
MAINTAIN_S = 30.0
READERS_PAUSE_S = 0.3
"""About one page for each batch, as next to `up`."""

SHOWN = ("pss anon", "pss file", "malloc used", "malloc free", "arrow", "duckdb", "open files", "threads")
HEAD = "{:22} {:>9} {:>9} {:>12} {:>12} {:>8} {:>8} {:>11} {:>8} {:>16}"


def batches(log: Path) -> list[float]:
    """Return the seconds after which each batch was in silver."""
    return [float(at) for at, _ in BATCH.findall(log.read_text(encoding="utf-8", errors="replace"))]


def files_in(warehouse: Path, temporary: Path) -> Figures:
    """Return the files of all tables, of their logs, and those outside the warehouse."""
    tables = [each.parent for each in warehouse.glob("*/_delta_log")]
    logs = sum(1 for table in tables for _ in (table / "_delta_log").iterdir())
    return {
        "data files": sum(1 for table in tables for _ in table.glob("*.parquet")),
        "delta log files": logs,
        "checkpoint files": sum(1 for each in (warehouse / "_checkpoints").rglob("*") if each.is_file()),
        "temporary files": sum(1 for each in temporary.rglob("*") if each.is_file()),
    }


def table(samples: Sequence[Sample]) -> list[str]:
    """Return a line for each role: its last figures, and the growth of its anonymous memory per 1,000 batches."""
    lines = [HEAD.format("process", *SHOWN, "MB/1,000 batches")]
    for name, figures in sorted(samples[-1].roles.items()):
        cells = [f"{figures[each]:,.0f}" if each in figures else "-" for each in SHOWN]
        per_thousand = growth(samples, name, "pss anon")
        lines.append(HEAD.format(name, *cells, "-" if per_thousand is None else f"{per_thousand:+.1f}"))
    return lines


def growths(samples: Sequence[Sample]) -> list[str]:
    """Return the verdicts on the growth of each process, and the numbers of files."""
    names = {name for each in after_warm_up(samples) for name in each.roles}
    lines = [verdict(name, growth(samples, name, "pss anon")) for name in sorted(names)]
    for name in samples[-1].files:
        counts = [each.files[name] for each in after_warm_up(samples)]
        last, most = counts[-1], max(counts)
        lines.append(f"{name}: {counts[0]:,.0f} after the warm-up, {last:,.0f} at the end, {most:,.0f} most")
    return lines


def findings(samples: Sequence[Sample], done: Sequence[float]) -> list[str]:
    """Return the verdicts: growth of each process, of files, and of the time of a batch."""
    total = [sum(figures["pss"] for figures in each.roles.values()) for each in samples]
    lines = [f"{len(done):,} batches, {len(done) / DAY:.0%} of a day's; all processes {total[-1]:,.0f} MB at the end"]
    lines += growths(samples)
    third = len(done) // 3
    if third > 1:
        parts = (done[third : 2 * third], done[2 * third :])
        early, late = (statistics.median(b - a for a, b in pairwise(part)) for part in parts)
        lines.append(f"a batch every {early:.2f} s in the second third, every {late:.2f} s in the last")
    return lines


def options() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=DAY)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--records-per-s", type=int, default=500)
    parser.add_argument("--groups", type=int, default=200)
    parser.add_argument("--rounds-per-generation", type=int, default=50)
    apart = parser.add_mutually_exclusive_group()
    apart.add_argument("--alone", action="store_true", help="`serve` and `notify` as processes next to `up`")
    apart.add_argument("--readers", action="store_true", help="`serve` and `notify` without `up`")
    parser.add_argument("--trace", action="store_true", help="tell which lines of Python allocate what grows")
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def started(programs: Programs, folder: Path, arguments: argparse.Namespace) -> tuple[Path, Path]:
    """Start everything, and return the output of the program that writes tables and of the one with the pages."""
    stack, warehouse, config = programs.stack, folder / "warehouse", folder / "regroup.toml"
    load = Load(
        records=round(arguments.records_per_s * 60 * (arguments.minutes + 10)),
        groups=arguments.groups,
        records_per_s=arguments.records_per_s,
        rounds_per_generation=arguments.rounds_per_generation,
    )
    servers = NO_BROKER
    if not arguments.readers:
        servers = stack.enter_context(Broker(folder / "broker", overrides=OVERRIDES)).bootstrap_servers
        create_offsets_topic(servers, load.partitions)
    config.write_text(
        f'trigger_seconds = 0.0\nmaintain_seconds = {MAINTAIN_S}\n[clusters.kafka]\nbootstrap_servers = "{servers}"\n'
    )

    def ours(name: str, *more: str, ends_by: signal.Signals = signal.SIGTERM) -> Path:
        settings = ("--config", str(config), "--warehouse", str(warehouse))
        return programs.start(name, "testing.ageing.cli", name, *settings, *more, ends_by=ends_by)

    if arguments.alone or arguments.readers:
        # Before `up`, which would otherwise send the alerts itself.
        create_tables(None, warehouse, (*BRONZE, *SILVER))
        ours("notify")
        programs.wait((checkpoint_path(warehouse, "notify") / "held").exists)
    if arguments.readers:
        return programs.start("commits", "testing.ageing.commits", str(warehouse)), ours("serve", "--port", "0")
    log = ours("up", "--port", "0", ends_by=signal.SIGINT)
    pages = ours("serve", "--port", "0") if arguments.alone else log
    share = (servers, load, round(time.time() * 1000), range(load.groups))
    producer = multiprocessing.get_context("spawn").Process(target=produce, args=share)
    producer.start()
    stack.callback(producer.join)
    stack.callback(producer.terminate)
    return log, pages


def main() -> None:
    arguments = options()
    samples: list[Sample] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        out = arguments.out or Path(tempfile.mkdtemp(prefix="aged-day-"))
        out.mkdir(parents=True, exist_ok=True)
        warehouse, temporary, inside = folder / "warehouse", folder / "temporary", folder / "inside"
        temporary.mkdir()
        known = environment(inside, {**os.environ, "TMPDIR": str(temporary)} | (TRACED if arguments.trace else {}))
        programs = Programs(stack=stack, logs=out, environment=known)
        began = time.monotonic()
        log, pages = started(programs, folder, arguments)
        programs.wait(lambda: bool(batches(log)))
        stack.enter_context(reading(pages, warehouse, READERS_PAUSE_S if arguments.readers else PAUSE_S))
        while (done := batches(log)) and len(done) < arguments.batches:
            programs.refuse_ended()
            seconds = time.monotonic() - began
            roles = {name: of for each in programs.running.values() for name, of in sample(each.pid, inside).items()}
            samples.append(Sample(seconds, len(done), roles, files_in(warehouse, temporary)))
            write(samples, out / "curves")
            if seconds > 60 * arguments.minutes:
                break
            time.sleep(EVERY_S)
        lines = report(inside, {each.pid: name for name, each in programs.running.items()})
    for line in (*table(samples), *findings(samples, done), *lines, f"curves: {out / 'curves.csv'}"):
        print(line, flush=True)


if __name__ == "__main__":
    main()
