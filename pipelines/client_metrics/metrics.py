"""The metrics of consumers that are kept, and their values.

Sources: KIP-714 and Kafka's `TelemetryMetricNamingConvention` for the names; `KafkaConsumerMetrics`,
`ConsumerRebalanceMetricsManager`, `RebalanceCallbackMetricsManager`, `OffsetCommitMetricsManager` and librdkafka's
`rdkafka_telemetry_encode.h` for the values. Brokers ask for sums as the difference to the push before
(`ClientMetricsManager`), but a collector may have added them up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, NamedTuple

from pipelines.otlp.values import listed, milliseconds

PREFIX = "org.apache.kafka.consumer."
SHARE_PREFIX = PREFIX + "share."
"""Prefix of the same metrics for a member of a share group (KIP-932)."""

SECOND_MS = 1_000
LARGEST_INT = 2**31 - 1
LARGEST = 2.0**53
"""Larger numbers are not counts or milliseconds, and a double does not hold them exactly."""


class MetricKind(Enum):
    """What a metric's value is."""

    INT = "a number of things now"
    COUNT = "a number of things since the start of the data point"
    SUM = "milliseconds since the start of the data point"
    NUMBER = "milliseconds or a fraction, of a window that the client chooses"
    AGO = "whole seconds since something happened"


METRICS: Mapping[str, tuple[str, MetricKind]] = {
    "coordinator.assigned.partitions": ("assigned_partitions", MetricKind.INT),
    "coordinator.rebalance.total": ("rebalances", MetricKind.COUNT),
    "coordinator.failed.rebalance.total": ("failed_rebalances", MetricKind.COUNT),
    "coordinator.rebalance.latency.total": ("rebalance_ms", MetricKind.SUM),
    "coordinator.rebalance.latency.avg": ("rebalance_ms_avg", MetricKind.NUMBER),
    "coordinator.rebalance.latency.max": ("rebalance_ms_max", MetricKind.NUMBER),
    "coordinator.last.rebalance.seconds.ago": ("last_rebalance_at", MetricKind.AGO),
    "last.poll.seconds.ago": ("last_poll_at", MetricKind.AGO),
    "time.between.poll.avg": ("poll_gap_ms_avg", MetricKind.NUMBER),
    "time.between.poll.max": ("poll_gap_ms_max", MetricKind.NUMBER),
    "poll.idle.ratio.avg": ("poll_idle_ratio", MetricKind.NUMBER),
    "coordinator.partition.assigned.latency.max": ("assigned_callback_ms_max", MetricKind.NUMBER),
    "coordinator.partition.revoked.latency.max": ("revoked_callback_ms_max", MetricKind.NUMBER),
    "coordinator.partition.lost.latency.max": ("lost_callback_ms_max", MetricKind.NUMBER),
    "coordinator.commit.latency.avg": ("commit_ms_avg", MetricKind.NUMBER),
    "coordinator.commit.latency.max": ("commit_ms_max", MetricKind.NUMBER),
}
"""Column and kind by the rest of a metric's name after the prefix."""


class MetricPoint(NamedTuple):
    """A data point of a metric that is kept. Times are in milliseconds; `from_ms` is None if the sum has no start."""

    column: str
    kind: MetricKind
    at_ms: int
    from_ms: int | None
    value: float
    attributes: list[Any]


def is_kept(name: str) -> bool:
    """Return whether metrics of this name are kept."""
    return _known(name) is not None


def points(metric: Any) -> Iterator[MetricPoint]:
    """Yield the data points of an OTLP/JSON metric that are kept: those with a time and a value that is possible.

    Java sends NaN for an average of nothing, and -1 if something has not happened yet.
    """
    known = _known(metric.get("name")) if isinstance(metric, dict) else None
    if known is None:
        return
    column, kind = known
    for point in listed(metric.get("sum") or metric.get("gauge"), "dataPoints"):
        if not isinstance(point, dict):
            continue
        at, value = milliseconds(point.get("timeUnixNano")), _number(point)
        if at is not None and value is not None and 0 <= value <= _largest(kind):
            yield MetricPoint(
                column, kind, at, milliseconds(point.get("startTimeUnixNano")), value, listed(point, "attributes")
            )


def _known(name: Any) -> tuple[str, MetricKind] | None:
    if not isinstance(name, str) or not name.startswith(PREFIX):
        return None
    return METRICS.get(name.removeprefix(SHARE_PREFIX)) or METRICS.get(name.removeprefix(PREFIX))


def _largest(kind: MetricKind) -> float:
    return LARGEST_INT if kind is MetricKind.INT else LARGEST


def _number(point: Mapping[str, Any]) -> float | None:
    """Return the value of a data point. OTLP/JSON writes 64-bit integers, and numbers that JSON lacks, as text."""
    found = point.get("asDouble", point.get("asInt"))
    try:
        value = float(found) if isinstance(found, int | float | str) and not isinstance(found, bool) else math.nan
    except (ValueError, OverflowError):
        return None
    return value if math.isfinite(value) else None
