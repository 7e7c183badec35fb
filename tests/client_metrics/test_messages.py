"""What consumers push becomes one row per consumer and push, whatever collector sent it, and no message raises."""

from __future__ import annotations

import json
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.bronze_batch import Records
from pipelines.client_metrics.labels import labels
from pipelines.client_metrics.messages import pushes
from pipelines.client_metrics.metrics import METRICS, PREFIX
from pipelines.coverage import Span
from pipelines.event_batch import TopicReader
from pipelines.event_sources import Claim, EventSource
from schemas.bronze import CLIENT_METRICS

RECORDED = Path(__file__).with_name("recorded")
RECEIVED = datetime(2026, 11, 18, 11, 6, 40, tzinfo=UTC)
ADDED = ("cluster", "source_id", "line_no", "received_at", "source_binding")


def recorded(name: str) -> dict[str, Any]:
    """What a real consumer pushed, as `receive-metrics` sent it to the topic."""
    return json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8"))


def read(*values: bytes, sources: tuple[EventSource, ...] = ()) -> dict[str, list[dict]]:
    numbers = np.arange(len(values))
    records = Records(
        log_epoch=np.zeros_like(numbers), partition=np.zeros_like(numbers), offset=numbers,
        timestamp_ms=np.full_like(numbers, 1_795_000_000_000), key=[None] * len(values), value=values,
    )  # fmt: skip
    reading = TopicReader(cluster="kafka", topic="regroup-events", layout="default", zone="UTC", sources=sources)
    rows = reading(records, {0: Span(partition=0, log_epoch=0, from_offset=0, to_offset=len(values))})
    return {name: array.to_pylist() for name, array in rows.items()}


def encoded(*contents: dict[str, Any]) -> list[bytes]:
    return [json.dumps(each).encode() for each in contents]


def push(metrics: dict[str, float | str], **labels: str) -> dict[str, Any]:
    """A push with one data point per metric, at second 100."""
    named = [{"key": key, "value": {"stringValue": value}} for key, value in labels.items()]
    found = [
        {"name": PREFIX + name, "gauge": {"dataPoints": [{"timeUnixNano": "100000000000", "asDouble": value}]}}
        for name, value in metrics.items()
    ]
    return {"resourceMetrics": [{"resource": {"attributes": named}, "scopeMetrics": [{"metrics": found}]}]}


def test_a_java_consumer() -> None:
    found = read(*encoded(recorded("java")))
    assert [] == found["quarantine"] == found["coordinator_events"]
    (row,) = found["client_metrics"]
    assert set(CLIENT_METRICS.names) == set(row)
    known = {name: value for name, value in row.items() if value is not None}
    member = "j0-495ba0b7-6e6d-4837-bb96-5e13156e904b"
    assert ("kafka", "regroup-events-0", 0, RECEIVED) == tuple(known.pop(name) for name in ADDED[:4])
    assert {
        "group_id": "billing", "member_id": member, "client_instance_id": "BCe4mueqRiSRUdVu3sNMmA",
        "group_instance_id": "j0", "client_id": "java-0",
        "software_name": "apache-kafka-java", "software_version": "4.4.0",
        "assigned_partitions": 2, "rebalances": 1, "failed_rebalances": 0,
        "rebalance_ms": 10.0, "rebalance_ms_avg": 22.0, "rebalance_ms_max": 34.0,
        "poll_gap_ms_avg": 235.5, "poll_gap_ms_max": 259.0, "poll_idle_ratio": 0.5333333333333333,
        "commit_ms_avg": 10.0, "commit_ms_max": 10.0,
    } == {name: value for name, value in known.items() if not name.endswith(("_at", "_earliest", "_latest"))}  # fmt: skip
    assert row["last_poll_at_earliest"] < row["last_poll_at_latest"] <= row["measured_at"]
    assert row["last_rebalance_at_earliest"] > row["counted_from_at"]
    # Callbacks that were never called have no longest time: Java sends NaN.
    assert row["revoked_callback_ms_max"] is None


def test_a_librdkafka_consumer() -> None:
    (row,) = read(*encoded(recorded("librdkafka")))["client_metrics"]
    assert ("confluent-kafka-python", "2.16.1-rdkafka-2.16.0") == (row["software_name"], row["software_version"])
    assert row["member_id"].startswith("rd-0-")
    assert (2, 2380.0, 2380.0) == (row["assigned_partitions"], row["rebalance_ms"], row["rebalance_ms_max"])
    # librdkafka does not say when it polled.
    assert row["last_poll_at_latest"] is None


