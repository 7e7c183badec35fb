"""The trace of a completed rebalance: a root span, its phases, and the wait of each member.

Attributes `messaging.*` are those of the semantic conventions of OpenTelemetry 1.44 for messaging, which are in
development. Attributes that the conventions do not name begin with `regroup.`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipelines.telemetry.span import TraceSpan, Value, attributes, nanoseconds, span_id, trace_id

MOST_MEMBERS = 200
"""Members of one rebalance that get a span. The root span has the number of all members."""

Row = Mapping[str, Any]
Link = tuple[int, int]


def rebalance_trace_id(row: Row) -> int:
    """Return the trace id of a row of `generations`. Late log lines do not change it, unlike the start."""
    return trace_id("rebalance", *_key(row))


def rebalance_spans(
    row: Row, members: Sequence[Row], resumed: Row | None = None, links: Sequence[Link] = ()
) -> list[TraceSpan]:
    """Return the spans of a completed rebalance, the root first. All others are within the time of the root.

    Args:
        row: the row of `generations`, timestamps in milliseconds; `completed_at` is not NULL.
        members: its rows of `generation_members`.
        resumed: sums over the rows of `stalls` that ended with this generation: `stops`, `stopped_ms`,
            `resumed_at_earliest`, `resumed_at_latest`; None if it ended none.
        links: trace and span ids of the deploys and storms that the rebalance belongs to.
    """
    known = row["prepared_at"]
    # The start is observed, or at its upper bound, so that the span never covers time in which no rebalance may have
    # been in progress.
    start = min(row["prepared_at_latest"] if known is None else known, row["joined_at"], row["completed_at"])
    phases = _phases(row, start, resumed)
    end = max([row["completed_at"], row["last_completed_at"] or 0, *(until for _, _, until, _ in phases)])
    trace = rebalance_trace_id(row)
    root = span_id("rebalance", *_key(row))
    spans = [
        TraceSpan(
            name="rebalance",
            trace_id=trace,
            span_id=root,
            start_ns=nanoseconds(start),
            end_ns=nanoseconds(end),
            attributes=_of_rebalance(row, resumed, min(len(members), MOST_MEMBERS)),
            links=tuple(links),
        )
    ]
    for name, began, ended, more in phases:
        spans.append(
            TraceSpan(
                name=name,
                trace_id=trace,
                span_id=span_id(name, *_key(row)),
                parent_id=root,
                start_ns=nanoseconds(began),
                end_ns=nanoseconds(ended),
                attributes=_common(row) | attributes({"regroup.evidence": row["evidence"], **more}),
            )
        )
    ordered = sorted(members, key=lambda member: member["member_id"])
    return [*spans, *_of_members(row, ordered[:MOST_MEMBERS], trace, root, (start, end))]


def _key(row: Row) -> tuple[object, ...]:
    return row["cluster"], row["group_id"], row["incarnation"], row["generation_id"], row["joined_at"]


def _phases(row: Row, start: int, resumed: Row | None) -> list[tuple[str, int, int, dict[str, Value | None]]]:
    """Return name, start, end and attributes of the phases whose times the tables have."""
    joined, completed = row["joined_at"], row["completed_at"]
    found: list[tuple[str, int, int, dict[str, Value | None]]] = [("join", start, max(start, joined), {})]
    last = max(start, joined)
    if row["synced_at"] is not None:
        found.append(("sync", last, max(last, row["synced_at"]), {}))
        last = max(last, row["synced_at"])
    if completed > last:
        # Only if the coordinator assigns: members reach the new epoch after the assignment was stored.
        found.append(("reconcile", last, completed, {}))
        last = completed
    if resumed is not None and resumed["resumed_at_latest"] is not None:
        until = max(last, resumed["resumed_at_latest"])
        bounds = {
            "regroup.resumed_at.earliest_ms": resumed["resumed_at_earliest"],
            "regroup.resumed_at.latest_ms": resumed["resumed_at_latest"],
            "regroup.evidence": "bounded",
        }
        found.append(("resume", last, until, bounds))
    return found


def _common(row: Row) -> dict[str, Value]:
    return attributes(
        {
            "messaging.system": "kafka",
            "messaging.consumer.group.name": row["group_id"],
            "regroup.cluster": row["cluster"],
            "regroup.generation.id": row["generation_id"],
        }
    )


def _of_rebalance(row: Row, resumed: Row | None, sent: int) -> dict[str, Value]:
    unsent = max(0, row["member_count"] - sent)
    return _common(row) | attributes(
        {
            "regroup.incarnation": row["incarnation"],
            "regroup.outcome": row["outcome"],
            "regroup.group.type": row["group_type"],
            "regroup.group.protocol": row["group_protocol"],
            "regroup.assignor": row["assignor"],
            "regroup.rebalance.mode": row["rebalance_mode"],
            "regroup.trigger": row["trigger"],
            "regroup.trigger.evidence": row["trigger_evidence"],
            "regroup.members": row["member_count"],
            "regroup.members.without_span": unsent or None,
            "regroup.resources.assigned": row["resources_assigned"],
            "regroup.resources.moved": row["resources_moved"],
            "regroup.evidence": row["evidence"],
            "regroup.started_at.evidence": "bounded" if row["prepared_at"] is None else "observed",
            "regroup.started_at.earliest_ms": row["prepared_at_earliest"],
            "regroup.started_at.latest_ms": row["prepared_at_latest"],
            "regroup.completed_at_ms": row["completed_at"],
            "regroup.folded_count": row["folded_count"],
            "regroup.stops": None if resumed is None else resumed["stops"],
            "regroup.stopped_ms": None if resumed is None else resumed["stopped_ms"],
        }
    )


def _of_members(
    row: Row, members: Sequence[Row], trace: int, root: int, within: tuple[int, int]
) -> Iterator[TraceSpan]:
    """Yield a span for each member: from its rejoin to its assignment, as far as both are within the rebalance."""
    first, last = within
    for member in members:
        rejoined, had = member["rejoined_at_latest"], member["reconciled_at"] or row["synced_at"] or row["joined_at"]
        start = min(max(first, first if rejoined is None else rejoined), last)
        yield TraceSpan(
            name="member",
            trace_id=trace,
            span_id=span_id("member", *_key(row), member["member_id"]),
            parent_id=root,
            start_ns=nanoseconds(start),
            end_ns=nanoseconds(min(max(start, had), last)),
            attributes=_common(row)
            | attributes(
                {
                    "messaging.client.id": member["client_id"],
                    "regroup.member.id": member["member_id"],
                    "regroup.member.instance_id": member["group_instance_id"],
                    "regroup.member.is_leader": member["is_leader"],
                    "regroup.member.rejoined_at.earliest_ms": member["rejoined_at_earliest"],
                    "regroup.member.rejoined_at.latest_ms": rejoined,
                    "regroup.evidence": "bounded" if rejoined is not None else "inferred",
                }
            ),
        )
