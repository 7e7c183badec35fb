"""`receive-metrics`: the port takes only well-formed requests of senders with the token, and answers after delivery."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import threading
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from google.protobuf.json_format import MessageToDict, ParseDict
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from jobs.cli import main
from jobs.client_metrics.otlp_requests import JSON, LARGEST, PROTOBUF
from jobs.client_metrics.receiver import MetricsReceiver
from jobs.config.errors import UserError
from pipelines.client_metrics.messages import pushes

TOKEN = "a-token-of-brokers"
RECORDED = Path(__file__).with_name("recorded")
JAVA = json.loads((RECORDED / "java.json").read_text(encoding="utf-8"))
BODY = ParseDict(JAVA, ExportMetricsServiceRequest()).SerializeToString()
KAFKA_IS_DOWN = "Kafka at host:9092 cannot be written to: check address and state."


class Delivered(list):
    """What the receiver delivered; `is_down` makes Kafka refuse it."""

    is_down = False

    def __call__(self, messages) -> None:
        if self.is_down:
            raise UserError(KAFKA_IS_DOWN)
        self.extend(json.loads(message) for message in messages)


@pytest.fixture
def delivered() -> Delivered:
    return Delivered()


@pytest.fixture
def receiver(delivered):
    running = MetricsReceiver(delivered, host="127.0.0.1", port=0, token=TOKEN)
    thread = threading.Thread(target=running.run)
    thread.start()
    yield running
    running.stop()
    thread.join()


def answer(receiver, body=BODY, *, method="POST", path="/v1/metrics", **headers: str) -> tuple[int, str]:
    sent = {"Content-Type": PROTOBUF, "Authorization": f"Bearer {TOKEN}"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    with closing(HTTPConnection("127.0.0.1", receiver.port, timeout=10)) as connection:
        connection.request(method, path, body, sent)
        response = connection.getresponse()
        return response.status, response.read().decode()


def test_protobuf_and_json_plain_and_packed_give_the_same(receiver, delivered) -> None:
    text = json.dumps(JAVA).encode()
    assert (200, "") == answer(receiver)
    assert (200, "") == answer(receiver, gzip.compress(BODY), Content_Encoding="gzip")
    assert (200, "{}") == answer(receiver, text, Content_Type=f"{JSON}; charset=utf-8")
    assert (200, "{}") == answer(receiver, gzip.compress(text), Content_Type=JSON, Content_Encoding="gzip")
    assert [JAVA] * 4 == delivered
    (row,) = pushes(json.dumps(delivered[0]).encode())
    assert "billing" == row["group_id"]


def test_other_metrics_are_not_sent(receiver, delivered) -> None:
    request = ExportMetricsServiceRequest()
    request.resource_metrics.add().scope_metrics.add().metrics.add(name="org.apache.kafka.producer.record.size.max")
    assert (200, "") == answer(receiver, request.SerializeToString())
    assert (200, "") == answer(receiver, b"")
    assert [] == delivered


def test_labels_that_java_repeats_are_sent_once(receiver, delivered) -> None:
    request = ExportMetricsServiceRequest()
    for each in ParseDict(JAVA, ExportMetricsServiceRequest()).resource_metrics:
        for metric in each.scope_metrics[0].metrics:
            request.resource_metrics.add(resource=each.resource).scope_metrics.add().metrics.append(metric)
    assert len(request.resource_metrics) > 10
    assert 200 == answer(receiver, request.SerializeToString())[0]
    assert [JAVA] == delivered


def test_each_client_is_a_message_with_only_the_labels_that_are_kept(receiver, delivered) -> None:
    request = ParseDict(JAVA, ExportMetricsServiceRequest())
    other = ParseDict(
        json.loads((RECORDED / "librdkafka.json").read_text(encoding="utf-8")), ExportMetricsServiceRequest()
    )
    request.resource_metrics.extend(other.resource_metrics)
    for each in request.resource_metrics:
        each.resource.attributes.add(key="principal").value.string_value = "User:somebody"
        each.resource.attributes.add(key="client_id").value.string_value = "x" * 5_000
        point = each.scope_metrics[0].metrics[0].gauge.data_points[0]
        point.attributes.add(key="node.id").value.int_value = 1
    assert 200 == answer(receiver, request.SerializeToString())[0]
    assert [JAVA, MessageToDict(other)] == delivered


def test_the_metrics_of_one_client_that_no_message_holds_are_refused(receiver, delivered) -> None:
    request = ParseDict(JAVA, ExportMetricsServiceRequest())
    metric = request.resource_metrics[0].scope_metrics[0].metrics[0]
    metric.gauge.data_points.extend(list(metric.gauge.data_points) * 20_000)
    status, text = answer(receiver, request.SerializeToString())
    assert (400, True) == (status, "the metrics of one client have more than 900,000 bytes" in text)
    assert [] == delivered


@pytest.mark.parametrize(
    ("status", "options"),
    [
        (401, {"Authorization": "Bearer wrong-token-of-brokers"}),
        (401, {"Authorization": ""}),
        (404, {"path": "/v1/traces"}),
        (405, {"method": "GET"}),
        (415, {"Content_Type": "text/plain"}),
        (415, {"Content_Type": ""}),
        (400, {"body": b"\xff\xff\xff"}),
        (400, {"body": b"{", "Content_Type": JSON}),
        (400, {"body": b"[" * 100_000, "Content_Type": JSON}),
        (400, {"body": b"\xff", "Content_Type": JSON}),
        (400, {"Content_Encoding": "zstd"}),
        (400, {"body": BODY, "Content_Encoding": "gzip"}),
        (400, {"body": gzip.compress(bytes(LARGEST + 1)), "Content_Encoding": "gzip"}),
        (400, {"body": gzip.compress(BODY)[:-9], "Content_Encoding": "gzip"}),
    ],
)
def test_everything_else_is_refused(receiver, delivered, status, options) -> None:
    found, text = answer(receiver, **options)
    assert status == found
    assert "Traceback" not in text
    assert TOKEN not in text
    assert [] == delivered


def test_a_body_beyond_the_limit_is_refused(receiver, delivered) -> None:
    assert 413 == answer(receiver, None, Content_Length=str(LARGEST + 2))[0]
    assert [] == delivered


def test_health_needs_no_token(receiver) -> None:
    assert (200, "ok\n") == answer(receiver, None, method="GET", path="/healthz", Authorization="")


def test_the_sender_repeats_what_kafka_did_not_accept(receiver, delivered, capsys) -> None:
    delivered.is_down = True
    for _ in range(3):
        status, text = answer(receiver)
        assert (503, True) == (status, KAFKA_IS_DOWN not in text)
    delivered.is_down = False
    assert 200 == answer(receiver)[0]
    # Once when it began, and once when it was over.
    assert [
        f"Metrics are refused: {KAFKA_IS_DOWN}",
        "Metrics are accepted again.",
    ] == capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--listen", "0.0.0.0:4318"], "Everybody who can reach 0.0.0.0 could send metrics of any group"),
        (["--listen", "4318"], "--listen must be HOST:PORT"),
        (["--listen", "a:b"], "--listen must be HOST:PORT"),
        (["--token", TOKEN], "--token must be env:NAME or file:PATH"),
        (["--token", "env:REGROUP_NO_SUCH"], "which is not set"),
        (["--token", "env:REGROUP_SHORT"], "must have at least 16 characters"),
    ],
)
def test_a_mistake_is_one_sentence(options, sentence, capsys, monkeypatch) -> None:
    monkeypatch.setenv("REGROUP_SHORT", "short")
    assert 2 == main(["receive-metrics", "--bootstrap-servers", "127.0.0.1:1", *options])
    assert sentence in capsys.readouterr().err


def test_a_port_in_use_is_one_sentence(broker, receiver) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic("pushed", 1, 1)])["pushed"].result(120)
    target = ["--bootstrap-servers", broker.bootstrap_servers, "--topic", "pushed"]
    command = [sys.executable, "-m", "jobs.cli", "receive-metrics", *target]
    listen = ["--listen", f"127.0.0.1:{receiver.port}"]
    done = subprocess.run([*command, *listen], capture_output=True, text=True, check=False)
    assert (2, "") == (done.returncode, done.stdout)
    assert "name another --listen" in done.stderr
