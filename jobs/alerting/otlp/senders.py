"""The senders to the OpenTelemetry collector, each in a separate thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from dashboards.lake.lake import Lake
from jobs.alerting.otlp.alert_log_sender import AlertLogSender
from jobs.alerting.otlp.metric_sender import MetricSender
from jobs.alerting.otlp.trace_sender import TraceSender
from jobs.config.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class OtlpSenders:
    """The senders that the section [otlp] enables; None for each of the others."""

    traces: TraceSender | None = None
    metrics: MetricSender | None = None
    logs: AlertLogSender | None = None

    @classmethod
    def of(cls, settings: Settings, open_lake: Callable[[], Lake], say: Callable[[str], None]) -> OtlpSenders:
        """Return the senders. `open_lake` opens the tables for one round.

        Raises:
            UserError: the SDK is not installed, or a secret is missing at the place that the settings name.
        """
        otlp = settings.otlp
        if otlp is None:
            return cls()
        found = cls(
            traces=TraceSender(settings=settings, open_lake=open_lake, say=say) if otlp.traces else None,
            metrics=MetricSender(settings=settings, say=say) if otlp.metrics else None,
            logs=AlertLogSender(settings=settings, open_lake=open_lake, say=say) if otlp.logs else None,
        )
        for each in (found.traces, found.metrics, found.logs):
            if each is not None:
                each.collector.check()
        return found

    def start(self, stopped: threading.Event) -> None:
        """Start the threads."""
        for each in (self.traces, self.logs, self.metrics):
            if each is not None:
                each.start(stopped)

    def send_once(self, now_ms: int) -> bool:
        """Send everything that is ready, once; return whether the collector has it.

        Raises:
            Exception: as the rounds of the senders.
        """
        is_traced = self.traces is None or self.traces.round(now_ms)
        is_measured = self.metrics is None or self.metrics.send()
        is_logged = self.logs is None or self.logs.round(now_ms)
        return is_traced and is_measured and is_logged
