"""The pages over 10,000 groups and 30 days: times, sizes, first paint and memory, compared with their budgets.

`./regroup bench pages [--groups 10000] [--days 30] [--folder DIR] [--readers 50] [--seconds 30] [--quick]`. The history
is made once and kept in --folder. Every request goes over HTTP to a separate process with the pages. The single reader
requests only new ranges, so that no cached result is used. First paint needs chromium and playwright.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from bench.fleet.history import write_history
from bench.page_load.addresses import Asking, Known, known
from bench.page_load.client import Client, client
from bench.page_load.crowd import crowd
from bench.page_load.first_paint import Painted, paint
from bench.page_load.server import memory_mb, processor_ms, serving

BUDGET_MS = {"fleet": 250, "group 24 h": 250, "zoom": 150, "search": 50}
"""Budgets for the server's p95. Every other page must only stay below `SLOWEST_MS`."""

SLOWEST_MS, PAINT_MS, MEMORY_MB = 1_000, 1_200, 600
FIGURE_KB, FIGURE_GZIP_KB, PAYLOAD_KB, SCRIPTS_MB = 500, 150, 300, 2.0
Line = tuple[str, str, str, bool | None]


def p95(values: Sequence[float]) -> float:
    return sorted(values)[max(0, -(-95 * len(values) // 100) - 1)]


def _budget(name: str) -> int:
    return next((ms for start, ms in BUDGET_MS.items() if name.startswith(start)), SLOWEST_MS)


def times(asking: Client, pid: int, pages: dict[str, Callable[[], str]], requests: int) -> Iterator[Line]:
    """Measure one reader, with each page warmed by one request. Processor time ignores other load on the machine."""
    for name, address in pages.items():
        asking.open(address())
        used = processor_ms(pid)
        took = [asking.open(address()) for _ in range(requests)]
        used, found = (processor_ms(pid) - used) / requests, p95(took)
        text = f"p95 {found:,.0f} ms, median {statistics.median(took):,.0f} ms, processor {used:,.0f} ms"
        yield f"server, {name}", text, f"{_budget(name)} ms", found <= _budget(name)


def searches(asking: Client, pages: Asking, requests: int) -> Line:
    """Measure search texts: parts of ids, prefixes, and ids with characters left out."""
    asking.get("/search?q=a")
    took = []
    for _ in range(requests):
        group = pages.rng.choice(pages.there.groups)[0]
        first = pages.rng.randrange(len(group) - 2)
        typed = group[first : first + pages.rng.randrange(1, 12) : pages.rng.choice((1, 1, 2))]
        began = time.perf_counter()
        asking.get(f"/search?q={quote(typed, safe='')}")
        took.append(1000 * (time.perf_counter() - began))
    found = p95(took)
    text = f"p95 {found:,.0f} ms, median {statistics.median(took):,.0f} ms"
    return "server, search as you type", text, f"{_budget('search')} ms", found <= _budget("search")


def sizes(asking: Client) -> Iterator[Line]:
    found = asking.sizes
    for name, value, budget in (
        ("largest figure", found.figure, FIGURE_KB),
        ("largest figure, gzipped", found.zipped, FIGURE_GZIP_KB),
        ("largest page without its figures", found.payload, PAYLOAD_KB),
    ):
        yield name, f"{value / 1000:,.0f} kB", f"{budget} kB", value <= budget * 1000


def crowded(host: str, pid: int, there: Known, readers: int, seconds: float) -> Iterator[Line]:
    took = crowd(host, there, readers, seconds)
    now, most = memory_mb(pid)
    over = sum(ms > SLOWEST_MS for ms in took)
    yield (
        f"{readers} readers at once, every request",
        f"p95 {p95(took):,.0f} ms, longest {max(took):,.0f} ms; {over} of {len(took):,} over 1 s",
        f"{SLOWEST_MS} ms",
        over == 0,
    )
    yield "memory of the pages' process", f"{now:,.0f} MB, at most {most:,.0f} MB", f"{MEMORY_MB} MB", most <= MEMORY_MB


def painted(found: Painted | None) -> Iterator[Line]:
    if found is None:
        yield "first useful paint", "not measured: chromium or playwright is missing", f"{PAINT_MS} ms", None
        return
    yield (
        "scripts that the pages load, gzipped",
        f"{found.scripts / 1e6:.2f} MB",
        f"{SCRIPTS_MB:.0f} MB",
        (found.scripts <= SCRIPTS_MB * 1e6),
    )
    for name, took in found.took.items():
        text = f"p95 {p95(took):,.0f} ms, median {statistics.median(took):,.0f} ms"
        yield f"first useful paint, {name}", text, f"{PAINT_MS} ms", p95(took) <= PAINT_MS


def show(lines: Iterator[Line]) -> int:
    missed = 0
    for name, measured, budget, is_met in lines:
        verdict = {True: "met", False: "NOT MET", None: ""}[is_met]
        missed += is_met is False
        print(f"{name:44} {measured:62} {budget:>8}  {verdict}", flush=True)
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(prog="regroup bench pages", description=__doc__.split("\n")[0])
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--folder", type=Path, help="folder to keep the history in (default: it is not kept)")
    parser.add_argument("--requests", type=int, default=40, help="requests of each page")
    parser.add_argument("--readers", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=30.0, help="how long the readers read, in seconds")
    parser.add_argument("--no-browser", action="store_true", help="skip first paint")
    parser.add_argument("--quick", action="store_true", help="300 groups, 2 days and a few requests")
    args = parser.parse_args()
    if args.quick:
        args.groups, args.days, args.requests, args.readers, args.seconds = 300, 2, 5, 5, 3.0
    with tempfile.TemporaryDirectory() as temporary:
        warehouse = (args.folder or Path(temporary)) / f"{args.groups}-groups-{args.days}-days"
        if not (warehouse / "made").exists():
            began = time.monotonic()
            rows = write_history(warehouse, groups=args.groups, days=args.days, end=int(time.time() * 1000))
            (warehouse / "made").write_text(json.dumps(rows), encoding="ascii")
            print(f"made the history in {time.monotonic() - began:.0f} s")
        rows = json.loads((warehouse / "made").read_text(encoding="ascii"))
        print(", ".join(f"{count:,} {name}" for name, count in rows.items() if count))
        return min(1, show(_measured(warehouse, args)))


def _measured(warehouse: Path, args: argparse.Namespace) -> Iterator[Line]:
    there = known(warehouse)
    with serving(warehouse) as (host, pid), closing(client(host)) as asking:
        pages = Asking(there, 0)
        yield from times(asking, pid, pages.pages(), args.requests)
        yield searches(asking, pages, 5 * args.requests)
        yield from sizes(asking)
        if not args.no_browser:
            chosen = {"fleet": pages.fleet(24), "group": pages.group(24), "storms": f"/storms?{pages.between(7 * 24)}"}
            yield from painted(paint(f"http://{host}", chosen, max(3, args.requests // 4)))
        yield from crowded(host, pid, there, args.readers, args.seconds)


if __name__ == "__main__":
    sys.exit(main())
