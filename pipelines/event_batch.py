"""Messages of the events topic to bronze rows: `coordinator_events`, `admin_observations` and `quarantine`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pipelines.arrow_types import row_type
from pipelines.bronze_batch import count
from pipelines.coordinator_events import Event, Unreadable, parse_line
from pipelines.log_envelopes import Observation, unwrap
from pipelines.log_layouts import layout, zone
from pipelines.marks import Mark, mark
from pipelines.record_times import instant
from schemas.bronze import ADMIN_OBSERVATIONS, COORDINATOR_EVENTS, QUARANTINE
from schemas.states import QuarantineReason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipelines.bronze_batch import Records, Row
    from pipelines.coverage import Span
    from pipelines.log_envelopes import LogLine

TABLES = (COORDINATOR_EVENTS, ADMIN_OBSERVATIONS, QUARANTINE)
_layout, _zone = lru_cache(layout), lru_cache(zone)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How the messages of one topic are to be read: layout and zone where a message does not state its own."""

    cluster: str
    topic: str
    layout: str
    zone: str

    def __call__(self, records: Records, spans: Mapping[int, Span]) -> dict[str, pa.StructArray]:
        """Rows by table name, counted into `spans`; a message of which nothing is kept counts as skipped."""
        rows: dict[str, list[Row]] = {table.name: [] for table in TABLES}
        for at in range(len(records.key)):
            kept = list(self._rows(records, at))
            for table, row in kept:
                rows[table].append(row)
            if not kept:
                spans[int(records.partition[at])].skipped += 1
        refused = {(row["source_partition"], row["source_offset"]) for row in rows[QUARANTINE.name]}
        count(spans, records, (partition for partition, _ in refused))
        return {table.name: pa.array(rows[table.name], row_type(table)) for table in TABLES}

    def _rows(self, records: Records, at: int) -> list[tuple[str, Row]]:
        content = unwrap(records.value[at])
        if isinstance(content, Observation):
            try:
                return [self._observation(content, records, at)]
            except RecursionError:
                content = Unreadable(QuarantineReason.INVALID_ENVELOPE, "nested too deeply")
        if isinstance(content, Unreadable):
            return [(QUARANTINE.name, self._refused(content, records, at))]
        rows: list[tuple[str, Row]] = []
        for number, line in enumerate(content):
            found = self._parsed(line)
            if isinstance(found, Unreadable):
                # One message is one place in quarantine, whichever of its lines are unreadable.
                return [*rows, (QUARANTINE.name, self._refused(found, records, at))]
            if found is not None:
                rows.append((COORDINATOR_EVENTS.name, self._event(found, line, records, at, number)))
        return rows

    def _parsed(self, line: LogLine) -> Event | Unreadable | None:
        try:
            return parse_line(line.line, _layout(line.layout or self.layout), _zone(line.zone or self.zone))
        except ValueError as error:  # a layout or zone that the message states
            return Unreadable(QuarantineReason.INVALID_ENVELOPE, str(error)[:200])

    def _event(self, event: Event, line: LogLine, records: Records, at: int, number: int) -> Row:
        source = f"{self.topic}-{records.partition[at]}"
        return event._asdict() | {
            "cluster": self.cluster,
            "source_id": f"{source}#{number}" if number else source,
            "line_no": int(records.offset[at]),
            "broker_id": line.broker_id if event.broker_id is None else event.broker_id,
        }

    def _observation(self, seen: Observation, records: Records, at: int) -> tuple[str, Row]:
        body: dict[str, Any] = seen.body
        received_at = instant(int(records.timestamp_ms[at]))
        observed_at = instant(_milliseconds(body.get("at"))) or received_at
        if seen.kind == "mark":
            found = mark(body, received_at)
            if not isinstance(found, Mark):
                return QUARANTINE.name, self._refused(found, records, at)
            observed_at = found.marked_at
            body = {name: value for name, value in body.items() if not isinstance(value, dict | list)}
        subject = body.get("group_id") or body.get("topic") or ""
        row = {
            "cluster": self.cluster,
            "observed_at": observed_at or instant(0),
            "source": str(body.get("source", seen.kind)),
            "kind": seen.kind,
            "subject": f"{subject}#{records.partition[at]}-{records.offset[at]}",
            "body": json.dumps(body, separators=(",", ":")),
        }
        return ADMIN_OBSERVATIONS.name, row

    def _refused(self, why: Unreadable, records: Records, at: int) -> Row:
        return records.row(at, self.cluster) | {"source": self.topic, "reason": str(why.reason), "detail": why.detail}


def _milliseconds(at: Any) -> int | None:
    return at if isinstance(at, int) and not isinstance(at, bool) else None
