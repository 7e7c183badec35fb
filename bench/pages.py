"""The pages over 10,000 groups and 30 days: times, sizes, first paint and memory, compared with their budgets.

`./regroup bench pages [--groups 10000] [--days 30] [--folder DIR] [--readers 50] [--seconds 30] [--quick]`. The history
is made once and kept in --folder. Every request goes over HTTP to a separate process with the pages. The single reader
requests only new ranges, so that no cached result is used. First paint needs chromium and playwright.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote, urlsplit

import duckdb

from bench.fleet.fleet import CLUSTER, HOUR
from bench.fleet.history import write_history
from bench.page_load.first_paint import Painted, paint

BUDGET_MS = {"fleet": 300, "group 24 h": 400, "zoom": 250, "search": 50}
"""Budgets for the server's p95. Every other page must only stay below `SLOWEST_MS`."""

SLOWEST_MS, PAINT_MS, MEMORY_MB = 1_000, 1_500, 600
FIGURE_KB, FIGURE_GZIP_KB, PAYLOAD_KB, SCRIPTS_MB = 500, 150, 300, 2.0
Line = tuple[str, str, str, bool | None]


@dataclass(frozen=True, slots=True)
class Known:
    """The names to request. `groups` are in order of activity, busiest first, each with its newest generation."""

    groups: list[tuple[str, int]]
    storms: list[str]
    end: int


@dataclass(slots=True)
class Sizes:
    """The largest sizes seen, in bytes."""

    figure: int = 0
    zipped: int = 0
    payload: int = 0


