"""Sends a trace for each completed rebalance, deploy and storm to an OpenTelemetry collector, from a separate thread.

A trace is sent once, `SETTLED_MS` after its rebalance completed, so that its deploy and storm are known; later changes
of its rows are not sent. While the collector is down, the position in the tables stays, and nothing is kept in memory.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from dashboards.lake.lake import Lake
from jobs.alerting.alert_queries import BUILT_CLUSTERS
from jobs.alerting.http_post import NotAcceptedError
from jobs.alerting.otlp.collector import Collector
from jobs.alerting.otlp.encoding import rejected_spans, trace_request
from jobs.alerting.otlp.sent_traces import SentTraces
from jobs.alerting.otlp.trace_reader import TraceReader, ended_storms
from jobs.alerting.rounds import repeat_rounds
from jobs.config.errors import UserError, one_line
from jobs.config.settings import Settings
from pipelines.telemetry.rebalance_spans import rebalance_trace_id
from pipelines.telemetry.span import TraceSpan

SECONDS = 15.0
"""Seconds between two rounds."""

HOUR_MS = 3_600_000
SETTLED_MS = 120_000
OVERLAP_MS = HOUR_MS
"""Rows of a rebalance may appear this long, in record time, after rows of a later one; if later, it is not sent."""

PAGE = 20_000
"""Rebalances to read at a time."""
MOST_TRACES = 100
"""Rebalances in one request. Each has at most `rebalance_spans.MOST_MEMBERS` members."""
CLUSTERS = 10_000
FIRST_WAIT_MS, LONGEST_WAIT_MS = 15_000, 600_000
LONGEST_RETRY_AFTER_S = 3_600.0
REFUSED = frozenset({400, 413, 422})
"""Statuses that a repeated request would get again. After any other status, such as 401 after a login has expired, the
request is repeated."""

Traced = tuple[str, Sequence[TraceSpan], str, int]
"""The id of a trace, its spans, its cluster ('' for deploys and storms) and when it ended."""


@dataclass(kw_only=True)
class TraceSender:
    """The sender of traces of `settings`. `failed` counts attempts from the start of the process.

    `open_lake` opens the tables for one round.
    """

    settings: Settings
    open_lake: Callable[[], Lake]
    say: Callable[[str], None]
    failed: int = 0
    rejected: int = 0
    is_up: bool | None = None
    sent: SentTraces = field(init=False)
    collector: Collector = field(init=False)
    _tries: int = 0
    _not_before_ms: int = 0

    def __post_init__(self) -> None:
        self.sent = SentTraces.of(self.settings.warehouse)
        self.collector = Collector(self.settings)

    def start(self, stopped: threading.Event) -> None:
        threading.Thread(target=self._until, args=[stopped], daemon=True).start()

    def round(self, now_ms: int) -> bool:
        """Send what is ready, unless the last failure was too recent; return whether the collector took everything.

        Raises:
            Exception: the tables cannot be read, or the file of positions cannot be written.
        """
        if now_ms < self._not_before_ms:
            return False
        try:
            lake = self.open_lake()
            for row in lake.query(BUILT_CLUSTERS, ["groups"], CLUSTERS, {}).rows:
                self._send_cluster(TraceReader(lake, row["cluster"]), row["cluster"], now_ms)
        except (NotAcceptedError, UserError) as error:
            self._has_failed(error, now_ms)
            return False
        return True

    def _until(self, stopped: threading.Event) -> None:
        def failed(why: str) -> None:
            self.say(f"Traces were not sent and will be retried: {why}")

        repeat_rounds(self.round, failed, seconds=SECONDS, stopped=stopped, text=self.collector.without_secrets)

    def _send_cluster(self, reader: TraceReader, cluster: str, now_ms: int) -> None:
        oldest = now_ms - self.collector.otlp.max_hours * HOUR_MS
        self._expire(reader, cluster, oldest)
        position, until = self.sent.positions[cluster], now_ms - SETTLED_MS
        storms = reader.storms(oldest)
        rows = reader.completed(position, until, PAGE)
        known = self.sent.rebalances.setdefault(cluster, {})
        waiting = [row for row in rows if _hex(rebalance_trace_id(row)) not in known]
        for first in range(0, len(waiting), MOST_TRACES):
            part = waiting[first : first + MOST_TRACES]
            batch: list[Traced] = []
            causes: dict[str, TraceSpan] = {}
            for row, spans, deploys in reader.traces(part, storms):
                batch.append((_hex(spans[0].trace_id), spans, cluster, row["completed_at"]))
                causes |= {_hex(span.trace_id): span for span in deploys}
            self._send([*batch, *self._new(causes.items())])
        over = ((_hex(span.trace_id), span) for row, span in ended_storms(storms) if row["ended_at"] <= until)
        self._send(self._new(over))
        self.sent.forget_others(oldest - HOUR_MS)
        if rows:
            # A full page must move the position, also if all its rebalances are within the overlap.
            newest: int = rows[-1]["completed_at"]
            self.sent.advance(cluster, newest if len(rows) == PAGE else newest - OVERLAP_MS)
        if waiting:
            self.sent.save()

    def _expire(self, reader: TraceReader, cluster: str, oldest: int) -> None:
        """Count what became too old before it was sent, and move the position past it."""
        position = self.sent.positions.get(cluster)
        if position is not None and position < oldest:
            # Those sent since the position are in the file until the position passes them.
            had = sum(position <= at < oldest for at in self.sent.rebalances.get(cluster, {}).values())
            lost = max(0, reader.passed(position, oldest) - had)
            self.sent.counts["expired"] += lost
            if lost:
                self.say(
                    f"{lost} rebalances of {cluster} are not sent as traces: they completed more than "
                    f"{self.collector.otlp.max_hours} hours ago (max_hours in [otlp])."
                )
        if position is None or position < oldest:
            self.sent.advance(cluster, oldest)
            self.sent.save()

    def _new(self, causes: Iterable[tuple[str, TraceSpan]]) -> Iterator[Traced]:
        for key, span in causes:
            if key not in self.sent.others:
                yield key, [span], "", span.end_ns // 1_000_000

    def _send(self, found: Iterable[Traced]) -> None:
        """Send the traces in one request, and remember them. A request that is refused for good is halved.

        Raises:
            NotAcceptedError: the collector did not take it; try again later.
        """
        batch = list(found)
        if not batch:
            return
        body = trace_request([span for _, spans, _, _ in batch for span in spans], self.collector.resource)
        try:
            response = self.collector.post("traces", body)
        except NotAcceptedError as error:
            if error.status not in REFUSED:
                raise
            if len(batch) > 1:
                middle = len(batch) // 2
                self._send(batch[:middle])
                self._send(batch[middle:])
                return
            self.say(
                f"The collector refused a trace, which is not sent again: {self.collector.without_secrets(str(error))}"
            )
            self._remember(batch, "refused")
            return
        self.rejected += rejected_spans(response)
        self._remember(batch, "accepted")
        if self.is_up is False:
            self.say("The OpenTelemetry collector takes traces again.")
        self.is_up, self._tries = True, 0

    def _remember(self, batch: Sequence[Traced], outcome: str) -> None:
        for key, _, cluster, ended_ms in batch:
            if cluster:
                self.sent.rebalances[cluster][key] = ended_ms
            else:
                self.sent.others[key] = ended_ms
        self.sent.counts[outcome] += len(batch)
        self.sent.save()

    def _has_failed(self, error: NotAcceptedError | UserError, now_ms: int) -> None:
        asked_s = error.wait_s if isinstance(error, NotAcceptedError) else 0.0
        wait_ms = min(FIRST_WAIT_MS * 2 ** min(self._tries, 10), LONGEST_WAIT_MS)
        self._not_before_ms = now_ms + max(wait_ms, round(min(asked_s, LONGEST_RETRY_AFTER_S) * 1000))
        self.failed += 1
        self._tries += 1
        if self.is_up is not False:
            why = self.collector.without_secrets(one_line(error))
            self.say(f"The OpenTelemetry collector did not take traces ({why}): they are sent again.")
        self.is_up = False


def _hex(trace: int) -> str:
    return f"{trace:032x}"
