"""The traces that rebalances link to: one for each deploy of a group, and one for each storm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.telemetry.span import TraceSpan, attributes, nanoseconds, span_id, trace_id

Row = Mapping[str, Any]


def deploy_link(row: Row) -> tuple[int, int]:
    """Return the trace id and the span id of a row of `deploys`."""
    key = ("deploy", row["cluster"], row["group_id"], row["started_at"])
    return trace_id(*key), span_id(*key)


def storm_link(row: Row) -> tuple[int, int]:
    """Return the trace id and the span id of a row of `storms`."""
    key = ("storm", row["cluster"], row["storm_id"])
    return trace_id(*key), span_id(*key)


def deploy_span(row: Row) -> TraceSpan:
    """Return the span of a deploy: a point in time, its mark or its first rebalance, because its end may change."""
    trace, span = deploy_link(row)
    return TraceSpan(
        name="deploy",
        trace_id=trace,
        span_id=span,
        start_ns=nanoseconds(row["started_at"]),
        end_ns=nanoseconds(row["started_at"]),
        attributes=attributes(
            {
                "messaging.system": "kafka",
                "messaging.consumer.group.name": row["group_id"],
                "regroup.cluster": row["cluster"],
                "regroup.deploy.text": row["text"],
                "regroup.evidence": row["evidence"],
            }
        ),
    )


def storm_span(row: Row) -> TraceSpan:
    """Return the span of a storm that ended, from its first to its last unexplained rebalance."""
    trace, span = storm_link(row)
    return TraceSpan(
        name="storm",
        trace_id=trace,
        span_id=span,
        start_ns=nanoseconds(row["started_at"]),
        end_ns=nanoseconds(max(row["started_at"], row["ended_at"])),
        attributes=attributes(
            {
                "messaging.system": "kafka",
                "regroup.cluster": row["cluster"],
                "regroup.storm.id": row["storm_id"],
                "regroup.storm.scope": row["scope"],
                "regroup.storm.groups": row["groups"],
                "regroup.storm.rebalances": row["rebalances"],
                "regroup.storm.suspected_cause": row["suspected_cause"],
                "regroup.storm.lost_resource_seconds": row["lost_resource_seconds"],
                "regroup.evidence": row["evidence"],
            }
        ),
    )