@dataclass(slots=True)
class Client:
    """One reader's connection to the pages."""

    host: str
    output: dict[str, Any]
    sizes: Sizes = field(default_factory=Sizes)
    seen: Any = None
    connection: HTTPConnection = field(init=False)

    def __post_init__(self) -> None:
        self.connection = HTTPConnection(self.host, timeout=60)

    def close(self) -> None:
        self.connection.close()

    def get(self, path: str) -> bytes:
        self.connection.request("GET", path)
        answer = self.connection.getresponse()
        body = answer.read()
        assert answer.status == 200, (path, answer.status, body[:200])
        return body

    def open(self, address: str, *, is_tick: bool = False) -> float:
        """Return the milliseconds of the page's callback. A tick sends the current display, like a browser."""
        parts = urlsplit(address)
        search = f"?{parts.query}" if parts.query else ""
        values = {"pathname": parts.path, "search": search, "n_intervals": 1, "href": address}
        body = json.dumps(
            {
                "output": self.output["output"],
                "outputs": _outputs(self.output["output"]),
                "inputs": [i | {"value": values.get(i["property"])} for i in self.output["inputs"]],
                "state": [s | {"value": self.seen if is_tick else None} for s in self.output["state"]],
                "changedPropIds": ["tick.n_intervals" if is_tick else "url.search"],
            }
        )
        began = time.perf_counter()
        self.connection.request("POST", "/_dash-update-component", body, {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        told = answer.read()
        took = 1000 * (time.perf_counter() - began)
        assert answer.status in (200, 204), (address, answer.status, told[:200])
        if not is_tick:
            self._weigh(address, json.loads(told)["response"], len(told))
        return took

    def _weigh(self, address: str, response: dict[str, Any], length: int) -> None:
        self.seen = response["seen"]["data"]
        page = response["made"]["data"]
        assert "Something went wrong" not in json.dumps(page), address
        for figure in _figures(page):
            text = json.dumps(figure, separators=(",", ":")).encode()
            length -= len(text)
            self.sizes.figure = max(self.sizes.figure, len(text))
            self.sizes.zipped = max(self.sizes.zipped, len(gzip.compress(text, 6)))
        self.sizes.payload = max(self.sizes.payload, length)


def _outputs(name: str) -> list[dict[str, str]]:
    parts = [each.rsplit(".", 1) for each in name.strip(".").split("...")]
    return [{"id": identity, "property": prop} for identity, prop in parts]


def _figures(node: Any) -> Iterator[Any]:
    if isinstance(node, dict):
        if node.get("type") == "Graph":
            yield node["props"]["figure"]
        node = list(node.values())
    if isinstance(node, list):
        for each in node:
            yield from _figures(each)


@contextmanager
def serving(warehouse: Path) -> Iterator[tuple[str, int]]:
    """Run the pages in a separate process; yield host and port, and the process id."""
    command = [sys.executable, "-m", "dashboards.app", "--warehouse", str(warehouse), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            yield urlsplit(line.split()[-1]).netloc, process.pid
        finally:
            process.terminate()


def memory_mb(pid: int) -> tuple[float, float]:
    """Return the resident memory in MB now, and its maximum so far."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    lines = dict(line.split(":", 1) for line in text.splitlines())
    now, most = (int(lines[name].split()[0]) / 1000 for name in ("VmRSS", "VmHWM"))
    return now, most


def processor_ms(pid: int) -> float:
    """Return the processor time in ms of the process and its threads so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return 1000 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def client(host: str) -> Client:
    asking = Client(host, {})
    told = json.loads(asking.get("/_dash-dependencies"))
    asking.output = next(each for each in told if "seen.data" in each["output"])
    return asking


def known(warehouse: Path) -> Known:
    with duckdb.connect() as engine:
        made = f"read_parquet('{warehouse}/generations/*.parquet')"
        groups = engine.sql(
            f"SELECT group_id, max(generation_id) FROM {made} GROUP BY group_id ORDER BY count(*) DESC, group_id"
        ).fetchall()
        storms = engine.sql(f"SELECT storm_id FROM read_parquet('{warehouse}/storms/*.parquet')").fetchall()
        end = engine.sql(f"SELECT epoch_ms(max(to_at)) FROM read_parquet('{warehouse}/coverage/*.parquet')").fetchall()
    return Known([(group, number) for group, number in groups], [storm for (storm,) in storms], end[0][0])


class Asking:
    """Addresses whose ranges end at one of `ends` times. With the default, no time is requested twice."""

    def __init__(self, there: Known, seed: int, ends: int = 600_000) -> None:
        self.there, self.rng, self.ends = there, Random(seed), ends

    def between(self, hours: float) -> str:
        end = self.there.end - self.rng.randrange(self.ends) * 600_000 // self.ends
        return f"from={end - int(hours * HOUR)}&to={end}"

    def fleet(self, hours: float) -> str:
        return f"/?{self.between(hours)}"

    def group(self, hours: float) -> str:
        """Return the address of a group; a busy group more often than a quiet one."""
        chosen = min(self.rng.randrange(len(self.there.groups)) for _ in range(3))
        return f"/group?cluster={CLUSTER}&group={quote(self.there.groups[chosen][0], safe='')}&{self.between(hours)}"

    def rebalance(self) -> str:
        group, newest = self.rng.choice(self.there.groups)
        number = self.rng.randint(1, newest)
        return f"/rebalance?cluster={CLUSTER}&group={quote(group, safe='')}&incarnation=0&generation={number}"

    def storm(self) -> str:
        return f"/storms?storm={self.rng.choice(self.there.storms)}"

    def advice(self) -> str:
        return f"/advice?q={self.rng.choice(self.there.groups)[0][: self.rng.randrange(1, 3)]}"

    def pages(self) -> dict[str, Callable[[], str]]:
        return {
            "fleet 1 h": lambda: self.fleet(1),
            "fleet 24 h": lambda: self.fleet(24),
            "fleet 7 d": lambda: self.fleet(7 * 24),
            "fleet 30 d": lambda: self.fleet(30 * 24),
            "group 24 h": lambda: self.group(24),
            "zoom (group, 2 h)": lambda: self.group(2),
            "zoom (fleet, 3 h)": lambda: self.fleet(3),
            "rebalance": self.rebalance,
            "storms 7 d": lambda: f"/storms?{self.between(7 * 24)}",
            "storm": self.storm,
            "advice": self.advice,
            "reassignments 30 d": lambda: f"/reassignments?{self.between(30 * 24)}",
            "health": lambda: "/health",
        }


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
        told = f"p95 {found:,.0f} ms, median {statistics.median(took):,.0f} ms, processor {used:,.0f} ms"
        yield f"server, {name}", told, f"{_budget(name)} ms", found <= _budget(name)


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
    told = f"p95 {found:,.0f} ms, median {statistics.median(took):,.0f} ms"
    return "server, search as you type", told, f"{_budget('search')} ms", found <= _budget("search")


def sizes(asking: Client) -> Iterator[Line]:
    found = asking.sizes
    for name, value, budget in (
        ("largest figure", found.figure, FIGURE_KB),
        ("largest figure, gzipped", found.zipped, FIGURE_GZIP_KB),
        ("largest page without its figures", found.payload, PAYLOAD_KB),
    ):
        yield name, f"{value / 1000:,.0f} kB", f"{budget} kB", value <= budget * 1000


def crowd(host: str, there: Known, readers: int, seconds: float) -> list[float]:
    """Run `readers` readers at once, each with a page open for 5 to 15 s that ticks; return the ms of every request.

    Relative ranges end at the same time for all readers at about the same time, also here. Groups, rebalances and
    storms differ between readers.
    """
    took: list[float] = []
    until, pause = time.monotonic() + seconds, min(5.0, seconds)

    def read(number: int) -> None:
        with closing(client(host)) as asking:
            look(asking, Asking(there, number + 1, ends=3))

    def look(asking: Client, pages: Asking) -> None:
        choices = [*pages.pages().items()]
        weights = [2 if name.startswith(("fleet", "group", "zoom")) else 1 for name, _ in choices]
        time.sleep(pages.rng.uniform(0, pause))
        while time.monotonic() < until:
            address = pages.rng.choices(choices, weights)[0][1]()
            took.append(asking.open(address))
            for _ in range(pages.rng.randint(1, 3)):
                time.sleep(pause)
                took.append(asking.open(address, is_tick=True))

    with ThreadPoolExecutor(readers) as pool:
        list(pool.map(read, range(readers)))
    return took


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
        told = f"p95 {p95(took):,.0f} ms, median {statistics.median(took):,.0f} ms"
        yield f"first useful paint, {name}", told, f"{PAINT_MS} ms", p95(took) <= PAINT_MS


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
