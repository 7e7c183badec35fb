"""The command line: `regroup COMMAND`. One command is one job; a foreseeable mistake one sentence and exit code 2."""

from __future__ import annotations

import argparse
import atexit
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from jobs.config.errors import UserError
from jobs.config.permissions import warnings
from jobs.config.settings import Settings
from jobs.config.terminal import guard_streams, warn
from jobs.spark.jvm_failure import jvm_death_named
from jobs.tables.full_disk import full_disk_named
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
"""Commands that leave a run in `job_runs`; `up` does so itself, for its parts as well."""
SCENARIOS = "churn, kip848, migration, java, streams, connect, share, registry, reassignment, failover, storms, outage"
FLAGS = ("warehouse", "bootstrap_servers", "cluster", "host", "port", "quiet_ms", "trigger_seconds")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code (0 done, 2 a mistake or missing thing that the one sentence names)."""
    with guard_streams():
        args = parser().parse_args(arguments)
        try:
            flags = {name: getattr(args, name, None) for name in FLAGS}
            return _run(Settings.load(args.config, flags=flags), args)
        except UserError as error:
            warn(f"regroup {args.command}: {error}")
            return 2
        except KeyboardInterrupt:
            return 130


def program() -> None:
    """`main` as the whole of a process, which ends with its code.

    Databricks calls it in a process that lives on and takes no notice of what is returned: there a failure is raised.
    """
    # Arrow's own pool keeps what other threads gave up: 270 MB after an hour of `up`, of which 7 were in use.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    # Not put back: a traceback is printed after `main` has ended.
    sys.stdout, sys.stderr = visible_stream(sys.stdout), visible_stream(sys.stderr)
    code = main()
    if "DATABRICKS_RUNTIME_VERSION" in os.environ:
        if code:
            sys.exit(code)
        return
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads that serve Spark's JVM keep DuckDB from being taken apart, and it complains of that at length.
    atexit._run_exitfuncs()  # noqa: SLF001 - what the interpreter does first
    os._exit(code)


def _run(settings: Settings, args: argparse.Namespace) -> int:
    if args.command != "doctor":  # It has findings of its own.
        for warning in warnings(args.config, settings):
            warn(f"regroup {args.command}: warning: {warning}")
    command = jvm_death_named()(full_disk_named(settings.warehouse)(_command(args.command)))
    if args.command in (*RECORDED, "up"):
        import_module("jobs.tables.durability").refuse_torn(settings.warehouse)
        import_module("jobs.tables.create_tables").refuse_newer_tables(settings.warehouse)
    if args.command not in RECORDED:
        return command(settings, args)
    # Like the command itself, imported on use.
    runs = import_module("jobs.processes.runs")
    recorded = runs.Runs(warehouse=settings.warehouse, job=args.command, say=warn, secrets=settings.secrets())
    with recorded, recorded.until_terminated():
        code = command(settings, args)
        if code:
            recorded.end(JobOutcome.FAILED, f"It ended with exit code {code}.")
    return code


def parser() -> argparse.ArgumentParser:
    """Every command with every option."""
    top = argparse.ArgumentParser(
        prog="regroup", description="What every Kafka group's rebalances cost, and how to stop paying."
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--config", type=Path, metavar="FILE", help="settings file (TOML)")
    common.add_argument("--warehouse", type=Path, metavar="DIR", help="folder of the Delta tables")
    kafka = argparse.ArgumentParser(add_help=False)
    kafka.add_argument("--bootstrap-servers", metavar="HOST:PORT", help="Kafka cluster to read")
    kafka.add_argument("--cluster", metavar="NAME", help="name of the cluster, in settings and tables")

    def add(name: str, text: str, *parents: argparse.ArgumentParser) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=text, description=text, parents=[common, *parents])

    up = add("up", "run everything: ingest, silver tables and pages; without --bootstrap-servers, of a lab", kafka)
    up.add_argument("--lab", metavar="NAME[,NAME...]", default="churn", help=f"what the lab plays: {SCENARIOS}")
    up.add_argument("--trigger-seconds", type=float, help="time between two batches")
    up.add_argument("--quiet-ms", type=int, help="pause that ends an episode of rebalances, in milliseconds")
    for command in (up, add("serve", "the pages alone")):
        command.add_argument("--host", help="address to listen on (default 127.0.0.1)")
        command.add_argument("--port", type=int, help="port to listen on (default 8050; up takes a free one if taken)")
    for name, text in (
        ("ingest", "read Kafka and log files into bronze"),
        ("build", "make silver from what bronze has gained"),
        ("poll", "ask the brokers for groups, topics and reassignments, and keep the answers"),
    ):
        job = add(name, text, kafka)
        job.add_argument("--once", action="store_true", help="stop when everything that is there has been done")
        job.add_argument("--trigger-seconds", type=float, help="time between two batches")
    analyze = add("analyze", "make gold from what silver has gained: health and advice")
    analyze.add_argument("--once", action="store_true", help="stop when everything that is there has been analysed")
    notify = add("notify", "raise alerts, and tell Alertmanagers and webhooks until they are resolved", kafka)
    notify.add_argument("--once", action="store_true", help="evaluate once, send what is due and stop")
    quality = add("quality", "check that the rows of silver and gold keep their rules, each version of a table once")
    quality.add_argument(
        "--once",
        action="store_true",
        help="check what is new and stop: 1 where the newest version of a table breaks a rule",
    )
    quality.add_argument("--data-docs", type=Path, metavar="DIR", help="write Great Expectations' pages of all rows")
    maintain = add("maintain", "delete what is kept no longer, merge runs of commits and small files, remove old files")
    maintain.add_argument("--once", action="store_true", help="do so once and stop")
    _erase(add("erase", "remove a group, or a client's host, from every table, with a receipt"))
    _replay(add("replay", "rebuild all tables from a capture folder; needs no Kafka"))
    rebuild = add("rebuild", "make silver and gold again from all of bronze")
    rebuild.add_argument(
        "--quarantine", action="store_true", help="first decode again what could not be, after an update of Regroup"
    )
    capture = add("capture", "record a capture folder to attach to an incident or replay elsewhere", kafka)
    capture.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write")
    capture.add_argument("--duration", type=float, default=60.0, metavar="SECONDS", help="how long to record")
    _decode(add("decode", "print the records of __consumer_offsets as JSON lines, decoded", kafka))
    ship = add("ship-logs", "send log files' lines to the events topic", kafka)
    ship.add_argument("files", nargs="+", type=Path, metavar="FILE")
    ship.add_argument("--follow", action="store_true", help="go on as the files grow")
    ship.add_argument("--topic", help="events topic (default: the cluster's events_topic)")
    ship.add_argument("--broker-id", type=int, help="broker that wrote the files, where the lines do not say")
    _mark(add("mark", "announce a deploy or another event, which every time axis then shows", kafka))
    lab = add("lab", "an embedded cluster and the groups of a scenario alone")
    lab.add_argument(
        "--scenario", metavar="NAME[,NAME...]", default="churn", help=f"{SCENARIOS} (default: %(default)s)"
    )
    lab.add_argument("--seed", type=int, default=1, help="seed of the script")
    add("doctor", "check Java, jars, Kafka, permissions, topics and the warehouse, and say what to do", kafka)
    bench = add("bench", "measure this build; without a name, list what there is to measure")
    bench.add_argument("name", nargs="?", metavar="NAME", help="what to measure")
    bench.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="its own arguments (--help tells)")
    return top


def _mark(mark: argparse.ArgumentParser) -> None:
    kinds = ", ".join(MarkKind)
    mark.add_argument("text", metavar="TEXT", help="what is announced, such as v2.31")
    mark.add_argument("--kind", default=MarkKind.DEPLOY.value, help=f"{kinds} (default: %(default)s)")
    mark.add_argument("--at", metavar="TIME", help="when, with its zone: 2026-11-21T12:01:40Z (default: now)")
    mark.add_argument("--group", metavar="ID", help="group it is about (default: the whole cluster)")
    mark.add_argument("--by", metavar="WHO", help="who announces it")
    mark.add_argument("--topic", help="events topic (default: the cluster's events_topic)")


def _decode(decode: argparse.ArgumentParser) -> None:
    decode.add_argument(
        "source",
        nargs="?",
        type=Path,
        metavar="FILE|DIR",
        help="log segment file, folder of a partition on a broker's disk, or capture folder (default: read Kafka)",
    )
    decode.add_argument(
        "--topic", default="__consumer_offsets", metavar="NAME", help="topic to read (default: %(default)s)"
    )
    decode.add_argument("--partition", type=int, metavar="N", help="this partition alone")
    decode.add_argument("--group", metavar="ID", help="records of this group alone, from its partition")
    start = decode.add_mutually_exclusive_group()
    start.add_argument("--from-beginning", action="store_true", help="start with the first record (default)")
    start.add_argument("--from-offset", type=int, metavar="N", help="start with this offset of each partition")
    start.add_argument(
        "--since", metavar="TIME", help="start with the first record of this time or later: 2026-11-21T12:01:40Z"
    )
    start.add_argument("--from-end", action="store_true", help="only records that come from now on, with --follow")
    decode.add_argument("--to-offset", type=int, metavar="N", help="end before this offset of each partition")
    decode.add_argument("--max-records", type=int, metavar="N", help="end after so many lines")
    decode.add_argument("--follow", action="store_true", help="go on as records come")
    decode.add_argument("--raw", action="store_true", help="add key and value as they are stored, in base64")


def _erase(erase: argparse.ArgumentParser) -> None:
    erase.add_argument("--cluster", required=True, metavar="NAME", help="name of the cluster, in the tables")
    named = erase.add_mutually_exclusive_group(required=True)
    named.add_argument("--group", metavar="ID", help="group whose rows are removed")
    named.add_argument("--host", metavar="HOST", help="client's host that a mark without meaning takes the place of")
    erase.add_argument(
        "--now",
        action="store_true",
        help="remove old files at once, and not after vacuum_days: stop all jobs and pages first",
    )


def _replay(replay: argparse.ArgumentParser) -> None:
    replay.add_argument("capture", type=Path, metavar="CAPTURE", help="capture folder")
    replay.add_argument("--cluster", metavar="NAME", help="name of the cluster in the tables")
    replay.add_argument("--sources", default="offsets,log,admin", help="which sources to use (default: %(default)s)")
    replay.add_argument("--batches", type=int, default=1, help="number of batches to split the records into")
    replay.add_argument("--seed", type=int, help="shuffle the order between sources with this seed")


def _command(name: str) -> Command:
    """Imported on use: `--help` and a wrong flag should not wait for Spark."""
    module, function = COMMANDS[name]
    command: Command = getattr(import_module(module), function)
    return command


if __name__ == "__main__":
    program()
