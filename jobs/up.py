"""`regroup up`: the main job. From Kafka to gold and the pages; of a cluster of its own where none is named."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from jobs import ingest, poll
from jobs.build import affected_groups, rebuild_new, rebuild_touched
from jobs.config.errors import UserError, one_line
from jobs.config.settings import Cluster, Settings
from jobs.config.terminal import say
from jobs.gold.analysis_thread import QUICK, SLOW, AnalysisThread, Building
from jobs.gold.storm_thread import StormThread
from jobs.lab.lab import Lab, without_compiler
from jobs.lab.scenarios import DEFAULT, chosen
from jobs.maintain import Maintenance
from jobs.notify import Notifier, Notifying
from jobs.pages import access, free_port
from jobs.processes.process_lock import acquire
from jobs.processes.processes import Supervised
from jobs.processes.runs import Runs
from jobs.processes.worker_process import NICER, WorkerProcess
from jobs.retention.compact import merged_file
from jobs.setup.jars import jars
from jobs.spark.spark import session
from jobs.tables.create_tables import create_tables
from jobs.tables.new_rows import NewRows
from schemas.bronze import ADMIN_OBSERVATIONS, BRONZE
from schemas.gold import GROUP_TABLES, MARKS
from schemas.silver import REASSIGNMENT_TABLES, SILVER
from schemas.states import JobOutcome
from schemas.tables import Table

LAB, PAGES_LOG = "lab", "pages.log"
LAST_BYTES = 4_096
FEW_SECONDS = 60.0
"""Between two looks at what batches leave of files."""


def run(settings: Settings, args: argparse.Namespace) -> int:
    """Run until Ctrl-C; nothing that was started stays behind.

    Raises:
        UserError: Java, a jar, the broker or the right to write is missing, or the warehouse is another cluster's.
    """
    access(settings)
    settings.hosts()  # A missing key is told before anything starts.
    with ExitStack() as stack:
        say = _Stages()
        if not settings.clusters:
            settings = _embedded(settings, args.lab, stack, say)
        settings.warehouse.mkdir(parents=True, exist_ok=True)
        runs = stack.enter_context(Runs(warehouse=settings.warehouse, job="up", say=say, secrets=settings.secrets()))
        address, pages = _pages(settings, stack)
        settings = replace(settings, dashboard_url=settings.dashboard_url or address)
        say(f"Pages: {address} (they fill as history is read)")
        spark = session("regroup up", cores=settings.cores, spare=1, driver_memory=settings.driver_memory)
        create_tables(spark, settings.warehouse, (*BRONZE, *SILVER, *REASSIGNMENT_TABLES, MARKS, *GROUP_TABLES))
        notifying = Notifying(notifier=Notifier(settings, say=say))
        refuse_ended(pages, settings.warehouse.absolute().parent / PAGES_LOG)
        say(f"Spark and the tables in {settings.warehouse} are ready")
        stopped = _on_signal()
        building = Building()
        runs.start("ingest", "build", "analyze")
        storming = StormThread(
            spark=spark,
            settings=settings,
            building=building,
            failing=partial(runs.failing, "build"),
            on_found=notifying.wake,
        )
        built = _built(spark, settings, say, building, storming.wake, runs)
        with runs.failing("ingest"):
            streams = ingest.start(spark, settings, on_batch=built, on_failure=partial(_again, runs, say))
        polls = _polls(spark, settings, stopped, say, building, runs)
        say(f"Reading {', '.join(cluster.name for cluster in settings.clusters)}; Ctrl-C stops everything")
        _notify(notifying, settings, stopped, stack, say, runs)
        check_quality(settings, stopped)
        compact_and_maintain(spark, settings, stopped, say, building)
        analysing = _analysing(spark, settings, building, runs)
        for each in (*analysing, storming):
            each.start(stopped)
        while not stopped.wait(1):
            with runs.failing("ingest"):
                streams.look()
            for each in (*polls, *analysing, storming):
                each.raise_failure()
        say("Stopping")
        _silence(spark)
        runs.end(JobOutcome.STOPPED)
        stack.pop_all().close()
        sys.stdout.flush()
        # A batch under way is abandoned as by a crash, which loses nothing; Spark would report it as errors.
        os._exit(0)


def _analysing(spark: SparkSession, settings: Settings, building: Building, runs: Runs) -> list[AnalysisThread]:
    """Health and diagnoses, and beside them advice, which gives way to them too."""
    return [
        AnalysisThread(
            spark=spark,
            settings=settings,
            building=building,
            tables=tables,
            nicer=nicer,
            failing=partial(runs.failing, "analyze"),
        )
        for tables, nicer in ((QUICK, NICER // 2), (SLOW, NICER))
    ]


def _again(runs: Runs, say: _Stages, error: Exception) -> None:
    """Told as the failure of a run, which another one follows."""
    say(f"Reading or building failed, and is started again: {one_line(error)}")
    runs.failed("ingest", error)
    runs.again()


def _notify(
    notifying: Notifying, settings: Settings, stopped: threading.Event, stack: ExitStack, say: _Stages, runs: Runs
) -> None:
    """Notify of this warehouse, unless another process does."""
    try:
        stack.enter_context(acquire(settings.warehouse, "notify"))
    except UserError as error:
        say(f"Going on without alerts: {error}")
    else:
        runs.start("notify")
        notifying.start(stopped)


def check_quality(settings: Settings, stopped: threading.Event) -> None:
    """Hold the tables against their rules now and then, in a process that is there only meanwhile."""
    warehouse = settings.warehouse.absolute()
    command: list[str | Path] = [sys.executable, "-P", "-m", "jobs.cli", "quality"]
    command += ["--once", "--warehouse", warehouse]

    def go_on() -> None:
        while not stopped.wait(settings.quality_seconds):
            # It gives way to batches.
            check = Supervised(command, output=warehouse.parent / "quality.log", nicer=10)
            while check.is_alive() and not stopped.wait(1):
                pass
            check.stop()

    threading.Thread(target=go_on, name="quality", daemon=True).start()


def compact_and_maintain(
    spark: SparkSession, settings: Settings, stopped: threading.Event, say: Callable[[str], None], building: Building
) -> None:
    """Maintain the tables now and then, in this JVM, which is warm: a new one takes both cores for a minute. In between
    what batches leave is put together every minute.
    """

    def go_on(maintenance: Maintenance) -> None:
        # Not at once with `quality`, whose time is a multiple of this one's by default.
        due = time.monotonic() + settings.maintain_seconds / 2
        while not stopped.wait(min(FEW_SECONDS, max(0.0, due - time.monotonic()))):
            is_due = time.monotonic() >= due
            try:
                if is_due:
                    due = time.monotonic() + settings.maintain_seconds
                    told = Runs(warehouse=settings.warehouse, job="maintain", say=say, secrets=settings.secrets())
                    with told, acquire(settings.warehouse, "maintain"):
                        maintenance.round()
                else:
                    with suppress(UserError), acquire(settings.warehouse, "maintain"):
                        maintenance.keep_few()
            except Exception as error:  # noqa: BLE001 - told in job_runs too; what is read goes on, and the next time may succeed
                say(f"Maintenance failed: {one_line(error)}")

    def maintain() -> None:
        with WorkerProcess(merged_file) as beside:
            go_on(Maintenance(spark=spark, settings=settings, say=say, beside=beside, building=building))

    threading.Thread(target=maintain, name="maintain", daemon=True).start()


def _silence(spark: SparkSession) -> None:
    """A batch under way is abandoned, and Spark's threads would each say so."""
    spark.sparkContext.setLogLevel("OFF")
    jvm = spark.sparkContext._jvm  # noqa: SLF001 - the only way to the JVM's own streams
    if jvm is not None:
        jvm.java.lang.System.setErr(jvm.java.io.PrintStream(jvm.java.io.OutputStream.nullOutputStream()))


