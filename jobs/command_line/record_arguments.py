"""The arguments of the commands that read, write or remove records and tables."""

from __future__ import annotations

import argparse
from pathlib import Path

from schemas.records import OFFSETS_TOPIC
from schemas.states import MarkKind

SCENARIOS = (
    "churn, kip848, migration, settings, java, streams, connect, share, registry, reassignment, failover, sessions, "
    "offsets, lost, stuck, mismatch, storms, outage, clients"
)


def add_copy(copy: argparse.ArgumentParser) -> None:
    """Add the arguments of `copy`."""
    copy.add_argument(
        "--from",
        dest="source",
        type=Path,
        required=True,
        metavar="PLACE",
        help="folder or address of the warehouse to copy",
    )


def add_lab(lab: argparse.ArgumentParser) -> None:
    """Add the arguments of `lab`."""
    lab.add_argument(
        "--scenario", metavar="NAME[,NAME...]", default="churn", help=f"{SCENARIOS} (default: %(default)s)"
    )
    lab.add_argument("--seed", type=int, default=1, help="random seed of the scenario")
    lab.add_argument("--listen", metavar="HOST:PORT", help="address of the broker for clients (default: a free port)")
    lab.add_argument("--directory", type=Path, metavar="DIR", help="folder of the cluster, kept (default: temporary)")


def add_capture(capture: argparse.ArgumentParser) -> None:
    """Add the arguments of `capture`."""
    capture.add_argument("--out", type=Path, required=True, metavar="DIR|ADDRESS", help="folder or address to write")
    capture.add_argument("--duration", type=float, default=60.0, metavar="SECONDS", help="how long to record")


def add_mark(mark: argparse.ArgumentParser) -> None:
    """Add the arguments of `mark`."""
    kinds = ", ".join(kind for kind in MarkKind if kind != MarkKind.KUBERNETES)
    mark.add_argument("text", metavar="TEXT", help="text of the mark, such as v2.31")
    mark.add_argument("--kind", default=MarkKind.DEPLOY.value, help=f"{kinds} (default: %(default)s)")
    mark.add_argument(
        "--at", metavar="TIME", help="time of the event, with a time zone: 2026-11-21T12:01:40Z (default: now)"
    )
    mark.add_argument("--group", metavar="ID", help="group that the event concerns (default: the whole cluster)")
    mark.add_argument("--by", metavar="WHO", help="person or system that sends the mark")
    mark.add_argument("--topic", help="events topic (default: the cluster's events_topic)")


def add_decode(decode: argparse.ArgumentParser) -> None:
    """Add the arguments of `decode`."""
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


def add_erase(erase: argparse.ArgumentParser) -> None:
    """Add the arguments of `erase`."""
    erase.add_argument("--cluster", required=True, metavar="NAME", help="name of the cluster, in the tables")
    named = erase.add_mutually_exclusive_group(required=True)
    named.add_argument("--group", metavar="ID", help="group to erase")
    named.add_argument("--host", metavar="HOST", help="client host to replace with a random placeholder")
    erase.add_argument(
        "--now",
        action="store_true",
        help="remove old files now instead of after vacuum_days; stop all jobs and pages first",
    )


def add_replay(replay: argparse.ArgumentParser) -> None:
    """Add the arguments of `replay`."""
    replay.add_argument("capture", type=Path, metavar="CAPTURE", help="capture folder, or its address")
    replay.add_argument("--cluster", metavar="NAME", help="name of the cluster in the tables")
    replay.add_argument("--sources", default="offsets,log,admin", help="which sources to use (default: %(default)s)")
    replay.add_argument("--batches", type=int, default=1, help="number of batches to split the records into")
    replay.add_argument("--seed", type=int, help="shuffle the order of the log batches with this random seed")


def add_ship(ship: argparse.ArgumentParser) -> None:
    """Add the arguments of `ship-logs`."""
    ship.add_argument("files", nargs="+", type=Path, metavar="FILE")
    ship.add_argument("--follow", action="store_true", help="continue as the files grow")
    ship.add_argument("--topic", help="events topic (default: the cluster's events_topic)")
    ship.add_argument("--broker-id", type=int, help="broker that wrote the files, for lines without a broker id")


def add_receive(receive: argparse.ArgumentParser) -> None:
    """Add the arguments of `receive-metrics`."""
    receive.add_argument(
        "--listen", default="127.0.0.1:4318", metavar="HOST:PORT", help="address to listen on (default: %(default)s)"
    )
    receive.add_argument(
        "--token",
        default="",
        metavar="env:NAME|file:PATH",
        help="where the token is that senders must have; necessary unless the address is loopback",
    )
    receive.add_argument("--topic", help="events topic (default: the cluster's events_topic)")
