"""Cold catch-up: a full `__consumer_offsets` into bronze and silver, compared with reads that store nothing.

Every measurement runs in a separate process, one after the other, against one broker on this machine. `bronze`,
`silver` and `up` are whole commands. Other seconds are from the first request to the last record or commit, without the
start of a JVM. Compare the ratios, not the rates. With `--kminion BINARY`, KMinion reads the same topic in the same
run.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from bench.load import OVERRIDES, Load, write
from bench.other_tools.kminion import caught_up
from jobs import build, ingest
from jobs.config.clusters import Cluster
from jobs.config.settings import Settings
from jobs.kafka.kafka_client import admin, reader_options, topic_ends
from jobs.lab.broker import Broker
from jobs.setup.jars import cache_dir, resolve
from jobs.spark.spark import session
from jobs.tables.create_tables import create_tables
from jobs.tables.new_rows import NewRows
from schemas.bronze import BRONZE
from schemas.gold import MARKS
from schemas.records import OFFSETS_TOPIC
from schemas.silver import REASSIGNMENT_TABLES, SILVER
from schemas.tables import Table

# Exactly these files, by SHA-256, because not every mirror of Maven Central has 4.2.0 of the token provider.
CONNECTOR = {
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0": (
        "64539c45e5d39f7ddb747312c239f38f5208d08c1a0ddf7d70beb2fbd9373705"
    ),
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.1.0-preview1": (
        "ab6e27a8a47ce63348dd0ecbd5543dc6212b4783180305cde5749e79684ea97b"
    ),
    "org.apache.kafka:kafka-clients:3.9.2": "014b4ef36884478a932641818b080c36a8f8e2e92dc771e800c9d2694f4f83d8",
    "org.apache.commons:commons-pool2:2.13.1": "f77a5060d6936a9144023584232f9de3f2248f1abfe156e9d31795f18770674f",
}
DEFAULTS = {"group.id": "bare", "enable.auto.commit": False, "isolation.level": "read_uncommitted"}
PROCESSES = 2
PER_BATCH = 10_000
BASES = ("bare", "bare_tuned", "kminion")
"""What each measurement is compared with, if it was run before."""


def bare(servers: str, _: Path) -> float:
    """Measure `consume(20000)` in a loop that only counts, with librdkafka's default options."""
    return _count(servers, {"bootstrap.servers": servers, "enable.partition.eof": True, **DEFAULTS})


def bare_tuned(servers: str, _: Path) -> float:
    """Measure the same loop with the options of our source."""
    return _count(servers, reader_options({"bootstrap.servers": servers}))


def bronze(servers: str, folder: Path) -> float:
    """Measure `regroup ingest --once` into an empty warehouse, from the start of the command to its end."""
    began = time.monotonic()
    command("ingest", "--bootstrap-servers", servers, "--warehouse", folder / "warehouse")
    return time.monotonic() - began


def silver(servers: str, folder: Path) -> float:
    """Measure `regroup ingest --once` and `regroup build --once`, from the start of the first to the end of the second.

    Neither of them starts a JVM.
    """
    began = time.monotonic()
    command("ingest", "--bootstrap-servers", servers, "--warehouse", folder / "warehouse")
    command("build", "--warehouse", folder / "warehouse")
    return time.monotonic() - began


