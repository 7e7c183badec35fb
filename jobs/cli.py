"""The command line `regroup COMMAND`. Each command is one job. A foreseeable mistake gives one sentence and exit code
2.
"""

from __future__ import annotations

import argparse
import atexit
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from dashboards.lake.allocators import keep_trimmed, settle_allocators
from dashboards.lake.without_pandas import without_pandas
from jobs.config.errors import UserError
from jobs.config.permissions import warnings
from jobs.config.settings import Settings
from jobs.config.terminal import guard_streams, trace_crashes, warn
from jobs.deploys.arguments import add_arguments as add_deploys
from jobs.incidents.arguments import add_arguments
from jobs.spark.jvm_failure import jvm_death_named
from jobs.spark.lost_worker import repeated
from jobs.spark.session_provider import Provider, provider
from jobs.tables.catalog.violation import violation_named
from jobs.tables.full_disk import full_disk_named
from schemas.records import OFFSETS_TOPIC
from schemas.states import JobOutcome, MarkKind
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
    "advise": ("jobs.advise", "run"),
    "deploys": ("jobs.deploys.deploys", "run"),
    "report": ("jobs.report", "run"),
    "incident": ("jobs.incidents.incident", "run"),
    "mcp": ("jobs.assistants.mcp_server", "run"),
    "serve": ("jobs.serve", "run"),
    "capture": ("jobs.capture", "run"),
    "decode": ("jobs.decode", "run"),
    "ship-logs": ("jobs.ship_logs", "run"),
    "mark": ("jobs.mark", "run"),
    "lab": ("jobs.lab.lab", "run"),
    "doctor": ("jobs.doctor", "run"),
    "bench": ("jobs.bench", "run"),
}
RECORDED = ("ingest", "build", "poll", "analyze", "notify", "quality", "maintain", "erase", "replay", "rebuild")
"""Commands that add a row to `job_runs`. `up` adds rows itself, also for its parts."""
SERVED = ("serve", "why", "top", "advise", "deploys", "report", "incident", "mcp")
"""Commands that only read the tables, also through a SQL warehouse or in an object store."""
IN_FOLDER = ("up", *SERVED)
"""Commands that need the tables in the warehouse's folder (`jobs.tables.location`)."""
WITHOUT_PANDAS = ("build", "ingest", "replay", "up")
"""Commands that do without pandas, which none of them uses. Loading it takes half a second of a core, a third of the
time of a short `replay`, and 25 MB, which `up` would keep for months.
"""
FORKED = (
    "jobs.gold.replaying",
    "jobs.gold.storm_thread",
    "jobs.kafka.log_source",
    "jobs.kafka.topic_streams",
    "jobs.retention.compact",
    "pipelines.silver.frame",
    "pyspark.daemon",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.worker",
)
"""The modules of the processes that `up` and its Spark start."""
RANGES = ("15m", "1h", "6h", "24h", "7d", "all")
"""Ranges of `regroup top` and `deploys`: those of the pages, and everything that is known."""
SCENARIOS = (
    "churn, kip848, migration, settings, java, streams, connect, share, registry, reassignment, failover, sessions, "
    "offsets, lost, stuck, mismatch, storms, outage, clients"
)
FLAGS = ("warehouse", "tables", "bootstrap_servers", "cluster", "host", "port", "quiet_ms", "trigger_seconds")


def main(arguments: Sequence[str] | None = None, *, is_program: bool = False) -> int:
    """Run one command and return its exit code: 0 success, 2 a mistake or missing thing, described in one sentence.

    With `is_program`, this process does nothing else and has no other thread.
    """
    with guard_streams():
        args = parser().parse_args(arguments)
        try:
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
    _bind_tables(settings, args.command)
    named = full_disk_named(settings.warehouse)(violation_named()(_command(args.command)))
    command = repeated(jvm_death_named()(named))
    if args.command == "up" and is_program:
        # Before anything below starts a thread.
        import_module("jobs.processes.template").start(FORKED)
    if args.command in (*RECORDED, "up"):
        import_module("jobs.tables.durability").refuse_torn(settings.warehouse)
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


