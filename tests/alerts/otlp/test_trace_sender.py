"""Traces of a recorded rolling restart arrive once, as the tables have them, also over outages and restarts."""

from __future__ import annotations

import shutil
import subprocess
import threading
from argparse import Namespace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from dashboards.lake.lake import LocalLake
from jobs import notify
from jobs.alerting.http_post import NotAcceptedError, post
from jobs.alerting.metrics import _of_traces
from jobs.alerting.otlp.sent_traces import SentTraces
from jobs.alerting.otlp.trace_sender import HOUR_MS, LONGEST_WAIT_MS, SETTLED_MS, TraceSender
from jobs.config.otlp_section import Otlp
from jobs.config.settings import Settings
from jobs.processes.ports import free_ports
from testing.waiting import wait_until
from testing.warehouses.recorded import rows_of, store

SECRET = "hush-hush-4711"
CLUSTER = "restarts"


@pytest.fixture(scope="module")
def rows():
    return rows_of({CLUSTER: "rolling_restart"})


@pytest.fixture(scope="module")
def history(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("history")
    store(folder, rows)
    return folder


@pytest.fixture(scope="module")
def completed(rows):
    return [row for row in rows["generations"] if row["completed_at"] is not None]


@pytest.fixture
def now(completed):
    return max(milliseconds(row["completed_at"]) for row in completed) + SETTLED_MS + 1


def milliseconds(value) -> int:
    return value if isinstance(value, int) else round(value.timestamp() * 1000)


def sender(folder, history, url, monkeypatch, said=None, **values) -> TraceSender:
    """A sender as after a start of the process: it remembers nothing but its file."""
    monkeypatch.setenv("OTLP_KEY", SECRET)
    otlp = Otlp(endpoint=url, headers={"X-Api-Key": "env:OTLP_KEY"}, resource={"deployment.environment.name": "test"})
    settings = Settings(warehouse=folder, otlp=otlp)
    say = [].append if said is None else said.append
    return TraceSender(settings=settings, open_lake=lambda: LocalLake(history, fresh_seconds=0), say=say, **values)


def spans_of(received):
    """Every span received, in order."""
    found = []
    for path, _, body in received.posts:
        assert path == "/v1/traces"
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            names = {a.key: a.value.string_value for a in resource.resource.attributes}
            assert names["service.name"] == "regroup"
            assert names["deployment.environment.name"] == "test"
            found += [span for scope in resource.scope_spans for span in scope.spans]
    return found


def values(span):
    return {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in span.attributes}


def roots(received):
    return [span for span in spans_of(received) if span.name == "rebalance"]


def test_traces_have_the_times_of_the_tables(tmp_path, history, rows, completed, now, received, monkeypatch):
    assert sender(tmp_path, history, received.url, monkeypatch).round(now)
    by_key = {
        (v["messaging.consumer.group.name"], v["regroup.incarnation"], v["regroup.generation.id"]): (span, v)
        for span in roots(received)
        if (v := values(span))
    }
    assert len(by_key) == len(completed) == len(roots(received)) > 20
    deployed = 0
    for row in completed:
        span, found = by_key[row["group_id"], row["incarnation"], row["generation_id"]]
        children = [s for s in spans_of(received) if s.trace_id == span.trace_id and s.parent_span_id]
        phases = {s.name: s for s in children if s.name != "member"}
        known = row["prepared_at"] if row["prepared_at"] is not None else row["prepared_at_latest"]
        assert span.start_time_unix_nano == milliseconds(known) * 1_000_000
        assert found["regroup.completed_at_ms"] == milliseconds(row["completed_at"])
        assert phases["join"].end_time_unix_nano == milliseconds(row["joined_at"]) * 1_000_000
        if row["synced_at"] is not None:
            assert phases["sync"].end_time_unix_nano == milliseconds(row["synced_at"]) * 1_000_000
        key = row["group_id"], row["incarnation"], row["generation_id"]
        mine = [m for m in rows["generation_members"] if (m["group_id"], m["incarnation"], m["generation_id"]) == key]
        sent = sorted(values(s)["regroup.member.id"] for s in children if s.name == "member")
        assert sent == sorted(m["member_id"] for m in mine)
        deployed += bool(span.links)
    deploys = {(s.trace_id, s.span_id) for s in spans_of(received) if s.name == "deploy"}
    assert deploys
    assert {(link.trace_id, link.span_id) for s in roots(received) for link in s.links} == deploys
    assert deployed >= 20


def test_nothing_is_sent_twice_or_lost_over_an_outage_and_a_restart(
    tmp_path, history, completed, now, received, monkeypatch
):
    received.status = 503
    said = []
    down = sender(tmp_path, history, received.url, monkeypatch, said)
    # Ten minutes of rounds.
    assert not any(down.round(now + at) for at in range(0, 600_000, 15_000))
    assert 2 <= down.failed <= 8
    assert len(said) == 1
    assert not down.is_up
    before = SentTraces.of(tmp_path)
    assert before.counts == {"accepted": 0, "expired": 0, "refused": 0}
    received.status = 200
    again = sender(tmp_path, history, received.url, monkeypatch)
    assert again.round(now + 600_000)
    first = [s.span_id for s in roots(received)]
    assert len(set(first)) == len(first) == len(completed)
    for each in (again, sender(tmp_path, history, received.url, monkeypatch)):
        assert each.round(now + 700_000)
    assert [s.span_id for s in roots(received)] == first
    assert down.round(now + 600_000 + 2 * LONGEST_WAIT_MS)
    assert down.is_up


def test_rebalances_that_did_not_settle_wait(tmp_path, history, completed, now, received, monkeypatch):
    middle = sorted(milliseconds(row["completed_at"]) for row in completed)[len(completed) // 2]
    early = sender(tmp_path, history, received.url, monkeypatch)
    assert early.round(middle + SETTLED_MS)
    assert 0 < len(roots(received)) < len(completed)
    assert early.round(now)
    assert len(roots(received)) == len(completed)


def test_what_is_too_old_is_counted_and_not_sent(tmp_path, history, completed, now, received, monkeypatch):
    received.status = 503
    said = []
    late = sender(tmp_path, history, received.url, monkeypatch, said)
    assert not late.round(now)
    received.status = 200
    assert late.round(now + 60 * HOUR_MS)
    assert roots(received) == []
    assert late.sent.counts["expired"] == len(completed)
    assert "completed more than 48 hours ago" in said[-1]
    shown = {m.name: m.samples for m in _of_traces(late)}
    assert shown["regroup_otlp_traces_total"]["expired",] == len(completed)
    assert late.round(now + 61 * HOUR_MS)
    assert late.sent.counts["expired"] == len(completed)


def test_what_was_sent_does_not_count_as_too_old(tmp_path, history, now, received, monkeypatch):
    each = sender(tmp_path, history, received.url, monkeypatch)
    assert each.round(now)
    assert each.round(now + 60 * HOUR_MS)
    assert each.sent.counts["expired"] == 0


def test_a_request_that_is_refused_for_good_does_not_stop_the_others(
    tmp_path, history, completed, now, received, monkeypatch
):
    received.status = 400
    each = sender(tmp_path, history, received.url, monkeypatch)
    assert each.round(now)
    assert each.sent.counts["refused"] >= len(completed)
    assert each.sent.counts["accepted"] == 0


def test_a_header_is_sent_and_shown_nowhere(tmp_path, history, now, received, monkeypatch):
    said = []
    each = sender(tmp_path, history, received.url, monkeypatch, said)
    assert each.round(now)
    assert {headers["X-Api-Key"] for _, headers, _ in received.posts} == {SECRET}
    received.status = 500
    another = sender(tmp_path / "other", history, received.url, monkeypatch, said)
    assert not another.round(now)
    bodies = b"".join(body for _, _, body in received.posts)
    shown = repr((said, _of_traces(each), each.settings.otlp))
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert SECRET.encode() not in bodies + stored
    assert SECRET not in shown
    assert "env:OTLP_KEY" not in shown


def test_a_collector_that_asks_to_wait_is_not_asked_earlier(tmp_path, history, now, monkeypatch):
    asked = []

    class Busy(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            asked.append(1)
            self.send_response(429)
            self.send_header("Retry-After", "300")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Busy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        each = sender(tmp_path, history, url, monkeypatch)
        assert not any(each.round(now + at) for at in (0, 60_000, 299_000))
        assert len(asked) == 1
        assert not each.round(now + 301_000)
        assert len(asked) == 2
        with pytest.raises(NotAcceptedError) as refused:
            post(url, b"", {})
        assert (refused.value.status, refused.value.wait_s) == (429, 300.0)
    finally:
        server.shutdown()
        server.server_close()


def test_a_broken_file_of_positions_repeats_and_loses_nothing(tmp_path, history, now, received, monkeypatch):
    each = sender(tmp_path, history, received.url, monkeypatch)
    assert each.round(now)
    each.sent.path.write_text('{"positions": [')
    assert sender(tmp_path, history, received.url, monkeypatch).round(now)
    ids = [s.span_id for s in roots(received)]
    assert len(ids) == 2 * len(set(ids))


def test_notify_sends_traces_metrics_and_logs(tmp_path, history, completed, received):
    folder = tmp_path / "warehouse"
    shutil.copytree(history, folder)
    otlp = Otlp(endpoint=received.url, resource={"deployment.environment.name": "test"}, max_hours=100_000)
    settings = Settings(warehouse=folder, otlp=otlp, metrics_port=0)
    notify.run(settings, Namespace(once=True))
    paths = {path for path, _, _ in received.posts}
    assert {"/v1/traces", "/v1/metrics"} <= paths <= {"/v1/traces", "/v1/metrics", "/v1/logs"}
    of_traces = [post for post in received.posts if post[0] == "/v1/traces"]
    received.posts[:] = of_traces
    assert len(roots(received)) == len(completed)


@pytest.mark.skipif(shutil.which("otelcol") is None, reason="needs a collector of OpenTelemetry, called otelcol")
def test_a_real_collector_shows_the_traces(tmp_path, history, completed, now, monkeypatch):
    port = free_ports(1)[0]
    config = tmp_path / "otelcol.yaml"
    config.write_text(
        f"receivers: {{otlp: {{protocols: {{http: {{endpoint: '127.0.0.1:{port}'}}}}}}}}\n"
        "exporters: {debug: {verbosity: detailed}}\n"
        "service:\n  telemetry: {metrics: {level: none}}\n"
        "  pipelines: {traces: {receivers: [otlp], exporters: [debug]}}\n"
    )
    log: Path = tmp_path / "otelcol.log"
    with log.open("wb") as out:
        running = subprocess.Popen(["otelcol", f"--config=file:{config}"], stdout=out, stderr=out)
    try:
        wait_until(lambda: "Everything is ready" in log.read_text(), 20)
        each = sender(tmp_path, history, f"http://127.0.0.1:{port}", monkeypatch)
        assert each.round(now)
        assert each.rejected == 0
        wait_until(
            lambda: (
                len([x for x in log.read_text().split("Name           : ") if x.startswith("rebalance\n")])
                == len(completed)
            )
        )
        shown = log.read_text()
        assert SECRET not in shown
        for row in completed:
            assert f"regroup.completed_at_ms: Int({milliseconds(row['completed_at'])})" in shown
    finally:
        running.terminate()
        running.wait()
