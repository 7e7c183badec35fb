"""Sends a log record to an OpenTelemetry collector when an alert is raised, becomes more severe, or is resolved.

A separate thread makes the records from the table `alerts`. A file lists the records that were sent, so a restart
repeats at most one request; records older than `max_hours` are not sent, except those of alerts that still fire.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from dashboards.lake.lake import Lake, moment
from jobs.alerting.http_post import NotAcceptedError
from jobs.alerting.otlp.collector import Collector
from jobs.alerting.otlp.encoding import origin
from jobs.alerting.otlp.sent_traces import SentTraces
from jobs.alerting.otlp.trace_reader import TraceReader
from jobs.alerting.rounds import repeat_rounds
from jobs.config.errors import UserError, one_line
from jobs.config.settings import Settings
from pipelines.telemetry.alert_records import AlertRecord, alert_records

SECONDS = 15.0
HOUR_MS = 3_600_000
RETRY_MS = 60_000
MOST = 10_000
MOST_RECORDS = 200
"""Records in one request."""

CHANGED = """
SELECT * FROM alerts WHERE raised_at >= $start OR resolved_at >= $start OR resolved_at IS NULL
ORDER BY resolved_at IS NOT NULL, greatest(raised_at, resolved_at) DESC LIMIT $cap
"""
"""The newest come first, because earlier ones were sent in an earlier round."""


@dataclass(kw_only=True)
class AlertLogSender:
    """The sender of alerts as log records. `open_lake` opens the tables for one round."""

    settings: Settings
    open_lake: Callable[[], Lake]
    say: Callable[[str], None]
    is_up: bool | None = None
    sent: SentTraces = field(init=False)
    collector: Collector = field(init=False)
    _not_before_ms: int = 0

    def __post_init__(self) -> None:
        self.sent = SentTraces.of(self.settings.warehouse, "otlp_logs")
        self.collector = Collector(self.settings)

    def start(self, stopped: threading.Event) -> None:
        threading.Thread(target=self._until, args=[stopped], daemon=True).start()

    def round(self, now_ms: int) -> bool:
        """Send what is new, unless the last failure was too recent; return whether the collector has everything.

        Raises:
            Exception: the tables cannot be read, or the file cannot be written.
        """
        if now_ms < self._not_before_ms:
            return False
        oldest = now_ms - self.collector.otlp.max_hours * HOUR_MS
        waiting = self._waiting(oldest, now_ms)
        try:
            for first in range(0, len(waiting), MOST_RECORDS):
                self._send(waiting[first : first + MOST_RECORDS], now_ms)
        except (NotAcceptedError, UserError) as error:
            self._not_before_ms = now_ms + max(RETRY_MS, round(1000 * getattr(error, "wait_s", 0.0)))
            if self.is_up is not False:
                why = self.collector.without_secrets(one_line(error))
                self.say(f"The OpenTelemetry collector did not take alerts ({why}): they are sent again.")
            self.is_up = False
            return False
        self.sent.forget_others(oldest - HOUR_MS)
        return True

    def _until(self, stopped: threading.Event) -> None:
        def failed(why: str) -> None:
            self.say(f"Alerts were not sent as log records and will be retried: {why}")

        repeat_rounds(self.round, failed, seconds=SECONDS, stopped=stopped, text=self.collector.without_secrets)

    def _waiting(self, oldest: int, now_ms: int) -> list[AlertRecord]:
        lake = self.open_lake()
        rows = lake.query(CHANGED, ["alerts"], MOST, {"start": moment(oldest)}).rows
        storms = {name: TraceReader(lake, name).storms(oldest) for name in {row["cluster"] for row in rows}}
        records = [(row, record) for row in rows for record in alert_records(row, storms[row["cluster"]])]
        firing = {record.key for row, record in records if row["resolved_at"] is None}
        # Not forgotten as long as they fire, because they may become more severe after `max_hours`.
        self.sent.others |= dict.fromkeys(firing & self.sent.others.keys(), now_ms)
        waiting = [
            record
            for _, record in records
            if record.key not in self.sent.others and (record.key in firing or record.at_ns >= oldest * 1_000_000)
        ]
        return sorted(waiting, key=lambda record: record.at_ns)

    def _send(self, records: Sequence[AlertRecord], now_ms: int) -> None:
        self.collector.post("logs", log_request(records, self.collector.resource))
        self.sent.others |= dict.fromkeys((record.key for record in records), now_ms)
        self.sent.counts["accepted"] += len(records)
        self.sent.save()
        self.is_up = True


def log_request(records: Sequence[AlertRecord], resource: Mapping[str, str]) -> bytes:
    """Return the body of an ExportLogsServiceRequest with these records."""
    # Imported on use, because only [otlp] needs the SDK.
    from opentelemetry._logs import LogRecord, SeverityNumber  # noqa: PLC0415
    from opentelemetry.context import Context  # noqa: PLC0415
    from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs  # noqa: PLC0415
    from opentelemetry.sdk._logs import ReadableLogRecord  # noqa: PLC0415
    from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context  # noqa: PLC0415

    of_all, scope = origin(resource)

    def context(link: tuple[int, int] | None) -> Context:
        if link is None:
            return Context()
        of_storm = SpanContext(*link, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
        return set_span_in_context(NonRecordingSpan(of_storm), Context())

    found = [
        ReadableLogRecord(
            LogRecord(
                timestamp=each.at_ns,
                observed_timestamp=each.at_ns,
                context=context(each.link),
                severity_text=each.severity_text,
                severity_number=SeverityNumber(each.severity),
                body=each.body,
                attributes=dict(each.attributes),
            ),
            of_all,
            scope,
        )
        for each in records
    ]
    body: bytes = encode_logs(found).SerializeToString()
    return body