def _bind_tables(settings: Settings, command: str) -> None:
    """Bind the warehouse to the tables that the settings name, if the command uses them.

    Raises:
        UserError: the command cannot use such tables, or the warehouse belongs to others.
    """
    places = import_module("jobs.tables.location")
    wanted = places.valid_location(settings.tables) if settings.tables else None
    there = places.location(settings.warehouse) or wanted
    if there is None:
        return
    is_served = command in SERVED and (settings.databricks is not None or places.is_address(there))
    if command not in IN_FOLDER or is_served:
        if wanted is not None and command in (*RECORDED, "copy", "serve"):
            places.bind(settings.warehouse, wanted)
        return
    through = "read them through a SQL warehouse, with [databricks] in the settings file"
    instead = dict.fromkeys(SERVED, through) | {
        "up": "run `ingest`, `build`, `analyze`, `poll` and `notify` instead, as processes or scheduled jobs",
    }
    raise UserError(f"`{command}` does not work with tables in {there}: {instead[command]}.")


def parser() -> argparse.ArgumentParser:
    """Return the parser of every command and option."""
    top = argparse.ArgumentParser(
        prog="regroup", description="What every Kafka group's rebalances cost, and how to stop paying."
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--config", type=Path, metavar="FILE", help="settings file (TOML)")
    common.add_argument("--warehouse", type=Path, metavar="DIR", help="folder of the Delta tables and of checkpoints")
    common.add_argument(
        "--tables",
        metavar="SCHEMA|ADDRESS",
        help="where Spark keeps the tables, if not in the folder: catalog.schema, or an address such as s3a://bucket/x",
    )
    kafka = argparse.ArgumentParser(add_help=False)
    kafka.add_argument("--bootstrap-servers", metavar="HOST:PORT", help="Kafka cluster to read")
    kafka.add_argument("--cluster", metavar="NAME", help="name of the cluster, in settings and tables")

    def add(name: str, text: str, *parents: argparse.ArgumentParser) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=text, description=text, parents=[common, *parents])

    up = add("up", "run everything: ingest, tables and pages; starts a lab if no cluster is configured", kafka)
    up.add_argument(
        "--lab", metavar="NAME[,NAME...]", default="churn", help=f"scenarios that the lab runs: {SCENARIOS}"
    )
    up.add_argument("--trigger-seconds", type=float, help="seconds between two batches")
    up.add_argument("--quiet-ms", type=int, help="pause that ends an episode of rebalances, in milliseconds")
    for command in (up, add("serve", "serve only the pages")):
        command.add_argument("--host", help="address to listen on (default 127.0.0.1)")
        command.add_argument(
            "--port", type=int, help="port to listen on (default 8050; up tries the next ports if it is in use)"
        )
    for name, text in (
        ("ingest", "read Kafka and log files into bronze"),
        ("build", "build silver from new rows of bronze"),
        ("poll", "read groups, topics and reassignments from the Admin API and store them"),
    ):
        job = add(name, text, kafka)
        job.add_argument("--once", action="store_true", help="process the existing data and stop")
        job.add_argument("--trigger-seconds", type=float, help="seconds between two batches")
    analyze = add("analyze", "update gold from new rows of silver: health, diagnoses and advice")
    analyze.add_argument("--once", action="store_true", help="analyze the existing rows and stop")
    notify = add("notify", "raise alerts and send them to Alertmanagers and webhooks until they are resolved", kafka)
    notify.add_argument("--once", action="store_true", help="evaluate once, send what is due and stop")
    quality = add("quality", "check the rows of silver and gold against their rules")
    quality.add_argument(
        "--once",
        action="store_true",
        help="check the new versions of all tables once; exit code 1 if the newest version of a table breaks a rule",
    )
    quality.add_argument(
        "--data-docs", type=Path, metavar="DIR", help="check all rows and write Great Expectations data docs"
    )
    maintain = add("maintain", "delete expired rows, merge runs of commits and small files, remove old files")
    maintain.add_argument("--once", action="store_true", help="run once and stop")
    _erase(add("erase", "remove a group or a client host from every table, and write a receipt"))
    _replay(add("replay", "rebuild all tables from a capture folder; needs no Kafka"))
    rebuild = add("rebuild", "rebuild silver and gold from all of bronze")
    rebuild.add_argument(
        "--quarantine",
        action="store_true",
        help="first decode quarantined records again, for example after an update of Regroup",
    )
    _copy(add("copy", "copy the tables of a warehouse into another folder, a schema of a catalog or an object store"))
    _answers(add)
    text = "record a live cluster into a capture folder, to attach to an incident or to replay"
    _capture(add("capture", text, kafka))
    _decode(add("decode", "print the records of __consumer_offsets as JSON lines, decoded", kafka))
    ship = add("ship-logs", "send log files' lines to the events topic", kafka)
    ship.add_argument("files", nargs="+", type=Path, metavar="FILE")
    ship.add_argument("--follow", action="store_true", help="continue as the files grow")
    ship.add_argument("--topic", help="events topic (default: the cluster's events_topic)")
    ship.add_argument("--broker-id", type=int, help="broker that wrote the files, for lines without a broker id")
    _mark(add("mark", "record a deploy or another event; every time axis shows it", kafka))
    _lab(add("lab", "run only an embedded cluster and the groups of a scenario"))
    add("doctor", "check Java, jars, Kafka, permissions, topics and the warehouse, and describe the fixes", kafka)
    bench = add("bench", "run a benchmark; without a name, list all benchmarks")
    bench.add_argument("name", nargs="?", metavar="NAME", help="name of the benchmark")
    bench.add_argument(
        "arguments", nargs=argparse.REMAINDER, metavar="...", help="arguments of the benchmark (its --help lists them)"
    )
    return top


