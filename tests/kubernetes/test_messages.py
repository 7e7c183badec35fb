"""Every sender's JSON shows the same change of a pod, nothing but the named fields is kept, and no JSON raises."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.bronze_batch import Records
from pipelines.coverage import Span
from pipelines.event_batch import TopicReader
from pipelines.event_sources import Claim, EventSource
from pipelines.kubernetes.messages import facts_of_message, kubernetes
from pipelines.kubernetes.observation_rows import rows_of_lines
from pipelines.kubernetes.pod_facts import PodFact, fact
from pipelines.log_lines import PlacedLine
from pipelines.marks import mark_rows
from schemas.states import PodChange
from tests.kubernetes.objects import (
    SECRET,
    condition,
    deleted,
    event,
    event_record,
    exported,
    newer_event,
    otlp,
    pod,
    terminated,
)

AT = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)
KILLED = pod(**terminated())
LINE = "[2026-11-21 12:00:00,000] INFO [GroupCoordinator 0]: Member a in group g has failed, removing it from the group (kafka.coordinator.group.GroupCoordinator)"


def records_of(*values: bytes) -> Records:
    """Messages of one partition of the events topic."""
    numbers = np.arange(len(values))
    return Records(
        log_epoch=np.zeros_like(numbers), partition=np.zeros_like(numbers), offset=numbers,
        timestamp_ms=np.full_like(numbers, 1_795_000_000_000), key=[None] * len(values), value=values,
    )  # fmt: skip


def read(*values: bytes, sources: tuple[EventSource, ...] = ()) -> dict[str, list[dict]]:
    """Bronze rows of these messages."""
    records = records_of(*values)
    reading = TopicReader(cluster="kafka", topic="regroup-events", layout="default", zone="UTC", sources=sources)
    rows = reading(records, {0: Span(partition=0, log_epoch=0, from_offset=0, to_offset=len(values))})
    return {name: array.to_pylist() for name, array in rows.items()}


def marks(*contents) -> list[dict]:
    found = read(*(json.dumps(each).encode() for each in contents))
    assert [] == found["quarantine"]
    return mark_rows(found["admin_observations"])


PROBED = {
    "core event": json.dumps(event()),
    "newer event": json.dumps(newer_event()),
    "pretty": json.dumps(event(), indent=4),
    "watch": json.dumps({"type": "MODIFIED", "object": event()}),
    "list": json.dumps({"kind": "List", "apiVersion": "v1", "items": [event()]}),
    "event list": json.dumps({"kind": "EventList", "items": [event()]}),
    "exporter": json.dumps(exported(event())),
    "eventrouter": json.dumps({"verb": "UPDATED", "event": event(), "old_event": event("Pulled", "")}),
    "k8sobjects": json.dumps(otlp({"type": "ADDED", "object": newer_event()})),
    "k8sobjects as text": json.dumps(otlp(json.dumps({"type": "ADDED", "object": newer_event()}))),
    "k8sobjects, body alone": json.dumps({"object": event(), "type": "ADDED"}),
    "k8s_events": json.dumps(event_record()),
    "fluent bit": json.dumps({"log": json.dumps(event()), "stream": "stdout"}),
    "ship-logs": json.dumps({"kind": "log", "source": "ship-logs", "at": 1, "line": json.dumps(event())}),
}


@pytest.mark.parametrize("text", PROBED.values(), ids=PROBED.keys())
def test_every_sender_shows_the_same_change(text) -> None:
    found = read(text.encode())
    assert [] == found["quarantine"]
    (row,) = mark_rows(found["admin_observations"])
    shown = [row[name] for name in ("marked_at", "kind", "change", "namespace", "pod", "node", "container")]
    assert [AT, "kubernetes", "probe_failed", "payments", "billing-7f9c-x2v5k", "node-3", "app"] == shown
    assert "killed by a probe payments/billing-7f9c-x2v5k (container app)" == row["text"]
    assert row["group_ids"] is None
    assert [AT] == [each.at for each in facts_of_message(text.encode())]


@pytest.mark.parametrize(
    "wrapped",
    [KILLED, [KILLED], otlp({"type": "MODIFIED", "object": KILLED}), otlp(KILLED), {"type": "DELETED", "object": KILLED}],
    ids=["object", "list", "watched by a collector", "pulled by a collector", "watch"],
)  # fmt: skip
def test_a_pod_shows_its_start_its_address_and_the_killed_container(wrapped) -> None:
    started, killed = marks(wrapped)
    assert ("started", "oom_killed") == (started["change"], killed["change"])
    assert (AT, "exit code 137", ["10.0.3.7"]) == (killed["marked_at"], killed["detail"], killed["addresses"])
    assert ("ReplicaSet/billing-7f9c", False, "node-3") == tuple(
        killed[name] for name in ("workload", "is_host_network", "node")
    )


CHANGES = {
    "drained": (pod(**condition("EvictionByEvictionAPI")), PodChange.DRAINED),
    "evicted by the kubelet": (pod(**condition("TerminationByKubelet")), PodChange.EVICTED),
    "taint": (pod(**condition("DeletionByTaintManager")), PodChange.EVICTED),
    "node removed": (pod(**condition("DeletionByPodGC")), PodChange.NODE_LOST),
    "drained and deleted": (deleted(pod(**condition("EvictionByEvictionAPI"))), PodChange.DRAINED),
    "before 1.26": (
        pod(
            reason="Evicted",
            conditions=[{"type": "Ready", "status": "False", "lastTransitionTime": "2026-11-21T12:30:00Z"}],
        ),
        PodChange.EVICTED,
    ),
    "deleted, with its grace period": (deleted(pod()), PodChange.DELETED),
    "failed": (pod(**terminated("Error", 1)), PodChange.CONTAINER_FAILED),
    "stopping": (event("Killing", "Stopping container app"), PodChange.DELETED),
    "eviction": (event("Evicted", "The node was low on resource: memory."), PodChange.EVICTED),
    "marked by a taint": (event("TaintManagerEviction", "Marking for deletion Pod payments/b"), PodChange.EVICTED),
    "node of a pod": (event("NodeNotReady", "Node is not ready"), PodChange.NODE_LOST),
    "node": (event("NodeNotReady", "Node node-3 status is now: NodeNotReady", "Node", "node-3"), PodChange.NODE_LOST),
    "replica set": (
        event("SuccessfulDelete", "Deleted pod: billing-7f9c-x2v5k", "ReplicaSet", "billing-7f9c"),
        PodChange.DELETED,
    ),
    "stateful set": (
        event("SuccessfulDelete", "delete Pod billing-0 in StatefulSet billing successful", "StatefulSet", "billing"),
        PodChange.DELETED,
    ),
}


@pytest.mark.parametrize(("found", "change"), CHANGES.values(), ids=CHANGES.keys())
def test_each_way_in_which_a_pod_ends_has_its_change_and_time(found, change) -> None:
    (row,) = (row for row in marks(found) if row["change"] != "started")
    assert (change, AT) == (row["change"], row["marked_at"])


@pytest.mark.parametrize(
    "found",
    [
        event("Pulled", "Container image is present"), event("BackOff", "Back-off restarting failed container"),
        event("Unhealthy", "Liveness probe failed"), event("TaintManagerEviction", "Cancelling deletion of Pod a/b"),
        event("ScalingReplicaSet", "Scaled up replica set", "Deployment", "billing"),
        pod(startTime=None), pod(startTime=None, **terminated("Completed", 0)),
        deleted(pod(startTime=None, **terminated("Error", 143, "2026-11-21T12:30:05Z")))
        | {"status": terminated("Completed", 0)} | {"metadata": pod()["metadata"]},
        {"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": {"resourceVersion": "1"}}},
    ],
)  # fmt: skip
def test_an_object_that_ends_no_pod_is_ignored(found) -> None:
    rows = read(json.dumps(found).encode())
    assert {} == {name: each for name, each in rows.items() if each}


def test_a_container_that_was_told_to_stop_did_not_fail() -> None:
    found = deleted(pod(**terminated("Error", 143, "2026-11-21T12:30:05Z")))
    assert ["started", "deleted"] == [row["change"] for row in marks(found)]


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (event() | {"firstTimestamp": "noon", "lastTimestamp": None}, "invalid_timestamp"),
        (event() | {"firstTimestamp": None, "lastTimestamp": None}, "invalid_timestamp"),
        (event(name="not a name!"), "invalid_envelope"),
        (pod(address="nowhere"), "invalid_envelope"),
        (pod(containerStatuses=[7]), "invalid_envelope"),
        (pod(containerStatuses=[{}] * 101), "oversized"),
    ],
)
def test_an_object_that_cannot_be_read_is_quarantined_without_its_content(found, reason) -> None:
    rows = read(json.dumps(found).encode())
    (row,) = rows["quarantine"]
    assert [] == rows["admin_observations"]
    assert (reason, None) == (row["reason"], row["raw_value"])


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(KILLED), json.dumps(KILLED)[:-9], json.dumps(pod(address="nowhere")), json.dumps(exported(event())),
        json.dumps({"log": json.dumps(KILLED)}), json.dumps(otlp({"type": "ADDED", "object": KILLED})),
        json.dumps(event("Killing", "Stopping container app") | {"metadata": {"annotations": SECRET}}),
    ],
)  # fmt: skip
def test_no_secret_of_a_pod_is_stored(text) -> None:
    assert SECRET not in repr(read(text.encode()))
    seen, refused, _ = rows_of_lines([PlacedLine("kubernetes-1.log", 1, text)], cluster="kafka")
    assert SECRET not in repr((seen, refused))
    seen, refused, _ = rows_of_lines([PlacedLine("k.log", 1, text[:900], is_oversized=True)], cluster="kafka")
    assert SECRET not in repr((seen, refused))


def test_a_batch_may_hold_log_lines_too() -> None:
    both = otlp({"type": "MODIFIED", "object": KILLED}, LINE)
    rows = read(json.dumps(both).encode())
    assert (2, 1) == (len(rows["admin_observations"]), len(rows["coordinator_events"]))


def test_a_repeated_event_counts_at_its_first_and_last_time() -> None:
    again = event() | {"firstTimestamp": "2026-11-21T12:10:00Z", "count": 4}
    assert [10, 30] == [row["marked_at"].minute for row in marks(again, event(), again)]


def test_a_source_needs_the_permission_to_send_objects_of_kubernetes() -> None:
    only = EventSource(topic="regroup-events", kinds=(Claim.MARK,))
    (row,) = read(json.dumps(event()).encode(), sources=(only,))["quarantine"]
    assert "untrusted_source" == row["reason"]
    allowed = EventSource(topic="regroup-events", kinds=(Claim.KUBERNETES,))
    assert 1 == len(read(json.dumps(event()).encode(), sources=(allowed,))["admin_observations"])


@given(st.permutations([event(), KILLED, newer_event(), deleted(pod()), pod(address="10.0.3.8"), event_record()]))
def test_the_rows_are_the_same_in_any_order_and_batches_and_if_repeated(contents) -> None:
    once = marks(event(), KILLED, newer_event(), deleted(pod()), pod(address="10.0.3.8"), event_record())
    assert once == marks(*contents) == marks(*contents, *contents[:3])
    in_one = " ".join(json.dumps(each, indent=2) for each in contents)
    assert once == mark_rows(read(in_one.encode())["admin_observations"])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from(["Pod", "Killing", "\ud800", "2026-11-21T12:30:00Z", "10.0.3.7", "Evicted"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["kind", "metadata", "status", "name", "uid", "reason", "containerStatuses", "conditions", "x"]),
        inner, max_size=4,
    ),
    max_leaves=8,
)  # fmt: skip
FIELDS = ("kind", "metadata", "spec", "status", "involvedObject", "regarding", "reason", "message", "lastTimestamp")


@given(st.dictionaries(st.sampled_from(FIELDS), JSON), st.sampled_from([event(), KILLED, event_record()]))
def test_no_json_raises_and_every_fact_survives_its_storage(changed, found) -> None:
    rows = read(json.dumps(found | changed).encode(), json.dumps({"items": [changed], "kind": "PodList"}).encode())
    mark_rows(rows["admin_observations"])
    for row in rows["admin_observations"]:
        kept = fact(json.loads(row["body"]))
        assert isinstance(kept, PodFact)
        assert kept.body == json.loads(row["body"])
    rows_of_lines([PlacedLine("k.log", 1, json.dumps(found | changed))], cluster="kafka")


@given(JSON)
def test_no_stored_body_raises(body) -> None:
    fact(body if isinstance(body, dict) else {"at": body, "change": "deleted", "pod": body})


@pytest.mark.parametrize("text", ["", "{", '{"a": "involvedObject"}', "[" * 5000 + '"Pod"', '{"kind": "Pod"}', LINE])
def test_other_texts_are_not_of_kubernetes(text) -> None:
    assert kubernetes(text) is None