def _on_signal() -> threading.Event:
    """Set by Ctrl-C or SIGTERM. Spark's own handler interrupts whatever call to the JVM is under way."""
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    return stopped


class _Stages:
    """One line a stage, with the seconds since the start."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def __call__(self, text: str) -> None:
        say(f"{time.monotonic() - self._began:6.1f} s  {text}")


def _embedded(settings: Settings, names: str, stack: ExitStack, say: _Stages) -> Settings:
    """A lab in a folder beside the warehouse: for the same scenarios the same cluster at every start."""
    scenario, left_out = chosen(names)
    say("No cluster is named: starting a lab of our own (--bootstrap-servers names yours)")
    if left_out:
        say(without_compiler(left_out))
    jars("kafka")
    folder = settings.warehouse.absolute().parent / "-".join(["lab", *(names.split(",") if names != DEFAULT else [])])
    folder.mkdir(parents=True, exist_ok=True)
    lab = stack.enter_context(Lab(folder, scenario))
    cluster = Cluster(name=LAB, bootstrap_servers=lab.bootstrap_servers)
    lab.create_topic(cluster.events_topic)
    shipped = [([log], ["--broker-id", str(broker_id)]) for broker_id, log in lab.broker_logs.items()]
    shipped += [(lab.worker_logs, [])] if lab.worker_logs else []
    for logs, options in shipped:
        _ship(logs, options, cluster, folder / "ship-logs.log", stack)
    say(f"Brokers at {lab.bootstrap_servers} play {names}")
    return replace(settings, clusters=(cluster,))


def _ship(logs: list[Path], options: list[str], cluster: Cluster, output: Path, stack: ExitStack) -> None:
    """Send what these files gain to the events topic, in a process of its own."""
    for log in logs:
        log.touch()
    command: list[str | Path] = [sys.executable, "-P", "-m", "jobs.cli", "ship-logs", "--follow", *logs, *options]
    target = ["--bootstrap-servers", cluster.bootstrap_servers, "--cluster", cluster.name]
    stack.callback(Supervised([*command, *target], output=output).stop)


def _pages(settings: Settings, stack: ExitStack) -> tuple[str, Supervised]:
    """Start the pages in a process of their own, which ends with this one; returns their address too."""
    guarded = access(settings)
    port = free_port(settings.host, settings.port)
    warehouse = settings.warehouse.absolute()
    command: list[str | Path] = [sys.executable, "-P", "-m", "dashboards.app", "--warehouse", warehouse]
    command += ["--host", settings.host, "--port", str(port), "--access-on-stdin"]
    # Everybody on this machine can read arguments.
    pages = Supervised(command, output=warehouse.parent / PAGES_LOG, given=guarded.document())
    stack.callback(pages.stop)
    return f"http://{settings.host}:{port}/", pages


def refuse_ended(pages: Supervised, log: Path) -> None:
    """Raise `UserError` with the last line of the pages' log if they have ended: they refuse a guard that is broken."""
    if pages.is_alive():
        return
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - LAST_BYTES))
        lines = file.read().decode("utf-8", "replace").split("\n")
    why = next((line.strip() for line in reversed(lines) if line.strip()), "it is empty")
    raise UserError(f"The pages ended at once. The end of {log}: {why}")


def _polls(
    spark: SparkSession,
    settings: Settings,
    stopped: threading.Event,
    say: _Stages,
    building: AbstractContextManager[object],
    runs: Runs,
) -> list[poll.Following]:
    """What polls; nothing where that is impossible, since nothing else needs it."""

    def named(observations: NewRows) -> None:
        rebuild_touched(spark, settings, affected_groups({ADMIN_OBSERVATIONS: observations}))

    try:
        failing = partial(runs.failing, "poll")
        polls = poll.start(spark, settings, stopped, say=say, building=building, on_topics=named, failing=failing)
    except UserError as error:
        say(f"Going on without polls: {error}")
        return []
    runs.start("poll")
    return polls


def _built(
    spark: SparkSession,
    settings: Settings,
    say: _Stages,
    building: AbstractContextManager[object],
    on_built: Callable[[], None],
    runs: Runs,
) -> ingest.OnBatch:
    """`building` is held: polls build reassignments too, and the groups of topics that they name."""
    rows = 0

    def build(new: Mapping[Table, NewRows]) -> None:
        nonlocal rows
        with building, runs.failing("build"):
            if not rebuild_new(spark, settings, new):
                return
        rows += 1
        say(f"Batch {rows} is in silver")
        on_built()

    return build
