"""`regroup up`: run everything from Kafka to gold and the pages; with no cluster configured, start a lab."""

from __future__ import annotations

import argparse
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from jobs import ingest, poll
from jobs.build import affected_groups, build_first, rebuild_affected, rebuild_new
from jobs.config.clusters import Cluster
from jobs.config.errors import UserError, one_line
from jobs.config.settings import Settings
from jobs.config.terminal import say
from jobs.gold.analysis_thread import QUICK, SLOW, AnalysisThread, Building
from jobs.gold.storm_thread import StormThread
from jobs.lab.lab import Lab
from jobs.lab.scenarios import DEFAULT, chosen
from jobs.maintain import Maintenance
from jobs.notify import Notifier, Notifying
from jobs.pages import access, free_port
from jobs.processes.process_lock import acquire
from jobs.processes.processes import Supervised
from jobs.processes.runs import Runs
from jobs.processes.worker_process import NICER, WorkerProcess
from jobs.processes.worker_thread import WorkerThread
from jobs.retention.compact import merged_file
from jobs.setup.jars import jars
from jobs.spark.lost_worker import repeat
from jobs.spark.session_provider import provider
from jobs.spark.spark import session_of, tables_of
from jobs.spark.streams import Streams
from jobs.tables.create_tables import create_tables, needs_spark
from jobs.tables.new_rows import NewRows
from jobs.tables.silver_rows import current_files
from schemas.bronze import ADMIN_OBSERVATIONS, BRONZE
from schemas.gold import GROUP_TABLES, MARKS
from schemas.silver import GROUPS, REASSIGNMENT_TABLES, SILVER
from schemas.states import JobOutcome
from schemas.tables import Table

TABLES = (*BRONZE, *SILVER, *REASSIGNMENT_TABLES, MARKS, *GROUP_TABLES)
LAB, PAGES_LOG = "lab", "pages.log"
LAST_BYTES = 4_096
FEW_SECONDS = 60.0
"""Seconds between two compaction checks."""


def run(settings: Settings, args: argparse.Namespace) -> int:
    """Run until Ctrl-C; end every process that was started.

    Raises:
        UserError: Java, a jar, the broker or the permission to write is missing, or the warehouse belongs to another
            cluster.
    """
    access(settings)
    settings.hosts()  # Reports a missing key before anything starts.
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # Until `_on_signal`, it ends this run as Ctrl-C does.
    with ExitStack() as stack:
        say = _Stages()
        if not settings.clusters:
            settings = _embedded(settings, args.lab, stack, say)
        settings.warehouse.mkdir(parents=True, exist_ok=True)
        tables = tables_of(settings, "up", spare=1)
        runs = stack.enter_context(Runs(tables=tables, job="up", say=say, secrets=settings.secrets()))
        pages: Supervised | None = None
        if "pages" not in args.without:
            address, pages = _pages(settings, stack)
            settings = replace(settings, dashboard_url=settings.dashboard_url or address)
            say(f"Pages: {address} (they fill as history is read)")
        runs.start("ingest", "build")
        writers = _read_and_build_first(settings, say, runs)
        spark = session_of(settings, "up", spare=1)
        create_tables(spark, settings.warehouse, TABLES)
        notifying = None if "notify" in args.without else Notifying(notifier=Notifier(settings, say=say))
        if pages is not None:
            refuse_ended(pages, settings.warehouse.absolute().parent / PAGES_LOG)
        say(f"Spark and the tables in {settings.warehouse} are ready")
        stopped = _on_signal()
        building = Building()
        runs.start("analyze")
        storm_thread = StormThread(
            spark=spark,
            settings=settings,
            building=building,
            failing=partial(runs.failing, "build"),
            on_found=_nothing if notifying is None else notifying.wake,
        )
        built = _built(spark, settings, say, building, storm_thread.wake, runs)
        with runs.failing("ingest"):
            again = partial(_again, runs, say)
            streams = ingest.start(spark, settings, on_batch=built, on_failure=again, writers=writers)
        polls = _polls(spark, settings, stopped, say, building, runs)
        say(f"Reading {', '.join(cluster.name for cluster in settings.clusters)}; Ctrl-C stops everything")
        if notifying is not None:
            _notify(notifying, settings, stopped, stack, say, runs)
        check_quality(settings, stopped)
        compact_and_maintain(spark, settings, stopped, say, building)
        analysis_threads = _analysis_threads(spark, settings, building, runs)
        for each in (*analysis_threads, storm_thread):
            each.start(stopped)
        _watch(streams, (*polls, *analysis_threads, storm_thread), runs, stopped)
        say("Stopping")
        _silence(spark)
        runs.end(JobOutcome.STOPPED)
        stack.pop_all().close()
        sys.stdout.flush()
        # A running batch is abandoned, as in a crash, without loss. A regular exit would make Spark report errors.
        os._exit(0)


