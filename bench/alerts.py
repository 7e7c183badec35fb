"""Time from silver to Alertmanager for a storm, and the alerts that Alertmanager gets after it was stopped.

`python -m bench.alerts [--groups 10000] [--storms 20] [--away 300] [--kills 50]`. Needs prometheus-alertmanager. The
groups of the warehouse lost something in each of the last 72 hours. Everything runs on this machine.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
from deltalake import write_deltalake

from jobs.config.receivers import Alertmanager as Receiver
from jobs.config.settings import Settings
from jobs.notify import Notifier, Notifying
from jobs.tables.paths import table_path
from schemas.bronze import COVERAGE
from schemas.gold import GROUP_HEALTH, STORMS
from schemas.silver import GENERATIONS, GROUPS, STALLS
from schemas.tables import Table
from testing.alerts.killing import configured, killed, notify
from testing.alerts.receiving import Alertmanager, HttpReceiver
from testing.alerts.rows import CLUSTER, HOUR, coverage, generation, health, now, rebalancing, stall, storm, write
from testing.alerts.until_killed import POINTS
from testing.waiting import wait_until

HOURS = 72
ALWAYS: dict[str, Any] = {
    "flapping_members": 0,
    "rebalances": 1,
    "lost_resource_seconds": 0.2,
    "owned_resource_seconds": 36_000.0,
}


def fill(warehouse: Path, groups: int) -> None:
    """Write a quiet cluster: each group of 10 resources rebalances once an hour and loses 0.2 resource-seconds."""
    at = now()
    for table, row, times in (
        (GROUPS, rebalancing(open_rebalance_since_at=None, state="Stable", last_record_at=at), 1),
        (STALLS, stall(at, 200), HOURS),
        (GENERATIONS, generation(1, at, 10), HOURS),
        (
            GROUP_HEALTH,
            health(at // HOUR * HOUR, **{k: v for k, v in ALWAYS.items() if k != "flapping_members"}),
            HOURS,
        ),
    ):
        _multiply(warehouse, table, row, groups, times)


def _multiply(warehouse: Path, table: Table, row: dict[str, Any], groups: int, times: int) -> None:
    """Write the row for every group and hour, with its timestamps and numbers moved back accordingly."""
    write(warehouse, table, [row])
    with duckdb.connect() as engine:
        path = table_path(warehouse, table)
        moved = [
            f"{c.name} - to_hours(h) AS {c.name}" if c.type == "TIMESTAMP" else f'"{c.name}"'
            for c in table.columns
            if c.name not in ("group_id", "generation_id")
        ]
        number = ", (1000 - h)::INT AS generation_id" if "generation_id" in table.names else ""
        query = (
            f"SELECT {', '.join(moved)}{number}, 'group-' || g AS group_id "
            f"FROM read_parquet('{path}/*.parquet'), range({times}) AS hours(h), range({groups}) AS groups(g)"
        )
        engine.execute("SET TimeZone = 'UTC'")
        rows = engine.sql(query).select(", ".join(f'"{name}"' for name in table.names)).to_arrow_table()
    write_deltalake(path, rows, mode="overwrite")


def storms(warehouse: Path, *rows: dict[str, Any]) -> None:
    write(warehouse, COVERAGE, [coverage(upto=now(), at=now())])
    write(warehouse, STORMS, list(rows))


def is_received(alertmanager: Alertmanager, storm_id: str) -> bool:
    return storm_id in str(alertmanager.alerts())


def latency(settings: Settings, alertmanager: Alertmanager, times: int) -> None:
    """Measure the work of `up` after a batch: from a storm in its table, over waking notify, to the alert in
    Alertmanager.
    """
    notifying, stopped = Notifying(notifier=Notifier(settings, say=print)), threading.Event()
    storms(settings.warehouse)
    notifying.start(stopped)
    took = []
    for n in range(times):
        time.sleep(0.5)
        rows = [storm(f"storm-{n}", now())]
        storms(settings.warehouse, *rows)
        began = time.monotonic()
        notifying.wake()
        wait_until(partial(is_received, alertmanager, f"storm-{n}"), 60)
        took.append(time.monotonic() - began)
    stopped.set()
    took.sort()
    p95 = took[min(len(took) - 1, int(0.95 * len(took)))]
    print(
        f"storm in its table -> Alertmanager has it, {times} storms: median {statistics.median(took):.2f} s, ", end=""
    )
    print(f"p95 {p95:.2f} s, longest {took[-1]:.2f} s", flush=True)


def away(settings: Settings, alertmanager: Alertmanager, seconds: float) -> None:
    """Stop Alertmanager; meanwhile one storm continues, one ends and three begin."""
    notifying, stopped = Notifying(notifier=Notifier(settings, say=print)), threading.Event()
    storms(settings.warehouse, storm("goes-on", now()), storm("is-over", now()))
    notifying.start(stopped)
    wait_until(lambda: "is-over" in str(alertmanager.alerts()))
    alertmanager.stop()
    began = time.monotonic()
    rows = [storm("goes-on", now())]
    until = began + seconds
    while (left := until - time.monotonic()) > 0:
        if len(rows) <= 3 * (seconds - left) / seconds + 1 and len(rows) < 4:
            rows.append(storm(f"new-{len(rows)}", now()))
        storms(settings.warehouse, *rows)
        notifying.wake()
        time.sleep(min(5.0, left))
    alertmanager.start()
    back = time.monotonic()
    storms(settings.warehouse, *rows)
    wanted = {"goes-on", "new-1", "new-2", "new-3"}

    def has_everything() -> bool:
        active = {alert["labels"].get("group") for alert in alertmanager.alerts()}
        return wanted <= active and "is-over" not in active

    wait_until(has_everything, 120)
    print(f"away for {back - began:.0f} s: has everything {time.monotonic() - back:.1f} s after its return", flush=True)
    stopped.set()


def kills(folder: Path, alertmanager: Alertmanager, received: HttpReceiver, times: int) -> None:
    """Find each storm with a notify that is killed, alternately before and after it has sent; the next one ends the
    storm.
    """
    warehouse = folder / "killed"
    options = configured(folder, warehouse, alertmanager.url, received.url)
    write(warehouse, GROUPS, [rebalancing(open_rebalance_since_at=None, last_record_at=now())])
    for n in range(times + 1):
        storms(warehouse, *([storm(f"killed-{n}", now())] if n < times else []))
        killed(POINTS[n % 2], folder / "halted", *options)
        assert notify("notify", "--once", *options).wait(120) == 0
    received_by = Counter((post["labels"]["group"], post["status"]) for post in received.bodies("/hook"))
    missed = 2 * times - len(received_by)
    again = sum(count == 2 for count in received_by.values())
    more = sum(count > 2 for count in received_by.values())
    print(f"{times + 1} kills, {2 * times} states: {missed} missed, {again} told twice, {more} more often", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--storms", type=int, default=20)
    parser.add_argument("--away", type=float, default=0.0, help="seconds for which Alertmanager is stopped")
    parser.add_argument("--kills", type=int, default=0, help="storms, at each of which a notify is killed")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        warehouse, received = folder / "warehouse", HttpReceiver()
        alertmanager = Alertmanager(folder, received.url, waits={})
        settings = Settings(
            warehouse=warehouse, alertmanagers=(Receiver(name="am", url=alertmanager.url),), metrics_port=0
        )
        try:
            fill(warehouse, args.groups)
            alertmanager.start()
            print(
                f"{args.groups} groups of {CLUSTER}, {args.groups * HOURS} stops and generations in 3 days", flush=True
            )
            latency(settings, alertmanager, args.storms)
            if args.away:
                away(replace(settings, warehouse=folder / "other"), alertmanager, args.away)
            if args.kills:
                kills(folder, alertmanager, received, args.kills)
        finally:
            alertmanager.stop()
            received.stop()


if __name__ == "__main__":
    main()
