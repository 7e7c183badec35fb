"""Sends the numbers of the metrics page to an OpenTelemetry collector, each minute, from a separate thread.

Only the newest numbers are sent. While the collector is down, points are missing; totals are cumulative, so they lose
nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jobs.alerting.exposition import Metric
from jobs.alerting.http_post import NotAcceptedError
from jobs.alerting.otlp.collector import Collector
from jobs.alerting.otlp.encoding import SCHEMA_URL, origin
from jobs.config.errors import one_line
from jobs.config.settings import Settings
from pipelines.telemetry.span import attributes

SECONDS = 60.0
STANDARD = {"group": "messaging.consumer.group.name"}
"""Labels that the semantic conventions for messaging name. None of our metrics is one that they define."""


@dataclass(kw_only=True)
class MetricSender:
    """The sender of metrics of `settings`. `show` gives it the newest numbers and never waits."""

    settings: Settings
    say: Callable[[str], None]
    is_up: bool | None = None
    collector: Collector = field(init=False)
    _newest: tuple[Sequence[Metric], int] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.collector = Collector(self.settings)

    def show(self, found: Sequence[Metric], now_ms: int) -> None:
        """Replace the numbers that are sent next. They are of the time `now_ms`."""
        with self._lock:
            self._newest = found, now_ms

    def start(self, stopped: threading.Event) -> None:
        threading.Thread(target=self._until, args=[stopped], daemon=True).start()

    def send(self) -> bool:
        """Send the newest numbers, once; return whether the collector has them, or there are none."""
        with self._lock:
            newest, self._newest = self._newest, None
        if newest is None:
            return True
        try:
            self.collector.post("metrics", metric_request(*newest, resource=self.collector.resource))
        except Exception as error:  # noqa: BLE001 - reported, and the next numbers may arrive
            reason = one_line(error) if isinstance(error, NotAcceptedError) else f"{type(error).__name__}"
            if self.is_up is not False:
                self.say(
                    f"The OpenTelemetry collector did not take metrics ({self.collector.without_secrets(reason)})."
                )
            self.is_up = False
            return False
        self.is_up = True
        return True

    def _until(self, stopped: threading.Event) -> None:
        while not stopped.is_set():
            began = time.monotonic()
            self.send()
            stopped.wait(max(1.0, SECONDS - (time.monotonic() - began)))


def otel_name(name: str) -> tuple[str, str]:
    """Return the name of a metric of Prometheus as OpenTelemetry writes it, and its unit: without the unit's suffix."""
    short = name.removesuffix("_total")
    unit = "s" if short.endswith("_seconds") and "resource_seconds" not in short else ""
    return f"regroup.{short.removeprefix('regroup_').removesuffix('_seconds' if unit else '')}", unit


def metric_request(found: Sequence[Metric], now_ms: int, *, resource: Mapping[str, str]) -> bytes:
    """Return the body of an ExportMetricsServiceRequest with every metric that has samples."""
    # Imported on use, because only [otlp] needs the SDK.
    from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics  # noqa: PLC0415
    from opentelemetry.sdk.metrics import export as sdk  # noqa: PLC0415

    def of(metric: Metric) -> Any:
        points = [
            sdk.NumberDataPoint(
                attributes=attributes(
                    {STANDARD.get(k, f"regroup.{k}"): v for k, v in zip(metric.labels, values, strict=True)}
                ),
                # Unknown: totals are sums over tables, which may be older than this process.
                start_time_unix_nano=0,
                time_unix_nano=now_ms * 1_000_000,
                value=float(number),
            )
            for values, number in sorted(metric.samples.items())
        ]
        name, unit = otel_name(metric.name)
        cumulative = sdk.AggregationTemporality.CUMULATIVE
        is_sum = metric.kind == "counter"
        data = sdk.Sum(points, cumulative, is_monotonic=True) if is_sum else sdk.Gauge(points)
        return sdk.Metric(name=name, description=metric.help, unit=unit, data=data)

    of_all, scope = origin(resource)
    scoped = sdk.ScopeMetrics(scope, [of(metric) for metric in found if metric.samples], SCHEMA_URL)
    everything = sdk.MetricsData([sdk.ResourceMetrics(of_all, [scoped], SCHEMA_URL)])
    body: bytes = encode_metrics(everything).SerializeToString()
    return body