def up(servers: str, folder: Path) -> float:
    """Measure `regroup up` from its start until the whole topic is in silver, with the pages beside it."""
    began = time.monotonic()
    whole = [sys.executable, "-P", "-m", "jobs.cli", "up", "--port", "0", "--bootstrap-servers", servers]
    whole += ["--warehouse", str(folder / "warehouse")]
    with subprocess.Popen(whole, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
        assert running.stdout is not None
        lines = []
        for line in running.stdout:
            lines.append(line)
            if "All that was read is in silver" in line:
                took = time.monotonic() - began
                running.send_signal(signal.SIGTERM)
                return took
    raise RuntimeError("".join(lines))


def command(name: str, *options: str | Path) -> None:
    """Run one command of Regroup with `--once`."""
    whole = [sys.executable, "-P", "-m", "jobs.cli", name, "--once", *options]
    subprocess.run(whole, capture_output=True, check=True)


def stream(servers: str, folder: Path) -> float:
    """Measure bronze with Spark's stream, as `regroup up` reads after its first read."""
    return ingested(settings_of(servers, folder))


def stream_silver(servers: str, folder: Path) -> float:
    """Measure bronze with Spark's stream, and silver after each batch, as in `regroup up` after its first read."""
    settings = settings_of(servers, folder)

    def built(new: Mapping[Table, NewRows]) -> None:
        build.rebuild_new(session("bench"), settings, new)

    return ingested(settings, on_batch=built)


def rebuild(servers: str, folder: Path) -> float:
    """Measure `regroup rebuild` of only silver's tables, from existing bronze."""
    settings = settings_of(servers, folder)
    ingested(settings)
    began = time.monotonic()
    build.rebuild_all(session("bench"), settings)
    return time.monotonic() - began


def batches(servers: str, folder: Path) -> list[float]:
    """Return the seconds from each batch of `PER_BATCH` records in silver to the next."""
    settings = settings_of(servers, folder)
    clusters = tuple(replace(cluster, max_offsets_per_trigger=PER_BATCH) for cluster in settings.clusters)
    settings = replace(settings, clusters=clusters)
    ended: list[float] = []

    def built(new: Mapping[Table, NewRows]) -> None:
        if build.rebuild_new(session("bench"), settings, new):
            ended.append(time.monotonic())

    ingested(settings, on_batch=built)
    return [after - before for before, after in pairwise(ended)]


def spark_source(servers: str, _: Path) -> float:
    """Measure Spark's Kafka source to `noop`, with `assign` and the offset fetching that sees internal topics."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - not our session

    spark = (
        SparkSession.builder.master(f"local[{PROCESSES}]")
        .config("spark.jars", ",".join(str(path) for path in resolve(CONNECTOR, cache_dir())))
        .config("spark.sql.streaming.kafka.useDeprecatedOffsetFetching", "true")
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    spark.range(1).count()
    source = spark.read.format("kafka").option("kafka.bootstrap.servers", servers)
    source = source.option("assign", json.dumps({OFFSETS_TOPIC: sorted(_ends(servers))}))
    began = time.monotonic()
    source.option("startingOffsets", "earliest").load().write.format("noop").mode("overwrite").save()
    return time.monotonic() - began


MEASUREMENTS: dict[str, Callable[[str, Path], float]] = {
    "bare": bare,
    "bare_tuned": bare_tuned,
    "bronze": bronze,
    "silver": silver,
    "up": up,
    "stream": stream,
    "stream_silver": stream_silver,
    "rebuild": rebuild,
    "spark_source": spark_source,
}


def ingested(settings: Settings, on_batch: ingest.OnBatch | None = None) -> float:
    """Return the seconds of the streams of `regroup ingest --once`, with the session and the tables made before."""
    spark = session("bench")
    create_tables(spark, settings.warehouse, (*BRONZE, *SILVER, *REASSIGNMENT_TABLES, MARKS))
    began = time.monotonic()
    ingest.start(spark, settings, once=True, on_batch=on_batch).wait()
    return time.monotonic() - began


def settings_of(servers: str, folder: Path) -> Settings:
    """Return settings with one cluster, and a warehouse in the folder."""
    return Settings(warehouse=folder / "warehouse", clusters=(Cluster(name="bench", bootstrap_servers=servers),))


def _ends(servers: str) -> dict[int, tuple[int, int]]:
    found = topic_ends(admin({"bootstrap.servers": servers}), OFFSETS_TOPIC)
    assert found is not None
    return dict(found.ends)


def _count(servers: str, options: dict[str, object]) -> float:
    ends = _ends(servers)
    spawn = multiprocessing.get_context("spawn")
    shares = [{p: ends[p][1] for p in sorted(ends)[n::PROCESSES]} for n in range(PROCESSES)]
    with spawn.Pool(PROCESSES) as pool:
        pool.map(abs, range(PROCESSES))
        began = time.monotonic()
        pool.starmap(count, [(options, share) for share in shares], chunksize=1)
        return time.monotonic() - began


def count(options: dict[str, object], ends: dict[int, int]) -> int:
    """Read one process's partitions to their ends; return the number of records."""
    consumer = Consumer(options)
    consumer.assign([TopicPartition(OFFSETS_TOPIC, partition, 0) for partition in ends])
    left = {partition for partition, end in ends.items() if end}
    records = 0
    while left:
        for message in consumer.consume(20_000, 0.1):
            if message.error():
                left.discard(message.partition())
            else:
                records += 1
    consumer.close()
    return records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--bootstrap-servers", help="a broker whose __consumer_offsets is loaded already")
    parser.add_argument("--only", nargs="*", choices=MEASUREMENTS, default=[*MEASUREMENTS])
    parser.add_argument("--kminion", type=Path, metavar="BINARY", help="compare with this program of KMinion")
    parser.add_argument("--times", type=int, default=1, help="how often each measurement runs, in turn")
    parser.add_argument("--measure", choices=MEASUREMENTS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        with tempfile.TemporaryDirectory(prefix="regroup-bench-") as folder:
            print(MEASUREMENTS[arguments.measure](arguments.bootstrap_servers, Path(folder)))
    elif arguments.bootstrap_servers:
        for _ in range(arguments.times):
            report(arguments.bootstrap_servers, arguments.only, arguments.kminion)
    else:
        with loaded(Load(records=arguments.records)) as (servers, _):
            for _ in range(arguments.times):
                report(servers, arguments.only, arguments.kminion)


@contextmanager
def loaded(load: Load) -> Iterator[tuple[str, Path]]:
    """Yield the bootstrap servers of a broker with the load, and a folder for a warehouse. Both are temporary."""
    with (
        tempfile.TemporaryDirectory(prefix="regroup-bench-") as name,
        Broker(Path(name) / "broker", overrides=OVERRIDES) as broker,
    ):
        write(broker.bootstrap_servers, load)
        yield broker.bootstrap_servers, Path(name)


def seconds(name: str, servers: str) -> float:
    """Run one measurement in a separate process; return its seconds.

    Raises:
        subprocess.CalledProcessError: it failed; `stderr` has the reason.
    """
    command = [sys.executable, "-m", "bench.catch_up", "--measure", name, "--bootstrap-servers", servers]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def report(servers: str, names: list[str], kminion: Path | None = None) -> None:
    """Run the measurements and print one line for each, with its ratio to the bare reads and to KMinion."""
    records = sum(high - low for low, high in _ends(servers).values())
    print(
        f"{records:,} records in {len(_ends(servers))} partitions, {PROCESSES} processes, {len(SILVER)} silver tables"
    )
    rates: dict[str, float] = {}
    if kminion:
        took = caught_up(kminion, servers)
        rates["kminion"] = records / took.received_s
        print(
            f"{'kminion':14} {rates['kminion']:12,.0f} records/s   all received after {took.received_s:.1f} s, "
            f"ready after {took.ready_s:.1f} s, {took.processor_s:.1f} s of processor time, {took.peak_mb:.0f} MB",
            flush=True,
        )
    for name in names:
        try:
            rates[name] = records / seconds(name, servers)
        except subprocess.CalledProcessError as failed:
            print(f"{name:14} failed:\n{failed.stderr[-2_000:]}")
            continue
        ratios = [f"{rates[name] / rates[base]:5.2f} x {base}" for base in BASES if base in rates]
        print(f"{name:14} {rates[name]:12,.0f} records/s   {'   '.join(ratios)}", flush=True)
    if {"bronze", "silver"} <= rates.keys():
        print(f"silver is {rates['silver'] / rates['bronze']:.2f} x bronze")
    if {"bronze", "spark_source"} <= rates.keys():
        print(f"bronze is {rates['bronze'] / rates['spark_source']:.2f} x Spark's own source to noop")


if __name__ == "__main__":
    main()
