"""Log lines to `coordinator_events`. Only Kafka's own loggers and wordings are accepted."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pipelines.controller_messages import read_controller
from pipelines.coordinator_messages import read_message
from pipelines.log_layouts import instant, layout
from schemas.controller_log import PREFIXES
from schemas.coordinator_log import WORKER_LOGGERS
from schemas.states import QuarantineReason

if TYPE_CHECKING:
    from datetime import datetime
    from zoneinfo import ZoneInfo

    from pipelines.log_layouts import Layout

LONGEST_LINE = 131_072
"""Maximum length in characters of a parsed line. A line contains up to three ids of at most 32,767 bytes each."""

WORKER_MARK = "[Worker clientId="
WORKER_LAYOUTS = (layout("default"), layout("connect"))
"""The layouts of Connect workers. They apply to worker lines even if the settings name another layout for the brokers
that share the source.
"""


WORDS = ("oordinator", "GroupMetadata", "DistributedHerder", "eplica")
"""A line that contains none of these texts is ignored."""


class ParsedEvent(NamedTuple):
    """A row of `coordinator_events` without the columns that locate the line in its source."""

    event_at: datetime
    event_precision_ms: int
    event_kind: str
    broker_id: int | None = None
    source_partition: int | None = None
    group_id: str | None = None
    generation_id: int | None = None
    member_id: str | None = None
    client_id: str | None = None
    group_instance_id: str | None = None
    replaced_member_id: str | None = None
    leader_member_id: str | None = None
    member_ids: list[str] | None = None
    member_count: int | None = None
    static_member_count: int | None = None
    trigger: str | None = None
    reason: str | None = None
    client_reason: str | None = None
    duration_ms: int | None = None
    topic: str | None = None
    partition: int | None = None
    topic_id: str | None = None
    partition_epoch: int | None = None
    replicas: list[int] | None = None
    replicas_before: list[int] | None = None
    adding: list[int] | None = None
    removing: list[int] | None = None
    isr: list[int] | None = None
    leader: int | None = None
    raw: str = ""


class Unreadable(NamedTuple):
    """A line that goes to `quarantine`, with the reason."""

    reason: QuarantineReason
    detail: str


def parse_line(line: str, layout: Layout, zone: ZoneInfo) -> ParsedEvent | Unreadable | None:
    """Return the event that a line describes, or None for a line that is not a lifecycle line.

    In a lifecycle line, the logger belongs to a group coordinator, a Connect worker or a controller, the prefix is the
    one that this program prints, and the whole message matches one of Kafka's wordings. A lifecycle line without a
    valid time is `Unreadable`. A line that may be a lifecycle line but is too long is `Unreadable` too. A worker's line
    may also have the layout that Kafka ships for workers.
    """
    if not any(word in line for word in WORDS):
        return None
    if len(line) > LONGEST_LINE:
        return Unreadable(
            QuarantineReason.OVERSIZED, f"the line has {len(line):,} characters; the limit is {LONGEST_LINE:,}"
        )
    return _parsed(line, layout, zone)


def _parsed(line: str, layout: Layout, zone: ZoneInfo) -> ParsedEvent | Unreadable | None:
    used = [layout, *WORKER_LAYOUTS] if WORKER_MARK in line else [layout]
    parts = next((found for known in used if (found := known.pattern.match(line))), None)
    if parts is None:
        return None
    logger = layout.loggers.get(parts["logger"]) or WORKER_LOGGERS.get(parts["logger"])
    if logger is None:
        return None
    if logger in PREFIXES:
        columns = read_controller(logger, parts["message"])
    else:
        columns = read_message(logger, parts["logger"], parts["message"])
    if columns is None:
        return None
    at = instant(parts["at"].strip(), zone)
    if at is None:
        return Unreadable(QuarantineReason.INVALID_TIMESTAMP, f"{parts['at'][:40]!r} is not a valid time in {zone.key}")
    return ParsedEvent(event_at=at[0], event_precision_ms=at[1], raw=line, **columns)
