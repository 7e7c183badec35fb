"""`regroup capture`: write a live cluster's offsets topic and polls to a capture folder, to attach or to replay."""

from __future__ import annotations

import heapq
import json
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import KafkaException

from jobs.captures.capture_store import new_capture
from jobs.config.errors import UserError
from jobs.config.terminal import say
from jobs.kafka.admin_poll import MOVING_S, Poller
from jobs.kafka.kafka_client import RESPONSE_WITHIN_S, admin, topic_ends, unreachable
from jobs.kafka.kafka_read import Range, RangeReader
from pipelines.client_metrics.captured import captured
from pipelines.client_metrics.messages import may_be_client_metrics, pushes
from pipelines.decoding.record_times import utc_datetime
from pipelines.event_sources import Claim, may_send
from pipelines.kubernetes.messages import facts_of_message, may_be_kubernetes
from pipelines.log_envelopes import Observation, unwrap
from schemas.records import OFFSETS_TOPIC

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from jobs.config.clusters import Cluster
    from jobs.config.settings import Settings
    from jobs.kafka.kafka_client import TopicEnds
    from pipelines.bronze_batch import Records
    from pipelines.event_sources import EventSource

SCHEMA = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp_ms", pa.int64()),
        ("timestamp_type", pa.int32()),
        ("key", pa.binary()),
        ("value", pa.binary()),
    ]
)
NO_TIMESTAMP, CREATE_TIME = -1, 0


def run(settings: Settings, args: argparse.Namespace) -> int:
    """Poll for `--duration` seconds (Ctrl-C ends it early), then write all records of the topic.

    Raises:
        UserError: the folder or address is in use, the cluster does not respond, the topic does not exist, or the
            object store cannot be written.
    """
    cluster = settings.only(args.cluster)
    if not args.duration >= 0:  # Also true for NaN
        raise UserError(f"The --duration must be at least 0 seconds, but is {args.duration}.")
    with new_capture(args.out) as folder:
        written = _record(cluster, folder, args.duration)
    say(f"{written} in {args.out}")
    return 0


def _record(cluster: Cluster, folder: Path, duration_s: float) -> str:
    """Write the files of the capture, and return what they have."""
    started_ms = _now_ms()
    _ends(cluster)
    say(f"recording {cluster.name} for {duration_s:.0f} s")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        _poll(cluster, folder / "admin.jsonl", duration_s)
    except KeyboardInterrupt:
        say("ended early")
    marks = _add_marks(cluster, folder / "admin.jsonl")
    ends = _ends(cluster)
    records, gaps = _write(cluster, ends, folder / "offsets.parquet")
    meta = _meta(cluster, ends, started_ms=started_ms, records=records, complete=not gaps)
    (folder / "meta.json").write_text(json.dumps(meta, indent=1), encoding="utf-8")
    return f"{records} records and {marks} marks"


def _poll(cluster: Cluster, path: Path, duration_s: float) -> None:
    """Write the observations of the Admin API to `path` for `duration_s` seconds.

    The interval is always that of a running reassignment, so that short reassignments are seen too.
    """
    poller = Poller(cluster.client())
    until = time.monotonic() + duration_s
    try:
        with path.open("w", encoding="utf-8") as out:
            while time.monotonic() < until:
                began = time.monotonic()
                out.writelines(json.dumps(seen, separators=(",", ":")) + "\n" for seen in poller.poll())
                time.sleep(max(0.0, min(began + MOVING_S, until) - time.monotonic()))
    finally:
        poller.close()


def _add_marks(cluster: Cluster, path: Path) -> int:
    """Merge the marks of the events topic into the polls, in order of time, and return their number.

    If the topic is missing or cannot be read, report that and return 0.
    """
    try:
        marks = sorted(_described(cluster))
    except UserError as error:
        say(f"continuing without marks: {error}")
        return 0
    if marks:
        merged = path.with_suffix(".new")
        with path.open(encoding="utf-8") as polled, merged.open("w", encoding="utf-8") as out:
            seen = ((json.loads(line)["observed_at_ms"], line) for line in polled)
            out.writelines(line for _, line in heapq.merge(seen, marks))
        merged.replace(path)
    return len(marks)


def _described(cluster: Cluster) -> Iterator[tuple[int, str]]:
    for topic in cluster.event_topics():
        yield from _marks_of(topic, cluster)