def test_any_number_of_clients_in_a_message_and_any_batching_give_the_same_rows() -> None:
    java, other = recorded("java"), recorded("librdkafka")
    together = {"resourceMetrics": java["resourceMetrics"] + other["resourceMetrics"]}
    apart = read(*encoded(java, other))["client_metrics"]
    at_once = read(*encoded(together))["client_metrics"]
    assert ["regroup-events-0", "regroup-events-0#1"] == [row["source_id"] for row in at_once]
    assert [without_place(row) for row in apart] == [without_place(row) for row in at_once]


def without_place(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in ADDED}


def test_java_repeats_its_labels_for_each_metric() -> None:
    found = recorded("java")
    (resource,) = found["resourceMetrics"]
    each = [
        resource | {"scopeMetrics": [{"metrics": [metric]}]}
        for scope in resource["scopeMetrics"]
        for metric in scope["metrics"]
    ]
    assert len(each) > 10
    (row,) = pushes(json.dumps({"resourceMetrics": each[::-1]}).encode())
    assert [row] == pushes(json.dumps(found).encode())


@pytest.mark.parametrize("name", ["client_id", "clientId", "client.id", "kafka.client.id", "client-id", "Client_Id"])
def test_plugins_spell_labels_in_their_own_way(name) -> None:
    assert "a" == labels({"group_id": "g", name: "a"}).client_id


def test_labels_may_be_at_the_data_points() -> None:
    found = push({"last.poll.seconds.ago": 3}, group_id="g")
    (metric,) = found["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]
    metric["gauge"]["dataPoints"][0]["attributes"] = [{"key": "clientId", "value": {"stringValue": "a"}}]
    (row,) = pushes(json.dumps(found).encode())
    assert ("g", "a") == (row["group_id"], row["client_id"])
    assert (96, 97) == (row["last_poll_at_earliest"].timestamp(), row["last_poll_at_latest"].timestamp())


@pytest.mark.parametrize("value", ["NaN", "Infinity", -1.0, True, None, "x", 1e300, {}, [1]])
@pytest.mark.parametrize("name", METRICS)
def test_impossible_values_are_unknown(name, value) -> None:
    """A consumer that never polled says -1, and an average of nothing is NaN."""
    found = read(*encoded(push({name: value, "poll.idle.ratio.avg": 0.5}, group_id="g")))
    (row,) = found["client_metrics"]
    column = METRICS[name][0]
    assert all(row[each] is None for each in row if each.startswith(column) and each != "poll_idle_ratio")


def test_clients_without_a_group_and_other_metrics_give_no_row() -> None:
    producer = push({}, client_id="a")
    producer["resourceMetrics"][0]["scopeMetrics"][0]["metrics"] = [
        {"name": "org.apache.kafka.producer.record.queue.time.max", "gauge": {"dataPoints": []}}
    ]
    alone = push({"last.poll.seconds.ago": 1}, client_id="a")
    found = read(*encoded(producer, alone, {"resourceMetrics": []}))
    assert {name: [] for name in found} == found


def test_protobuf_on_the_topic_is_refused_with_what_to_do() -> None:
    value = b"\n\x40\n\x02\x12\x3a\n\x38" + PREFIX.encode() + b"last.poll.seconds.ago"
    (row,) = read(value)["quarantine"]
    assert "invalid_envelope" == row["reason"]
    assert "set the encoding of the exporter to otlp_json" in row["detail"]


def test_a_source_needs_the_permission() -> None:
    source = EventSource(topic="regroup-events", kinds=(Claim.KUBERNETES,))
    found = read(*encoded(recorded("java")), sources=(source,))
    assert [] == found["client_metrics"]
    assert "untrusted_source" == found["quarantine"][0]["reason"]
    allowed = EventSource(topic="regroup-events", kinds=(Claim.CLIENT_METRICS,))
    (row,) = read(*encoded(recorded("java")), sources=(allowed,))["client_metrics"]
    assert "topic regroup-events" == row["source_binding"]


def test_a_deeply_nested_message_is_refused() -> None:
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    (row,) = read(*encoded({"resourceMetrics": deep}))["quarantine"]
    assert "nested" in row["detail"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.data())
def test_no_message_raises_and_a_broken_part_costs_only_itself(data) -> None:
    """One place of a real push is replaced by any JSON."""
    found = deepcopy(recorded("java"))
    at: Any = found
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(at[key], dict | list) or not at[key] or data.draw(st.integers(0, 9)) == 0:
            break
        at = at[key]
    at[key] = data.draw(JSON)
    rows = read(json.dumps(found).encode())
    assert all("reader_failed" != row["reason"] for row in rows["quarantine"])