def _copy(copy: argparse.ArgumentParser) -> None:
    copy.add_argument(
        "--from", dest="source", type=Path, required=True, metavar="DIR", help="folder of the warehouse to copy"
    )


def _lab(lab: argparse.ArgumentParser) -> None:
    lab.add_argument(
        "--scenario", metavar="NAME[,NAME...]", default="churn", help=f"{SCENARIOS} (default: %(default)s)"
    )
    lab.add_argument("--seed", type=int, default=1, help="random seed of the scenario")


def _answers(add: Callable[[str, str], argparse.ArgumentParser]) -> None:
    why = add("why", "say why a group rebalanced: verdict, who, cost, what would have avoided it, proof")
    advise = add("advise", "say what a group should change, what that saves, and what to paste")
    top = add("top", "list the groups that lost most in a range of time")
    for of_group in (why, advise):
        of_group.add_argument("group", metavar="GROUP", help="group id")
        of_group.add_argument("--cluster", metavar="NAME", help="name of the cluster, if several have the group")
    for command in (why, advise, top):
        command.add_argument("--json", action="store_true", help="print the answer as JSON")
    top.add_argument("--last", choices=RANGES, default="24h", help="range of time that ends now (default: %(default)s)")
    top.add_argument("--rows", type=int, default=20, metavar="N", help="number of groups (default: %(default)s)")
    text = "list deploys: cost against those before, time to stable, who did not come back"
    add_deploys(add("deploys", text), RANGES)
    report = add("report", "write a report: what rebalances cost by cause, cluster, team, group and storm")
    _report_range(report.add_mutually_exclusive_group())
    report.add_argument("--team", default="", metavar="NAME", help="only groups of this team; none: of no team")
    report.add_argument(
        "--zone", metavar="NAME", help="zone of times and weeks (default: that of [report] in the settings, else UTC)"
    )
    report.add_argument(
        "--format", choices=("markdown", "html", "json"), default="markdown", help="default: %(default)s"
    )
    text = "write a document about one rebalance, episode or storm: what happened, why, its cost, and what to change"
    add_arguments(add("incident", text))
    mcp = add("mcp", "answer an assistant's questions over standard input and output (Model Context Protocol)")
    mcp.add_argument(
        "--pages", metavar="URL", help="ask these pages instead of the tables (token: REGROUP_PAGES_TOKEN)"
    )
    why.add_argument(
        "--at",
        metavar="TIME",
        help="time of the rebalance: 12:03 (the last one, UTC) or 2026-11-21T12:03:07Z (default: the newest rebalance)",
    )


