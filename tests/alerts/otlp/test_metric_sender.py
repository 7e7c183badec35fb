"""The numbers of the metrics page arrive at a collector under OpenTelemetry's names."""

from __future__ import annotations

import socket
import threading

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from jobs.alerting.exposition import Metric
from jobs.alerting.otlp.metric_sender import MetricSender, otel_name
from jobs.config.otlp_section import Otlp
from jobs.config.settings import Settings
from testing.alerts.rows import NOW

FOUND = [
    Metric(name="regroup_rebalances_total", kind="counter", help="h", labels=("cluster",), samples={("k",): 7}),
    Metric(
        name="regroup_group_rebalances",
        kind="gauge",
        help="h",
        labels=("cluster", "group"),
        samples={("k", "a\ud800"): 2.0, ("k", "b"): 1.0},
    ),
    Metric(name="regroup_without_samples", kind="gauge", help="h"),
]


def sender(url, said=None) -> MetricSender:
    say = [].append if said is None else said.append
    return MetricSender(settings=Settings(otlp=Otlp(endpoint=url, headers={"X-Key": "env:OTLP_KEY"})), say=say)


def test_numbers_have_names_values_and_kinds(received, monkeypatch):
    monkeypatch.setenv("OTLP_KEY", "hush-4711")
    each = sender(received.url)
    each.collector.check()
    assert each.send()
    each.show(FOUND, NOW)
    assert each.send()
    [(path, headers, body)] = received.posts
    assert (path, headers["X-Key"], b"hush" in body) == ("/v1/metrics", "hush-4711", False)
    [resource] = ExportMetricsServiceRequest.FromString(body).resource_metrics
    found = {metric.name: metric for metric in resource.scope_metrics[0].metrics}
    assert found.keys() == {"regroup.rebalances", "regroup.group_rebalances"}
    [point] = found["regroup.rebalances"].sum.data_points
    assert (point.as_double, point.time_unix_nano) == (7.0, NOW * 1_000_000)
    assert found["regroup.rebalances"].sum.is_monotonic
    groups = [
        {a.key: a.value.string_value for a in p.attributes} for p in found["regroup.group_rebalances"].gauge.data_points
    ]
    assert groups[1] == {"regroup.cluster": "k", "messaging.consumer.group.name": "b"}


def test_a_collector_that_is_down_is_reported_once_and_gets_the_newest(received, monkeypatch):
    monkeypatch.setenv("OTLP_KEY", "hush-4711")
    said = []
    each = sender(received.url, said)
    received.status = 503
    for at in range(3):
        each.show(FOUND, NOW + at)
        assert not each.send()
    assert len(said) == 1
    assert "hush" not in said[0]
    received.status = 200
    each.show(FOUND, NOW + 9)
    assert each.send()
    assert each.is_up


def test_units_are_no_part_of_names():
    assert otel_name("regroup_oldest_open_rebalance_seconds") == ("regroup.oldest_open_rebalance", "s")
    assert otel_name("regroup_lost_resource_seconds_total") == ("regroup.lost_resource_seconds", "")
    assert otel_name("regroup_open_alerts") == ("regroup.open_alerts", "")


def test_a_collector_that_hangs_delays_nobody_who_has_new_numbers(monkeypatch):
    monkeypatch.setenv("OTLP_KEY", "hush-4711")
    with socket.create_server(("127.0.0.1", 0)) as server:
        each = sender(f"http://127.0.0.1:{server.getsockname()[1]}")
        each.show(FOUND, NOW)
        sending = threading.Thread(target=each.send)
        sending.start()
        connection, _ = server.accept()
        with connection:
            assert connection.recv(1)
            for at in range(1_000):
                each.show(FOUND, NOW + at)
            assert sending.is_alive()
    sending.join()
    assert each.is_up is False
