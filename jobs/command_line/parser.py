"""The parser of the command line `regroup COMMAND`."""

from __future__ import annotations

import argparse
from pathlib import Path

from jobs.command_line.answer_arguments import add_answers
from jobs.command_line.record_arguments import (
    SCENARIOS,
    add_capture,
    add_copy,
    add_decode,
    add_erase,
    add_lab,
    add_mark,
    add_receive,
    add_replay,
    add_ship,
)
from jobs.installation.arguments import VersionAction, add_installation


def parser() -> argparse.ArgumentParser:
    """Return the parser of every command and option."""
    top = argparse.ArgumentParser(
        prog="regroup", description="What every Kafka group's rebalances cost, and how to stop paying."
    )
    top.add_argument("--version", action=VersionAction, nargs=0, help="print the version and the build, and exit")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--config", type=Path, metavar="FILE", help="settings file (TOML)")
    common.add_argument(
        "--warehouse",
        metavar="PLACE",
        help="place of the Delta tables and of checkpoints: a folder, or an address such as s3a://bucket/x",
    )
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

    text = "run everything: ingest, tables and pages; starts a lab if no cluster is configured"
    up = add("up", text, kafka)
    _up(up)
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
    add_erase(add("erase", "remove a group or a client host from every table, and write a receipt"))
    add_replay(add("replay", "rebuild all tables from a capture folder; needs no Kafka"))
    rebuild = add("rebuild", "rebuild silver and gold from all of bronze")
    rebuild.add_argument(
        "--quarantine",
        action="store_true",
        help="first decode quarantined records again, for example after an update of Regroup",
    )
    add_copy(
        add("copy", "copy the tables of a warehouse into another folder, a schema of a catalog or an object store")
    )
    add_answers(add)
    text = "record a live cluster into a capture folder, to attach to an incident or to replay"
    add_capture(add("capture", text, kafka))
    add_decode(add("decode", "print the records of __consumer_offsets as JSON lines, decoded", kafka))
    add_ship(add("ship-logs", "send log files' lines to the events topic", kafka))
    text = "receive what clients push to the brokers (OTLP/HTTP), and send it to the events topic"
    add_receive(add("receive-metrics", text, kafka))
    add_mark(add("mark", "record a deploy or another event; every time axis shows it", kafka))
    add_lab(add("lab", "run only an embedded cluster and the groups of a scenario"))
    add_installation(commands, top)
    add("doctor", "check Java, jars, Kafka, permissions, topics and the warehouse, and describe the fixes", kafka)
    bench = add("bench", "run a benchmark; without a name, list all benchmarks")
    bench.add_argument("name", nargs="?", metavar="NAME", help="name of the benchmark")
    bench.add_argument(
        "arguments", nargs=argparse.REMAINDER, metavar="...", help="arguments of the benchmark (its --help lists them)"
    )
    return top


def _up(up: argparse.ArgumentParser) -> None:
    up.add_argument(
        "--lab", metavar="NAME[,NAME...]", default="churn", help=f"scenarios that the lab runs: {SCENARIOS}"
    )
    up.add_argument(
        "--without",
        action="append",
        choices=("pages", "notify"),
        default=[],
        help="do not run the pages, or the alerts and metrics, because another process does: `serve`, `notify`",
    )
    up.add_argument("--trigger-seconds", type=float, help="seconds between two batches")
    up.add_argument("--quiet-ms", type=int, help="pause that ends an episode of rebalances, in milliseconds")