def _report_range(chosen: argparse._MutuallyExclusiveGroup) -> None:
    chosen.add_argument("--days", type=int, default=7, metavar="N", help="the last N days (default: %(default)s)")
    chosen.add_argument(
        "--week",
        nargs="?",
        const="1",
        metavar="N",
        help="a calendar week, Monday 00:00 to Monday 00:00 in --zone: N weeks before this one (default: 1, the last "
        "whole week; 0: this week so far), or a name such as 2026-W47",
    )


def _capture(capture: argparse.ArgumentParser) -> None:
    capture.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write")
    capture.add_argument("--duration", type=float, default=60.0, metavar="SECONDS", help="how long to record")


def _mark(mark: argparse.ArgumentParser) -> None:
    kinds = ", ".join(kind for kind in MarkKind if kind != MarkKind.KUBERNETES)
    mark.add_argument("text", metavar="TEXT", help="text of the mark, such as v2.31")
    mark.add_argument("--kind", default=MarkKind.DEPLOY.value, help=f"{kinds} (default: %(default)s)")
    mark.add_argument(
        "--at", metavar="TIME", help="time of the event, with a time zone: 2026-11-21T12:01:40Z (default: now)"
    )
    mark.add_argument("--group", metavar="ID", help="group that the event concerns (default: the whole cluster)")
    mark.add_argument("--by", metavar="WHO", help="person or system that sends the mark")
    mark.add_argument("--topic", help="events topic (default: the cluster's events_topic)")


def _decode(decode: argparse.ArgumentParser) -> None:
    decode.add_argument(
        "source",
        nargs="?",
        type=Path,
        metavar="FILE|DIR",
        help="log segment file, folder of a partition on a broker's disk, or capture folder (default: read Kafka)",
    )
    decode.add_argument("--topic", default=OFFSETS_TOPIC, metavar="NAME", help="topic to read (default: %(default)s)")
    decode.add_argument("--partition", type=int, metavar="N", help="print only this partition")
    decode.add_argument("--group", metavar="ID", help="print only records of this group, from its partition")
    start = decode.add_mutually_exclusive_group()
    start.add_argument("--from-beginning", action="store_true", help="start with the first record (default)")
    start.add_argument("--from-offset", type=int, metavar="N", help="start with this offset of each partition")
    start.add_argument(
        "--since",
        metavar="TIME",
        help="start with each partition's first record at or after this time: 2026-11-21T12:01:40Z",
    )
    start.add_argument("--from-end", action="store_true", help="print only records written from now on, with --follow")
    decode.add_argument("--to-offset", type=int, metavar="N", help="end before this offset of each partition")
    decode.add_argument("--max-records", type=int, metavar="N", help="end after N lines")
    decode.add_argument("--follow", action="store_true", help="continue as records arrive")
    decode.add_argument("--raw", action="store_true", help="add the stored bytes of key and value, in base64")


def _erase(erase: argparse.ArgumentParser) -> None:
    erase.add_argument("--cluster", required=True, metavar="NAME", help="name of the cluster, in the tables")
    named = erase.add_mutually_exclusive_group(required=True)
    named.add_argument("--group", metavar="ID", help="group to erase")
    named.add_argument("--host", metavar="HOST", help="client host to replace with a random placeholder")
    erase.add_argument(
        "--now",
        action="store_true",
        help="remove old files now instead of after vacuum_days; stop all jobs and pages first",
    )


def _replay(replay: argparse.ArgumentParser) -> None:
    replay.add_argument("capture", type=Path, metavar="CAPTURE", help="capture folder")
    replay.add_argument("--cluster", metavar="NAME", help="name of the cluster in the tables")
    replay.add_argument("--sources", default="offsets,log,admin", help="which sources to use (default: %(default)s)")
    replay.add_argument("--batches", type=int, default=1, help="number of batches to split the records into")
    replay.add_argument("--seed", type=int, help="shuffle the order of the log batches with this random seed")


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
