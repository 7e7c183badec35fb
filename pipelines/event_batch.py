"""Messages of the events topic to bronze rows: `coordinator_events`, `admin_observations`, `client_metrics` and
`quarantine`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pipelines.arrow_types import row_type
from pipelines.bronze_batch import count
from pipelines.client_metrics.messages import may_be_client_metrics, pushes
from pipelines.coordinator_events import UNREAD, ParsedEvent, Unreadable
from pipelines.decoding.record_times import utc_datetime
from pipelines.event_sources import Claim, EventSource, claim_of_line, source_of
from pipelines.kubernetes.messages import KubernetesContent, kubernetes, may_be_kubernetes
from pipelines.kubernetes.observation_rows import UNKEPT, observation_rows
from pipelines.line_reading import read_line
from pipelines.log_envelopes import LARGEST_MESSAGE, Observation, unwrap
from pipelines.log_layouts import known_layout, known_zone, layout, zone
from pipelines.marks import Mark, mark
from pipelines.unread_lines import KEPT as UNREAD_KEPT
from pipelines.unread_lines import sampled
from schemas.bronze import ADMIN_OBSERVATIONS, CLIENT_METRICS, COORDINATOR_EVENTS, QUARANTINE
from schemas.states import QuarantineReason

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pipelines.bronze_batch import Records, Row
    from pipelines.coverage import Span
    from pipelines.log_envelopes import LogLine

TABLES = (COORDINATOR_EVENTS, ADMIN_OBSERVATIONS, CLIENT_METRICS, QUARANTINE)
_layout, _zone = lru_cache(layout), lru_cache(zone)
_known_layout, _known_zone = lru_cache(known_layout), lru_cache(known_zone)
KEPT_BYTES = 65_536
"""Count of bytes that `quarantine` keeps of a key or value that is larger than the limit for a message."""

Kept = list[tuple[str, "Row"]]
"""The rows of one message, each with the name of its table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicReader:
    """A reader for the messages of one topic.

    `layout` and `zone` apply if a message does not name its own. `sources` limits what each source may send; without
    `sources`, every message is accepted. A message that cannot be read is quarantined, and the other messages are read.
    """

    cluster: str
    topic: str
    layout: str
    zone: str
    sources: tuple[EventSource, ...] = ()
    largest: int = LARGEST_MESSAGE

    def __call__(self, records: Records, spans: Mapping[int, Span]) -> dict[str, pa.StructArray]:
        """Return rows by table name and add the counts to `spans`. A message without any row counts as skipped."""
        kept = _sampled([self._guarded(records, at) for at in range(len(records.key))])
        try:
            arrays = _arrays(kept)
        except Exception:  # noqa: BLE001 - one message has a value that Arrow cannot store: find that message
            kept = [self._storable(rows, records, at) for at, rows in enumerate(kept)]
            arrays = _arrays(kept)
        for partition in (int(records.partition[at]) for at, rows in enumerate(kept) if not rows):
            spans[partition].skipped += 1
        count(spans, records, arrays[QUARANTINE.name].field("source_partition").to_pylist())
        return arrays

    def _guarded(self, records: Records, at: int) -> Kept:
        try:
            return self._rows(records, at)
        except Exception as error:  # noqa: BLE001 - untrusted bytes: an error must not stop the batch
            return [self._failed(error, records, at)]

    def _storable(self, rows: Kept, records: Records, at: int) -> Kept:
        try:
            _arrays([rows])
        except Exception as error:  # noqa: BLE001 - as above
            return [self._failed(error, records, at)]
        return rows

    def _failed(self, error: Exception, records: Records, at: int) -> tuple[str, Row]:
        return self._refused(Unreadable(QuarantineReason.READER_FAILED, type(error).__name__), records, at)

    def _rows(self, records: Records, at: int) -> Kept:
        source = source_of(self.sources, records.headers[at] if records.headers else ())
        if source is None and self.sources:
            why = "no source in the settings sends such messages"
            return [self._refused(Unreadable(QuarantineReason.UNTRUSTED_SOURCE, why), records, at)]
        value = records.value[at]
        pushed = self._pushes(value)
        if pushed is not None:
            return self._pushed(pushed, source, records, at)
        seen = self._seen(value)
        if seen is not None:
            value = None if seen.rest is None else seen.rest.encode("utf-8", "replace")
        content = [] if seen is not None and value is None else unwrap(value, largest=self.largest)
        if isinstance(content, Observation):
            return [self._observation(content, source, records, at)]
        if isinstance(content, Unreadable):
            return [self._refused(content, records, at)]
        rows: Kept = []
        refused: list[Unreadable] = []
        pods = [seen] if seen is not None else []
        for number, line in enumerate(content):
            if (inner := kubernetes(line.line)) is not None:
                pods.append(inner)
                continue
            found = self._event(line, source, records, at, number)
            if isinstance(found, Unreadable):
                refused.append(found)
            elif found is not None:
                rows.append((COORDINATOR_EVENTS.name, found))
        rows += self._pods(pods, source, records, at, refused)
        # Quarantine has one row per message, however many of its lines are unreadable.
        return [*rows, self._first_refused(refused, records, at)] if refused else rows

    def _pushes(self, value: bytes | None) -> list[Row] | Unreadable | None:
        """Return what consumers pushed in a message; None if it is another message, or too large."""
        if value is None or len(value) > self.largest or not may_be_client_metrics(value):
            return None
        return pushes(value)

    def _pushed(self, found: list[Row] | Unreadable, source: EventSource | None, records: Records, at: int) -> Kept:
        if isinstance(found, Unreadable):
            return [self._refused(found, records, at)]
        if found and source is not None and (refusal := source.refusal(Claim.CLIENT_METRICS, None)):
            return [self._refused(Unreadable(QuarantineReason.UNTRUSTED_SOURCE, refusal), records, at)]
        received_at = utc_datetime(int(records.timestamp_ms[at]))
        return [
            (CLIENT_METRICS.name, row | {"received_at": received_at} | self._placed(source, records, at, number))
            for number, row in enumerate(found)
        ]

    def _placed(self, source: EventSource | None, records: Records, at: int, number: int) -> Row:
        """Return the columns that say where the entry of this number in a message was read."""
        position = f"{self.topic}-{records.partition[at]}"
        return {
            "cluster": self.cluster,
            "source_id": f"{position}#{number}" if number else position,
            "line_no": int(records.offset[at]),
            "source_binding": source.binding if source else None,
        }

    def _seen(self, value: bytes | None) -> KubernetesContent | None:
        """Return what a message shows of Kubernetes; None if it is another message, or too large."""
        if value is None or len(value) > self.largest or not may_be_kubernetes(value):
            return None
        return kubernetes(value.decode("utf-8", "replace"))

    def _pods(
        self,
        pods: list[KubernetesContent],
        source: EventSource | None,
        records: Records,
        at: int,
        refused: list[Unreadable],
    ) -> Kept:
        """Return the rows of a message's facts about pods, and add to `refused` why others cannot be used."""
        found = [each for one in pods for each in one.facts]
        if found and source is not None and (refusal := source.refusal(Claim.KUBERNETES, None)):
            refused.append(Unreadable(QuarantineReason.UNTRUSTED_SOURCE, refusal))
            return []
        refused += [why for one in pods for why in one.refused]
        place = f"{records.partition[at]}-{records.offset[at]}"
        rows = observation_rows(found, self.cluster, place)
        return [(ADMIN_OBSERVATIONS.name, row) for row in rows]

    def _first_refused(self, refused: list[Unreadable], records: Records, at: int) -> tuple[str, Row]:
        """Return the row of the first unreadable line. Lines that are only unknown come after all others."""
        why = min(refused, key=lambda each: each.reason in UNREAD)
        table, row = self._refused(why, records, at)
        alike = sum(each.reason == why.reason for each in refused)
        return table, row | {"lines": alike if why.reason in UNREAD else None}

    def _parsed(self, line: LogLine) -> ParsedEvent | Unreadable | None:
        try:
            used = _known_layout(line.layout) if line.layout not in (None, "", self.layout) else _layout(self.layout)
            where = _known_zone(line.zone) if line.zone else _zone(self.zone)
        except ValueError as error:  # the message names an unknown layout or zone
            return Unreadable(QuarantineReason.INVALID_ENVELOPE, str(error)[:200])
        return read_line(line.line, used, where)

    def _event(
        self, line: LogLine, source: EventSource | None, records: Records, at: int, number: int
    ) -> Row | Unreadable | None:
        event = self._parsed(line)
        if not isinstance(event, ParsedEvent):
            return event
        broker_id = line.broker_id if event.broker_id is None else event.broker_id
        if source is not None:
            claim = claim_of_line(event.event_kind)
            broker_id = source.broker_of(claim, broker_id)
            if refusal := source.refusal(claim, broker_id):
                return Unreadable(QuarantineReason.UNTRUSTED_SOURCE, refusal)
        return event._asdict() | self._placed(source, records, at, number) | {"broker_id": broker_id}

    def _observation(self, seen: Observation, source: EventSource | None, records: Records, at: int) -> tuple[str, Row]:
        if source and (refusal := source.refusal(Claim(seen.kind), None)):
            return self._refused(Unreadable(QuarantineReason.UNTRUSTED_SOURCE, refusal), records, at)
        body: dict[str, Any] = seen.body
        received_at = utc_datetime(int(records.timestamp_ms[at]))
        observed_at = utc_datetime(_milliseconds(body.get("at"))) or received_at
        if seen.kind == "mark":
            found = mark(body, received_at)
            if not isinstance(found, Mark):
                return self._refused(found, records, at)
            observed_at = found.marked_at
            body = {name: value for name, value in body.items() if not isinstance(value, dict | list)}
        subject = body.get("group_id") or body.get("topic") or ""
        row = {
            "cluster": self.cluster,
            "observed_at": observed_at or utc_datetime(0),
            "source": str(body.get("source", seen.kind)),
            "kind": seen.kind,
            "subject": f"{subject}#{records.partition[at]}-{records.offset[at]}",
            "body": json.dumps(body, separators=(",", ":")),
        }
        return ADMIN_OBSERVATIONS.name, row

    def _refused(self, why: Unreadable, records: Records, at: int) -> tuple[str, Row]:
        row = records.row(at, self.cluster) | {"source": self.topic, "reason": str(why.reason), "detail": why.detail}
        if may_be_kubernetes(row["raw_value"]):
            row["raw_value"] = None
            row["detail"] += UNKEPT
        for column in ("raw_key", "raw_value"):
            # A compressed message of 1 MB may unpack to 1,000 MB.
            if row[column] is not None and len(row[column]) > self.largest:
                row[column] = row[column][:KEPT_BYTES]
                row["detail"] += f"; the first {KEPT_BYTES:,} bytes of the {column[4:]} are kept"
        return QUARANTINE.name, row


def _sampled(kept: list[Kept]) -> list[Kept]:
    """Return the rows of each message, of unread lines only a few with their number."""
    refused = [row for rows in kept for table, row in rows if table == QUARANTINE.name]
    if len(refused) <= UNREAD_KEPT:
        return kept
    stored = {id(row) for row in sampled(refused)}
    return [[(table, row) for table, row in rows if table != QUARANTINE.name or id(row) in stored] for rows in kept]


def _arrays(kept: Iterable[Kept]) -> dict[str, pa.StructArray]:
    rows: dict[str, list[Row]] = {table.name: [] for table in TABLES}
    for table, row in chain.from_iterable(kept):
        rows[table].append(row)
    return {table.name: pa.array(rows[table.name], row_type(table)) for table in TABLES}


def _milliseconds(at: Any) -> int | None:
    return at if isinstance(at, int) and not isinstance(at, bool) else None
