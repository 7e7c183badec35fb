"""Hand-made histories: records of one group as bronze has them, and lines as its brokers and workers print them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from pipelines.coordinator_events import ParsedEvent, parse_line
from pipelines.log_layouts import layout
from pipelines.silver.history import History
from pipelines.silver.rows import silver_rows
from schemas.rows import SilverRows

START = 1_795_246_000_000
GROUP = "orders"
Record = dict[str, Any]
Line = dict[str, Any]
Commit = tuple[int, int, int]
"""Milliseconds after START, partition of the topic `orders`, committed offset."""


def member_id(name: str) -> str:
    return f"{name}-00000000-0000-4000-8000-{name.encode().hex().zfill(12)}"


def member(name: str, subscription: dict[str, Any], assignment: dict[str, Any], *, session_ms: int = 10_000) -> Record:
    return {
        "memberId": member_id(name),
        "groupInstanceId": None,
        "clientId": name,
        "clientHost": "/10.0.0.1",
        "rebalanceTimeout": 60_000,
        "sessionTimeout": session_ms,
        "subscription": subscription,
        "assignment": assignment,
    }


def generation(
    number: int,
    at: int,
    members: Sequence[Record],
    *,
    protocol_type: str = "consumer",
    protocol: str | None = "range",
    leader: str | None = None,
) -> Record:
    """A GroupMetadata value whose join phase ended `at` ms after START and which was synced 5 ms later."""
    ids = [m["memberId"] for m in members]
    return {
        "at": START + at + (5 if members else 0),
        "value": {
            "protocolType": protocol_type,
            "generation": number,
            "protocol": protocol if members else None,
            "leader": member_id(leader) if leader else next(iter(ids), None),
            "currentStateTimestamp": START + at,
            "members": list(members),
        },
    }


def consumer(name: str, partitions: Sequence[int], *, owned: Sequence[int] = (), from_generation: int = -1) -> Record:
    """A member of an eager or cooperative group that reads the topic `orders`."""
    brought = {"orders": list(owned)} if owned else {}
    subscription = {"topics": ["orders"], "ownedPartitions": brought, "generationId": from_generation}
    return member(name, subscription, {"partitions": {"orders": list(partitions)}, "userData": None})


def worker(
    name: str,
    *,
    ran: dict[str, list[int]] | None = None,
    given: dict[str, list[int]] | None = None,
    revoked: dict[str, list[int]] | None = None,
    delay: int = 0,
    config: int = 10,
    version: int = 2,
    error: int = 0,
) -> Record:
    """A Connect worker that `ran` something, from which `revoked` is taken and to which `given` is added."""
    allocation = None if ran is None else {"assignment": ran}
    subscription = {"version": version, "url": f"http://{name}:8083/", "configOffset": config, "allocation": allocation}
    increment = {"assignment": given or {}, "revoked": revoked or {}, "delay": delay, "error": error}
    return member(name, subscription, {"version": version, "configOffset": config} | increment)


def workers(number: int, at: int, *members: Record, protocol: str = "sessioned") -> Record:
    return generation(number, at, members, protocol_type="connect", protocol=protocol)


def tombstone(at: int) -> Record:
    return {"at": START + at, "value": None}


def broker_line(at: int, message: str, *, broker: int = 1) -> Line:
    """A line of the Java coordinator, `at` ms after START."""
    text = f"[GroupCoordinator id={broker} topic=__consumer_offsets partition=3] {message}"
    return _line(at, text, "org.apache.kafka.coordinator.group.GroupMetadataManager", f"broker-{broker}.log")


def worker_line(at: int, name: str, message: str, *, source: str | None = None, client: str | None = None) -> Line:
    """A line of a Connect worker's own log."""
    logger = "WorkerCoordinator" if "group in generation" in message else "DistributedHerder"
    text = f"[Worker clientId={client or name}, groupId={GROUP}] {message}"
    return _line(at, text, f"org.apache.kafka.connect.runtime.distributed.{logger}", source or f"{name}.log")


def synced_line(at: int, name: str, number: int, **where: str) -> Line:
    printed = f"Generation{{generationId={number}, memberId='{member_id(name)}', protocol='sessioned'}}"
    return worker_line(at, name, f"Successfully synced group in generation {printed}", **where)


def _line(at: int, message: str, logger: str, source: str) -> Line:
    printed = datetime.fromtimestamp((START + at) / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
    found = parse_line(f"[{printed}] INFO {message} ({logger})", layout("default"), ZoneInfo("UTC"))
    assert isinstance(found, ParsedEvent), message
    event = found._asdict() | {"source_id": source, "line_no": at}
    return event | {"event_at": round(found.event_at.timestamp() * 1000)}


SPACING = 1_000
"""Log offsets from one group record to the next."""


def history(
    records: Sequence[Record],
    lines: Sequence[Line] = (),
    commits: Sequence[Commit] = (),
    committers: Mapping[int, str] | None = None,
) -> History:
    rows = [
        {
            "log_epoch": 0,
            "source_partition": 3,
            "source_offset": offset * SPACING,
            "record_at": record["at"],
            "record_kind": "GroupMetadata",
            "member_id": None,
            "is_tombstone": record["value"] is None,
            "body": {"key": {"group": GROUP}, "value": record["value"]},
        }
        for offset, record in enumerate(records)
    ]
    return History.of("kafka", GROUP, rows, _runs(records, commits, committers or {}), lines)


def _runs(records: Sequence[Record], commits: Sequence[Commit], committers: Mapping[int, str]) -> list[dict[str, Any]]:
    """Return one run per commit, after the last group record that is not newer than it; `committers` by partition."""
    out = []
    for number, (at, partition, committed) in enumerate(commits, 1):
        before = max((n for n, record in enumerate(records) if record["at"] <= START + at), default=0)
        run = {"log_epoch": 0, "topic": "orders", "partition": partition, "is_tombstone": False, "topic_id": None}
        ends = {"offset": before * SPACING + number, "commit_at": START + at, "committed_offset": committed}
        named = {f"{end}_{name}": value for end in ("first", "last") for name, value in ends.items()}
        out.append(run | named | {"committer_id": committers.get(partition)})
    return out


def rows(
    records: Sequence[Record],
    lines: Sequence[Line] = (),
    commits: Sequence[Commit] = (),
    committers: Mapping[int, str] | None = None,
) -> SilverRows:
    return silver_rows(history(records, lines, commits, committers), 10_000)
