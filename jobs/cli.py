"""The command line `regroup COMMAND`. Each command is one job. A foreseeable mistake gives one sentence and exit code
2.
"""

from __future__ import annotations

import argparse
import atexit
import os
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from dashboards.lake.allocators import keep_trimmed, settle_allocators
from dashboards.lake.without_pandas import without_pandas
from jobs.command_line.parser import parser
from jobs.config.errors import UserError
from jobs.config.permissions import warnings
from jobs.config.settings import Settings
from jobs.config.terminal import guard_streams, trace_crashes, warn
from jobs.spark.jvm_failure import jvm_death_named
from jobs.spark.lost_worker import repeated
from jobs.spark.s3_failure import store_named
from jobs.spark.session_provider import Provider, provider
from jobs.tables.catalog.violation import violation_named
from jobs.tables.disk.full_disk import full_disk_named
from schemas.bronze import COORDINATOR_RECORDS
from schemas.states import JobOutcome
from schemas.visible import visible_stream

Command = Callable[[Settings, argparse.Namespace], int]

COMMANDS = {
    "up": ("jobs.up", "run"),
    "ingest": ("jobs.ingest", "run"),
    "build": ("jobs.build", "run"),
    "poll": ("jobs.poll", "run"),
    "analyze": ("jobs.analyze", "run"),
    "notify": ("jobs.notify", "run"),
    "quality": ("jobs.quality", "run"),
    "maintain": ("jobs.maintain", "run"),
    "erase": ("jobs.erase", "run"),
    "replay": ("jobs.replay", "run"),
    "rebuild": ("jobs.build", "run_rebuild"),
    "copy": ("jobs.copy_tables", "run"),
    "why": ("jobs.why", "run"),
    "top": ("jobs.top", "run"),
    "health": ("jobs.answers.health", "run"),
    "advise": ("jobs.advise", "run"),
    "deploys": ("jobs.deploys.deploys", "run"),
    "report": ("jobs.report", "run"),
    "incident": ("jobs.incidents.incident", "run"),
    "mcp": ("jobs.assistants.mcp_server", "run"),
    "serve": ("jobs.serve", "run"),
    "jars": ("jobs.installation.fetch_jars", "run"),
    "completion": ("jobs.installation.completion", "run"),
    "capture": ("jobs.capture", "run"),
    "decode": ("jobs.decode", "run"),
    "ship-logs": ("jobs.ship_logs", "run"),
    "receive-metrics": ("jobs.client_metrics.receive", "run"),
    "mark": ("jobs.mark", "run"),
    "lab": ("jobs.lab.lab", "run"),
    "doctor": ("jobs.doctor", "run"),
    "bench": ("jobs.bench", "run"),
}
RECORDED = ("ingest", "build", "poll", "analyze", "notify", "quality", "maintain", "erase", "replay", "rebuild")
"""Commands that add a row to `job_runs`. `up` adds rows itself, also for its parts."""
WRITING = (*RECORDED, "copy")
SERVED = ("serve", "why", "top", "health", "advise", "deploys", "report", "incident", "mcp")
"""Commands that only read the tables, also through a SQL warehouse or in an object store."""
IN_FOLDER = ("up", *SERVED)
"""Commands that need the tables in the warehouse's folder (`jobs.tables.location`)."""
WITHOUT_TABLES = ("capture", "decode", "doctor", "lab", "mark", "receive-metrics", "ship-logs")
"""Commands that need no tables. By default, the warehouse is in the current folder, which the user may not be able to
enter.
"""
WITHOUT_PANDAS = ("build", "ingest", "replay", "up")
"""Commands that do without pandas, which none of them uses. Loading it takes half a second of a core, a third of the
time of a short `replay`, and 25 MB, which `up` would keep for months.
"""
WITHOUT_SETTINGS = ("jars", "completion")
"""Commands that read neither settings nor the warehouse."""
READING = (
    "jobs.kafka.log_source",
    "jobs.kafka.topic_streams",
    "pipelines.silver.frame",
    "pyspark.daemon",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.worker",
)
"""The modules of the processes that Spark starts to read topics."""
FORKED = {
    "ingest": READING,
    "up": (*READING, "jobs.gold.replaying", "jobs.gold.storm_thread", "jobs.retention.compact"),
}
"""The modules of the processes that a command and its Spark start."""
FLAGS = ("warehouse", "tables", "bootstrap_servers", "cluster", "host", "port", "quiet_ms", "trigger_seconds")


def main(arguments: Sequence[str] | None = None, *, is_program: bool = False) -> int:
    """Run one command and return its exit code: 0 success, 2 a mistake or missing thing, described in one sentence.

    With `is_program`, this process does nothing else and has no other thread.
    """
    with guard_streams():
        args = parser().parse_args(arguments)
        try:
            if args.command in WITHOUT_SETTINGS:
                return _command(args.command)(Settings(), args)
            flags = {name: getattr(args, name, None) for name in FLAGS}
            return _run(Settings.load(args.config, flags=flags), args, is_program=is_program)
        except UserError as error:
            warn(f"regroup {args.command}: {error}")
            return 2
        except KeyboardInterrupt:
            return 130