def _watch(streams: Streams, threads: Sequence[WorkerThread], runs: Runs, stopped: threading.Event) -> None:
    """Restart streams that failed, and raise the failure of a thread, until `stopped` is set."""
    # What is loaded now stays. Without this, each full collection would go through it, in the middle of a batch.
    gc.freeze()
    while not stopped.wait(1):
        with runs.failing("ingest"):
            streams.restart_due()
        for each in threads:
            each.raise_failure()


def _analysis_threads(spark: SparkSession, settings: Settings, building: Building, runs: Runs) -> list[AnalysisThread]:
    """Return two threads: one for health and diagnoses, and one with lower priority for advice."""
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


def _read_and_build_first(settings: Settings, say: _Stages, runs: Runs) -> Sequence[ingest.Writer]:
    """Read long topics and build silver without Spark if nothing was read or built yet; return the writers.

    This is several times as fast as the same work in a stream later. Nothing else runs yet: no poll, alert or stream.
    """
    if not needs_spark(settings.warehouse, TABLES):
        # Otherwise, the pages would say until the end of the first read that tables are missing.
        create_tables(None, settings.warehouse, TABLES)
    with runs.failing("ingest"):
        writers = ingest.read_first(settings, on_failure=partial(_again, runs, say), say=say)
    with runs.failing("build"):
        is_built = repeat(partial(build_first, settings, "up"), "regroup up", "the first build")
        if is_built and current_files(settings.warehouse, GROUPS):
            say("All that was read is in silver")
    return writers


def _again(runs: Runs, say: _Stages, error: Exception) -> None:
    """Report a failure of `ingest`, and record the failed run and the new one."""
    say(f"Reading or building failed and is restarted: {one_line(error)}")
    runs.failed("ingest", error)
    runs.again()


def _nothing() -> None:
    """Do nothing, because another process sends the alerts."""


def _notify(
    notifying: Notifying, settings: Settings, stopped: threading.Event, stack: ExitStack, say: _Stages, runs: Runs
) -> None:
    """Send the alerts of this warehouse, unless another process does."""
    try:
        stack.enter_context(acquire(settings.warehouse, "notify"))
    except UserError as error:
        say(f"Continuing without alerts: {error}")
    else:
        runs.start("notify")
        notifying.start(stopped)


def check_quality(settings: Settings, stopped: threading.Event) -> None:
    """Check the tables at intervals, each time in a new process."""
    warehouse = settings.warehouse.absolute()
    command: list[str | Path] = [sys.executable, "-P", "-m", "jobs.cli", "quality"]
    command += ["--once", "--warehouse", warehouse]

    def go_on() -> None:
        while not stopped.wait(settings.quality_seconds):
            # Low priority, so that batches are not delayed.
            check = Supervised(command, output=warehouse.parent / "quality.log", nicer=10)
            while check.is_alive() and not stopped.wait(1):
                pass
            check.stop()

    threading.Thread(target=go_on, name="quality", daemon=True).start()


def compact_and_maintain(
    spark: SparkSession, settings: Settings, stopped: threading.Event, say: Callable[[str], None], building: Building
) -> None:
    """Maintain the tables at intervals, and compact small files every minute in between.

    Runs in this JVM, because it is warm: a new JVM occupies both cores for a minute.
    """

    def go_on(maintenance: Maintenance) -> None:
        # Offset from `quality`, because the interval of `quality` is a multiple of this interval by default.
        due = time.monotonic() + settings.maintain_seconds / 2
        while not stopped.wait(min(FEW_SECONDS, max(0.0, due - time.monotonic()))):
            is_due = time.monotonic() >= due
            try:
                if is_due:
                    due = time.monotonic() + settings.maintain_seconds
                    record = Runs(tables=tables_of(settings, "up"), job="maintain", say=say, secrets=settings.secrets())
                    with record, acquire(settings.warehouse, "maintain"):
                        maintenance.round()
                else:
                    with suppress(UserError), acquire(settings.warehouse, "maintain"):
                        maintenance.keep_few()
            except Exception as error:  # noqa: BLE001 - job_runs has it too, reading continues, and the next run may succeed
                say(f"Maintenance failed: {one_line(error)}")

    def maintain() -> None:
        with WorkerProcess(merged_file) as worker:
            go_on(Maintenance(spark=spark, settings=settings, say=say, worker=worker, building=building))

    threading.Thread(target=maintain, name="maintain", daemon=True).start()