def _marks_of(topic: str, cluster: Cluster) -> Iterator[tuple[int, str]]:
    options = cluster.client()
    sources = [source for source in cluster.event_sources if source.topic == topic]
    try:
        ends = topic_ends(admin(options), topic)
    except KafkaException as error:
        raise unreachable(options, error.args[0], topic) from None
    for partition, (low, high) in sorted(ends.ends.items()) if ends else ():
        if low < high:
            span = Range(partition=partition, log_epoch=0, start=low, end=high)
            for records in RangeReader(options, topic, [span], has_headers=bool(sources)):
                yield from _marks(records, sources)


def _marks(records: Records, sources: Sequence[EventSource]) -> Iterator[tuple[int, str]]:
    """Yield the timestamp of each mark, change of a pod and push of a consumer, in ms, and its JSON line."""
    for number, (value, at) in enumerate(zip(records.value, records.timestamp_ms.tolist(), strict=True)):
        headers = records.headers[number] if records.headers else ()
        if value is not None and may_be_client_metrics(value) and may_send(Claim.CLIENT_METRICS, sources, headers):
            found = pushes(value)
            for row in found if isinstance(found, list) else ():
                body = captured(row | {"received_at": utc_datetime(at)}) | {"observed_at_ms": at}
                yield at, json.dumps(body, separators=(",", ":")) + "\n"
        if may_be_kubernetes(value) and may_send(Claim.KUBERNETES, sources, headers):
            for fact in facts_of_message(value):
                yield at, json.dumps(fact.body | {"observed_at_ms": at}, separators=(",", ":")) + "\n"
        message = unwrap(value) if value is not None and b'"mark"' in value else None
        if not isinstance(message, Observation) or message.kind != "mark":
            continue
        if may_send(Claim.MARK, sources, headers):
            body = {**message.body, "observed_at_ms": at, "source": str(message.body.get("source", "mark"))}
            yield at, json.dumps(body, separators=(",", ":")) + "\n"


def _ends(cluster: Cluster) -> TopicEnds:
    options = cluster.client()
    try:
        ends = topic_ends(admin(options), OFFSETS_TOPIC)
    except KafkaException as error:
        raise unreachable(options, error.args[0]) from None
    if ends is None:
        raise UserError(
            f"The cluster {cluster.name} has no topic {OFFSETS_TOPIC} yet: start a consumer group, then capture."
        )
    return ends


def _write(cluster: Cluster, ends: TopicEnds, path: Path) -> tuple[int, int]:
    """Write all records in order of partition and offset; return the number of records and of unreadable spans."""
    records = gaps = 0
    with ExitStack() as stack:
        writer = stack.enter_context(pq.ParquetWriter(path, SCHEMA, compression="zstd"))
        for partition, (low, high) in sorted(ends.ends.items()):
            if low == high:
                continue
            span = Range(partition=partition, log_epoch=0, start=low, end=high)
            reader = RangeReader(cluster.client(), OFFSETS_TOPIC, [span])
            for piece in reader:
                writer.write_table(_table(piece))
                records += len(piece.key)
            gaps += len(reader.gaps)
    return records, gaps


def _table(piece: Records) -> pa.Table:
    # Both timestamp types mean the broker's clock in this topic, because the coordinator writes it.
    kinds = [NO_TIMESTAMP if at < 0 else CREATE_TIME for at in piece.timestamp_ms.tolist()]
    columns = (piece.partition, piece.offset, piece.timestamp_ms, kinds, piece.key, piece.value)
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], SCHEMA)


def _meta(cluster: Cluster, ends: TopicEnds, *, started_ms: int, records: int, complete: bool) -> dict[str, Any]:
    options = cluster.client()
    try:
        found = admin(options).list_topics(timeout=RESPONSE_WITHIN_S)
    except KafkaException as error:
        raise unreachable(options, error.args[0]) from None
    topics = [
        {"topic": name, "partitions": len(topic.partitions)}
        for name, topic in sorted(found.topics.items())
        if name != OFFSETS_TOPIC
    ]
    return {
        "format": 1,
        "scenario": cluster.name,
        "kafka_version": None,
        "seed": None,
        "brokers": sorted(found.brokers),
        "log_time_zone": "UTC",
        "log_pattern": "[%d] %p %m (%c)%n",
        "broker_overrides": {},
        "topics": topics,
        "groups": {},
        "started_ms": started_ms,
        "captured_ms": _now_ms(),
        "offsets_topic": {
            "partitions": len(ends.ends),
            "records": records,
            "complete": complete,
            "high_watermarks": {str(p): high for p, (_, high) in sorted(ends.ends.items())},
            "low_watermarks": {str(p): low for p, (low, _) in sorted(ends.ends.items())},
        },
    }


def _now_ms() -> int:
    return int(time.time() * 1000)