def program() -> None:
    """Run `main` as a whole process, and exit with its code.

    Databricks calls this function in a process that continues and ignores the return value, so a failure is raised
    there.
    """
    if os.getpid() == 1:
        # The first process of a container survives a signal that it does not handle, so `stop` would have to kill it.
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    settle_allocators()
    trace_crashes()
    if sys.argv[1:2] and sys.argv[1] in WITHOUT_PANDAS and provider() is None:
        without_pandas(but_for_spark=True)
        # OpenBLAS, which nothing here calculates with, would start threads when NumPy is loaded.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Never restored, because a traceback is printed after `main` has ended.
    sys.stdout, sys.stderr = visible_stream(sys.stdout), visible_stream(sys.stderr)
    if provider() is Provider.DATABRICKS:
        if code := main():
            sys.exit(code)
        return
    code = main(is_program=True)
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads that serve Spark's JVM prevent DuckDB's cleanup, which then prints long error messages.
    atexit._run_exitfuncs()  # noqa: SLF001 - the interpreter's first step at exit
    os._exit(code)


def _run(settings: Settings, args: argparse.Namespace, *, is_program: bool) -> int:
    if args.command != "doctor":  # It reports these warnings as findings.
        for warning in warnings(args.config, settings):
            warn(f"regroup {args.command}: warning: {warning}")
    if settings.address is not None:
        return _run_at_address(settings, args, is_program=is_program)
    there = _bind_tables(settings, args.command)
    if there is None or args.command not in WRITING:
        return _run_bound(settings, args, there, is_program=is_program)
    with import_module("jobs.spark.s3_checks").only_writer(there, settings.warehouse):
        return _run_bound(settings, args, there, is_program=is_program)


def _run_at_address(settings: Settings, args: argparse.Namespace, *, is_program: bool) -> int:
    """Run a command on a warehouse in an object store.

    Raises:
        UserError: the command cannot, or the store cannot be used.
    """
    if args.command == "up":
        raise _not_there("up", settings.warehouse_text)
    if args.command not in WRITING:
        return _run_bound(settings, args, None, is_program=is_program)
    with import_module("jobs.states.stored_states").in_a_folder(settings) as here:
        return _run_bound(here, args, here.tables, is_program=is_program)


def _run_bound(settings: Settings, args: argparse.Namespace, there: str | None, *, is_program: bool) -> int:
    named = full_disk_named(settings.warehouse)(violation_named()(_command(args.command)))
    command = repeated(jvm_death_named()(store_named(there)(named)))
    # If the tables are not in a folder, a thread may already keep a lease.
    if is_program and there is None and settings.address is None and (modules := _forked(settings, args)):
        # Before anything below starts a thread.
        import_module("jobs.processes.template").start(modules)
    if args.command in (*RECORDED, "up"):
        for sentence in import_module("jobs.tables.disk.torn").repair_logs(settings.warehouse):
            warn(f"regroup {args.command}: {sentence}")
        import_module("jobs.tables.create_tables").refuse_newer_tables(settings.warehouse)
        keep_trimmed()
    if args.command not in RECORDED:
        return command(settings, args)
    # Imported on use, like the command itself.
    runs = import_module("jobs.processes.runs")
    tables = import_module("jobs.spark.spark").tables_of(settings, args.command)
    recorded = runs.Runs(tables=tables, job=args.command, say=warn, secrets=settings.secrets())
    with recorded, recorded.until_terminated():
        code = command(settings, args)
        if code:
            recorded.end(JobOutcome.FAILED, f"The command ended with exit code {code}.")
    return code


def _forked(settings: Settings, args: argparse.Namespace) -> Sequence[str]:
    """Return the modules of the processes that the command and its Spark start; none if it may do without Spark."""
    if args.command == "ingest" and args.once and _is_first(settings):
        # The first read of a long topic needs none.
        return ()
    return FORKED.get(args.command, ())


def _is_first(settings: Settings) -> bool:
    return not import_module("jobs.tables.table_facts").has_folder(settings.warehouse, COORDINATOR_RECORDS)


def _bind_tables(settings: Settings, command: str) -> str | None:
    """Bind the warehouse to the tables that the settings name, if the command uses them. Return where they are, unless
    they are in the folder.

    Raises:
        UserError: the command cannot use such tables, or the warehouse belongs to others or cannot be read.
    """
    places = import_module("jobs.tables.location")
    wanted = places.valid_location(settings.tables) if settings.tables else None
    there = None if command in WITHOUT_TABLES else places.location(settings.warehouse) or wanted
    if there is None:
        return None
    is_served = command in SERVED and (settings.databricks is not None or places.is_address(there))
    if command not in IN_FOLDER or is_served:
        if command in WRITING:
            import_module("jobs.spark.s3_checks").refuse_unreachable(there)
        if wanted is not None and command in (*WRITING, "serve"):
            places.bind(settings.warehouse, wanted)
        return str(there)
    raise _not_there(command, there)


def _not_there(command: str, there: str) -> UserError:
    instead = dict.fromkeys(SERVED, "read them through a SQL warehouse, with [databricks] in the settings file") | {
        "up": "run `ingest`, `build`, `analyze`, `poll` and `notify` instead, as processes or scheduled jobs",
    }
    return UserError(f"`{command}` does not work with tables in {there}: {instead[command]}.")


def _command(name: str) -> Command:
    """Import the command on use, so that `--help` and a wrong flag need not wait for Spark."""
    module, function = COMMANDS[name]
    try:
        command: Command = getattr(import_module(module), function)
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package not in {"pyspark", "delta"}:
            raise
        raise UserError(
            f"`{name}` needs Spark, and {package} is not installed here: install regroup[spark], or run the command "
            "where Spark is provided (docs/clusters.md)."
        ) from None
    return command


if __name__ == "__main__":
    program()
