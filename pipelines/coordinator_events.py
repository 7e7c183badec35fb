"""Log lines to `coordinator_events`. Only Kafka's own loggers and wordings are accepted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from pipelines.controller_messages import read_controller
from pipelines.coordinator_messages import read_message
from pipelines.layout_detection import candidates
from pipelines.log_layouts import parsed_time
from schemas.controller_log import PREFIXES
from schemas.coordinator_log import WORKER_LOGGERS
from schemas.states import QuarantineReason
from schemas.unread_lines import UNREAD_REASONS

if TYPE_CHECKING:
    from datetime import datetime
    from zoneinfo import ZoneInfo

    from pipelines.log_layouts import Layout

LONGEST_LINE = 131_072
"""Maximum length in characters of a parsed line. A line contains up to three ids of at most 32,767 bytes each."""

WORDS = ("oordinator", "GroupMetadata", "DistributedHerder", "eplica", "] ISR updated ", "Expanding ISR ")
"""A line that contains none of these texts is ignored."""
_FIRST, _SECOND, _THIRD, _FOURTH, _FIFTH, _SIXTH = WORDS

_PROGRAMS = ("[GroupCoordinator ", "[GroupMetadataManager ", "[Worker clientId=", "[Controller ", "[QuorumController ")
"""Beginnings of messages. A line whose layout gives such a message has no other layout."""

_WORKERS = frozenset(WORKER_LOGGERS.values())
# Connect's log4j pattern prints the connector's context in front of the worker's own prefix.
_CONNECTOR_CONTEXT = re.compile(r"\[[^|]{1,200}\|(?:worker|task-\d{1,9})(?:\|\w{1,20})?\] (?=\[Worker clientId=)")


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


UNREAD = frozenset(UNREAD_REASONS)
"""Reasons of lines that are no known lifecycle lines, although they may be lifecycle lines."""
_NO_LAYOUT = Unreadable(
    QuarantineReason.UNKNOWN_LAYOUT, "no layout of the settings and no known layout splits this line"
)


def parse_line(line: str, layout: Layout, zone: ZoneInfo, at: str | None = None) -> ParsedEvent | Unreadable | None:
    """Return the event that a line describes, or None for a line that is not a lifecycle line.

    In a lifecycle line, the logger belongs to a group coordinator, a Connect worker or a controller, the prefix is the
    one that this program prints, and the whole message matches one of Kafka's wordings. A lifecycle line without a
    valid time is `Unreadable`. A line that may be a lifecycle line but is too long is `Unreadable` too. If `layout`
    does not split the line, the known layouts are tried. `at` is the time of a line without a time of its own.
    """
    found = examined(line, layout, zone, at)
    return None if isinstance(found, Unreadable) and found.reason in UNREAD else found


def examined(line: str, layout: Layout, zone: ZoneInfo, at: str | None = None) -> ParsedEvent | Unreadable | None:
    """Return the result of `parse_line`, but `Unreadable` with a reason of `UNREAD` instead of None for some lines.

    `UNKNOWN_LAYOUT`: no layout splits the line. `UNKNOWN_WORDING`: a known logger printed an unknown message.
    """
    # Operators take a third of the time of a loop, and most lines end here.
    if not (_FIRST in line or _SECOND in line or _THIRD in line or _FOURTH in line) and not (
        _FIFTH in line or _SIXTH in line
    ):
        return None
    if len(line) > LONGEST_LINE:
        return Unreadable(
            QuarantineReason.OVERSIZED, f"the line has {len(line):,} characters; the limit is {LONGEST_LINE:,}"
        )
    matched = layout.pattern.match(line)
    if matched is None:
        return _detected(line, zone, at)
    found = _event(line, layout, matched, zone)
    if isinstance(found, Unreadable) and found.reason == QuarantineReason.INVALID_TIMESTAMP:
        other = _detected(line, zone, at)
        return other if isinstance(other, ParsedEvent) else found
    return found


def _detected(line: str, zone: ZoneInfo, at: str | None) -> ParsedEvent | Unreadable | None:
    """Return the result of the first known layout that gives an event, otherwise of the last one that matches."""
    found: ParsedEvent | Unreadable | None = _NO_LAYOUT
    for known in candidates(line, is_timed=at is not None):
        parts = known.pattern.match(line)
        if parts is not None:
            found = _event(line, known, parts, zone, at)
            if isinstance(found, ParsedEvent) or parts["message"].startswith(_PROGRAMS):
                break
    return found


def _event(
    line: str, layout: Layout, parts: re.Match[str], zone: ZoneInfo, at: str | None = None
) -> ParsedEvent | Unreadable | None:
    printed, message = parts["logger"], parts["message"]
    logger = layout.loggers.get(printed)
    if logger is None:
        return None
    if logger in PREFIXES:
        columns = read_controller(logger, message)
    else:
        if logger in _WORKERS and (context := _CONNECTOR_CONTEXT.match(message)):
            message = message[context.end() :]
        columns = read_message(logger, printed, message)
    if columns is None:
        return Unreadable(QuarantineReason.UNKNOWN_WORDING, message)
    text = parts["at"] or at or ""
    when = parsed_time(text.strip(), zone)
    if when is None:
        return Unreadable(QuarantineReason.INVALID_TIMESTAMP, f"{text[:40]!r} is not a valid time in {zone.key}")
    return ParsedEvent(event_at=when[0], event_precision_ms=when[1], raw=line, **columns)
