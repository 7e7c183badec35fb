"""Ingest, the first build and a rebuild on a standalone cluster of Spark with more and more executors of one core."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.load import OVERRIDES, Load, create_offsets_topic, write
from jobs.lab.broker import Broker
from testing.spark_cluster import StandaloneCluster, standalone

AFTER_INGEST = ("build", "rebuild")


def measure(load: Load, counts: Sequence[int], after: Sequence[str], cores: float | None = None) -> None:
    """Print the seconds of `ingest` and of the commands `after` it for each number of executors, and how many times as
    fast the work was.

    The work is the time beyond that of the same command for a topic without records, on one executor, which is Spark's
    start, the plans and the commits. The tables are below an address, which the executors read and write. With `cores`,
    each executor has at most so much of the machine's processor time, so that the driver and the broker keep the rest
    however many executors there are.
    """
    of_each = "" if cores is None else f", {cores:g} cores for each executor"
    print(f"{load.records:,} records of {load.groups:,} groups{of_each}")
    print(f"{'':10} {'executors':>9} {'seconds':>8} {'with nothing':>13} {'work':>7} {'times as fast':>14}", flush=True)
    with tempfile.TemporaryDirectory(prefix="regroup-executors-") as name:
        folder = Path(name)
        (folder / "cluster").mkdir()
        with (
            Broker(folder / "broker", overrides=OVERRIDES) as broker,
            Broker(folder / "empty", overrides=OVERRIDES) as empty,
            standalone(folder / "cluster", max(counts), cores) as cluster,
        ):
            write(broker.bootstrap_servers, load)
            create_offsets_topic(empty.bootstrap_servers, load.partitions)
            first: dict[str, float] = {}
            idle = dict(_seconds(cluster, after, folder / "idle", empty.bootstrap_servers, 1))
            for count in counts:
                took = _seconds(cluster, after, folder / f"{count}", broker.bootstrap_servers, count)
                for command, seconds in took:
                    work = seconds - idle[command]
                    faster = first.setdefault(command, work) / work
                    row = f"{seconds:8.1f} {idle[command]:13.1f} {work:7.1f} {faster:14.2f}"
                    print(f"{command:10} {count:9} {row}", flush=True)


def _seconds(
    cluster: StandaloneCluster, after: Sequence[str], folder: Path, servers: str, count: int
) -> Iterator[tuple[str, float]]:
    """Yield each command and its seconds, for an empty warehouse."""
    for command in ("ingest", *after):
        options = ["--warehouse", str(folder / "states"), "--tables", str(folder / "tables")]
        if command != "rebuild":
            options.append("--once")
        if command == "ingest":
            options += ["--bootstrap-servers", servers]
        began = time.monotonic()
        cluster.submit(command, *options, options={"spark.cores.max": str(count)})
        yield command, time.monotonic() - began
