"""Pushes of consumers in messages of the events topic: OTLP/JSON as the OpenTelemetry Collector's Kafka exporter writes
it, with any number of clients in a message.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pipelines.client_metrics.labels import Labels, labels
from pipelines.client_metrics.metrics import PREFIX, SECOND_MS, MetricKind, MetricPoint, points
from pipelines.coordinator_events import Unreadable
from pipelines.decoding.record_times import utc_datetime
from pipelines.otlp.values import attributes, listed
from schemas.json_depth import DEEPEST_JSON, is_too_deep
from schemas.states import QuarantineReason

Row = dict[str, Any]

KIND = "client_metrics"
"""The kind of these messages in the permissions of a source, and in `admin.jsonl` of a capture."""

HINT = b'"resourceMetrics"'
PROTOBUF_HINT = PREFIX.encode()
FIRST_FIELD = b"\n"
"""First byte of an OTLP request with metrics as protobuf: the tag of its field 1, a message."""


def may_be_client_metrics(value: bytes | None) -> bool:
    """Return whether bytes may be a request of OTLP with metrics, by a cheap check that excludes almost all others."""
    return value is not None and (HINT in value or (value[:1] == FIRST_FIELD and PROTOBUF_HINT in value))


def pushes(value: bytes) -> list[Row] | Unreadable | None:
    """Return what the consumers in a message measured; None if the message is no request of OTLP with metrics.

    Each row has the columns of `client_metrics` from `group_id` to `commit_ms_max`, without `received_at`. Metrics of
    clients without a group, and all metrics that are not kept, give no row. Rows are in the order of the message.
    """
    if value[:1] == FIRST_FIELD and PROTOBUF_HINT in value and HINT not in value:
        why = "metrics of OTLP as protobuf: set the encoding of the exporter to otlp_json"
        return Unreadable(QuarantineReason.INVALID_ENVELOPE, why)
    try:
        content = json.loads(value.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or not isinstance(content.get("resourceMetrics"), list):
        return None
    if is_too_deep(content):
        why = f"lists and objects are nested more than {DEEPEST_JSON} levels deep"
        return Unreadable(QuarantineReason.INVALID_ENVELOPE, why)
    of_client: dict[Labels, list[MetricPoint]] = {}
    for whose, point in _points(content):
        if whose.group_id is not None:
            of_client.setdefault(whose, []).append(point)
    return [_row(whose, found) for whose, found in of_client.items()]


def _points(content: Mapping[str, Any]) -> Iterator[tuple[Labels, MetricPoint]]:
    for resource in listed(content, "resourceMetrics"):
        named = attributes(listed(resource.get("resource"), "attributes")) if isinstance(resource, dict) else {}
        for scope in listed(resource, "scopeMetrics"):
            for metric in listed(scope, "metrics"):
                for point in points(metric):
                    yield labels(named, attributes(point.attributes)), point


def _row(whose: Labels, found: list[MetricPoint]) -> Row:
    """Return the row of one push. Java takes the time anew for each metric, so the last one counts."""
    row: Row = {**whose._asdict(), "measured_at": utc_datetime(max(point.at_ms for point in found))}
    since = [
        point.from_ms
        for point in found
        if point.kind in (MetricKind.COUNT, MetricKind.SUM) and point.from_ms is not None
    ]
    row["counted_from_at"] = utc_datetime(min(since, default=None))
    for point in sorted(found, key=lambda point: (point.at_ms, point.value)):
        match point.kind:
            case MetricKind.AGO:
                at_ms = point.at_ms - round(point.value) * SECOND_MS
                row[f"{point.column}_earliest"] = utc_datetime(at_ms - SECOND_MS)
                row[f"{point.column}_latest"] = utc_datetime(at_ms)
            case MetricKind.INT | MetricKind.COUNT:
                row[point.column] = round(point.value)
            case MetricKind.SUM | MetricKind.NUMBER:
                row[point.column] = point.value
    return row