def _silence(spark: SparkSession) -> None:
    """Silence Spark's logs, because each of its threads would report the abandoned batch."""
    if provider() is not None:
        return  # Its JVM may serve others too.
    spark.sparkContext.setLogLevel("OFF")
    jvm = spark.sparkContext._jvm  # noqa: SLF001 - the only way to the JVM's own streams
    if jvm is not None:
        jvm.java.lang.System.setErr(jvm.java.io.PrintStream(jvm.java.io.OutputStream.nullOutputStream()))


def _on_signal() -> threading.Event:
    """Return an event that Ctrl-C or SIGTERM sets. Spark's own handler would interrupt the running call to the JVM."""
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    return stopped


class _Stages:
    """Prints one line per stage, with the seconds since the start."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def __call__(self, text: str) -> None:
        say(f"{time.monotonic() - self._began:6.1f} s  {text}")


def _embedded(settings: Settings, names: str, stack: ExitStack, say: _Stages) -> Settings:
    """Start a lab in a folder next to the warehouse. The same scenarios reuse the same cluster at every start."""
    scenario, left_out = chosen(names)
    say("No cluster is configured: starting a lab (use --bootstrap-servers for your own cluster)")
    for sentence in left_out:
        say(sentence)
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
    say(f"Brokers at {lab.bootstrap_servers} run {names}")
    return replace(settings, clusters=(cluster,))


def _ship(logs: list[Path], options: list[str], cluster: Cluster, output: Path, stack: ExitStack) -> None:
    """Send the new lines of these files to the events topic, in a separate process."""
    for log in logs:
        log.touch()
    command: list[str | Path] = [sys.executable, "-P", "-m", "jobs.cli", "ship-logs", "--follow", *logs, *options]
    target = ["--bootstrap-servers", cluster.bootstrap_servers, "--cluster", cluster.name]
    stack.callback(Supervised([*command, *target], output=output).stop)


def _pages(settings: Settings, stack: ExitStack) -> tuple[str, Supervised]:
    """Start the pages in a child process, which ends with this one; return their address and the process."""
    guarded = access(settings)
    port = free_port(settings.host, settings.port)
    warehouse = settings.warehouse.absolute()
    command: list[str | Path] = [sys.executable, "-P", "-m", "dashboards.app", "--warehouse", warehouse]
    command += ["--host", settings.host, "--port", str(port), "--access-on-stdin"]
    # Passed on stdin, because every user of this machine can read arguments.
    given = f"{guarded.document()}\n{settings.teams.document()}"
    pages = Supervised(command, output=warehouse.parent / PAGES_LOG, stdin_text=given)
    stack.callback(pages.stop)
    return f"http://{settings.host}:{port}/", pages


def refuse_ended(pages: Supervised, log: Path) -> None:
    """Raise `UserError` with the last line of the pages' log if the pages have ended, as on invalid access rules."""
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
    """Start the polls of each cluster. If that is impossible, report it and go on, because nothing else needs them."""

    def named(observations: NewRows) -> None:
        rebuild_affected(spark, settings, affected_groups({ADMIN_OBSERVATIONS: observations}))

    polls: list[poll.Following] = []
    failing = partial(runs.failing, "poll")
    for cluster in settings.clusters:
        its = replace(settings, clusters=(cluster,))
        try:
            polls += poll.start(spark, its, stopped, say=say, building=building, on_topics=named, failing=failing)
        except UserError as error:
            say(f"Continuing without polls of {cluster.name}: {error}")
    if polls:
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
    """Return a function that builds silver from a batch.

    It holds `building`, because polls also build reassignments, and rebuild the groups of topics that they name.
    """
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
