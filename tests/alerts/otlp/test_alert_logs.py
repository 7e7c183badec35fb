"""Alerts arrive at a collector as log records, once for each state, over outages and restarts."""

from __future__ import annotations

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from dashboards.lake.lake import LocalLake
from jobs.alerting.otlp import trace_reader
from jobs.alerting.otlp.alert_log_sender import RETRY_MS, AlertLogSender
from jobs.config.otlp_section import Otlp
from jobs.config.settings import Settings
from pipelines.telemetry.cause_spans import storm_link
from schemas.gold import ALERTS, STORMS
from testing.alerts.rows import CLUSTER, HOUR, MINUTE, NOW, row, storm, write

SINCE = NOW - 10 * MINUTE


def alert(name="KafkaRebalanceStorm", **values):
    texts = {"summary": "orders rebalances", "description": "d", "evidence": "bounded", "dashboard_url": "http://x/"}
    times = {"started_at": SINCE, "raised_at": SINCE + MINUTE, "severity": "ticket", "sent_to": []}
    return row(ALERTS, alert_name=name, **{"subject": "orders"} | texts | times | values)


def sender(folder, url, said=None) -> AlertLogSender:
    settings = Settings(warehouse=folder, otlp=Otlp(endpoint=url, max_hours=2))
    say = [].append if said is None else said.append
    return AlertLogSender(settings=settings, open_lake=lambda: LocalLake(folder, fresh_seconds=0), say=say)


def records(received):
    found = []
    for path, _, body in received.posts:
        assert path == "/v1/logs"
        for resource in ExportLogsServiceRequest.FromString(body).resource_logs:
            found += [each for scope in resource.scope_logs for each in scope.log_records]
    return [
        (each.severity_number, {a.key: a.value.string_value for a in each.attributes}["regroup.alert.state"], each)
        for each in found
    ]


def test_each_state_is_sent_once_with_the_trace_of_its_storm(warehouse, received):
    happened = storm("orders", SINCE)
    write(warehouse, STORMS, [happened])
    write(warehouse, ALERTS, [alert(), alert("KafkaMemberFlapping", severity="page", resolved_at=NOW)])
    said = []
    received.status = 503
    assert not sender(warehouse, received.url, said).round(NOW)
    assert len(said) == 1
    received.status = 200
    each = sender(warehouse, received.url)
    assert each.round(NOW)
    assert sender(warehouse, received.url).round(NOW + MINUTE)
    found = records(received)
    assert sorted((number, state) for number, state, _ in found) == [(9, "resolved"), (13, "firing"), (17, "firing")]
    trace, span = storm_link(happened)
    [of_storm] = [each for number, _, each in found if number == 13]
    assert (int.from_bytes(of_storm.trace_id), int.from_bytes(of_storm.span_id)) == (trace, span)
    assert of_storm.body.string_value == "orders rebalances"
    assert of_storm.time_unix_nano == (SINCE + MINUTE) * 1_000_000
    assert not any(each.trace_id for number, _, each in found if number != 13)


def test_what_is_too_old_is_not_sent_and_a_retry_waits(warehouse, received):
    write(warehouse, ALERTS, [alert(raised_at=NOW - 3 * HOUR, resolved_at=NOW - HOUR)])
    each = sender(warehouse, received.url)
    received.status = 500
    assert not each.round(NOW)
    received.status = 200
    assert not each.round(NOW + RETRY_MS - 1)
    assert each.round(NOW + RETRY_MS)
    assert [state for _, state, _ in records(received)] == ["resolved"]


def test_an_alert_that_still_fires_is_sent_once_however_old_it_is_and_again_when_it_becomes_more_severe(
    warehouse, received
):
    long = {"started_at": NOW - 99 * HOUR, "raised_at": NOW - 98 * HOUR}
    write(warehouse, ALERTS, [alert(**long)])
    each = sender(warehouse, received.url)
    for hour in range(12):
        assert each.round(NOW + hour * HOUR)
    assert [(number, state) for number, state, _ in records(received)] == [(13, "firing")]
    write(warehouse, ALERTS, [alert(**long, severity="page")])
    for hour in range(12, 24):
        assert sender(warehouse, received.url).round(NOW + hour * HOUR)
    assert [(number, state) for number, state, _ in records(received)] == [(13, "firing"), (17, "firing")]
    write(warehouse, ALERTS, [alert(**long, severity="page", resolved_at=NOW + 24 * HOUR)])
    assert sender(warehouse, received.url).round(NOW + 24 * HOUR)
    assert [(number, state) for number, state, _ in records(received)][2:] == [(9, "resolved")]


def test_the_newest_storms_are_read_if_there_are_too_many(warehouse, monkeypatch):
    monkeypatch.setattr(trace_reader, "MOST_STORMS", 2)
    write(warehouse, STORMS, [storm("orders", SINCE + minute * MINUTE) for minute in (1, 3, 2)])
    found = trace_reader.TraceReader(LocalLake(warehouse), CLUSTER).storms(SINCE)
    assert [SINCE + 2 * MINUTE, SINCE + 3 * MINUTE] == [each["started_at"] for each in found]
