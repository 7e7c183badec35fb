"""Objects of Kubernetes and the envelopes of their senders, with the fields that real ones have."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]
UID = "0b5f6c1e-8a55-4a2b-9c57-0d1f3f4c9a11"
SECRET = "hunter2-never-stored"


def pod(name: str = "billing-7f9c-x2v5k", *, address: str = "10.0.3.7", uid: str = UID, **status: Any) -> Object:
    """A running pod, as `kubectl get pod -o json` writes it, with a secret in its environment and annotations."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "payments",
            "uid": uid,
            "creationTimestamp": "2026-11-21T12:00:00Z",
            "annotations": {"vault/token": SECRET},
            "ownerReferences": [{"kind": "ReplicaSet", "name": "billing-7f9c", "controller": True}],
        },
        "spec": {
            "nodeName": "node-3",
            "containers": [{"name": "app", "env": [{"name": "PASSWORD", "value": SECRET}], "command": [SECRET]}],
        },
        "status": {
            "phase": "Running",
            "podIP": address,
            "podIPs": [{"ip": address}],
            "startTime": "2026-11-21T12:00:01Z",
            **status,
        },
    }


def terminated(reason: str = "OOMKilled", code: int = 137, at: str = "2026-11-21T12:30:00Z") -> Object:
    """The status of a container that ended and was started again."""
    ended = {"exitCode": code, "reason": reason, "finishedAt": at, "startedAt": "2026-11-21T12:00:02Z"}
    return {
        "containerStatuses": [
            {"name": "app", "restartCount": 1, "lastState": {"terminated": ended}, "state": {"running": {}}}
        ]
    }


def condition(reason: str, at: str = "2026-11-21T12:30:00Z") -> Object:
    return {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": reason, "lastTransitionTime": at}]}


def deleted(found: Object, at: str = "2026-11-21T12:30:30Z", grace: int = 30) -> Object:
    return found | {"metadata": found["metadata"] | {"deletionTimestamp": at, "deletionGracePeriodSeconds": grace}}


def event(
    reason: str = "Killing",
    message: str = "Container app failed liveness probe, will be restarted",
    kind: str = "Pod",
    name: str = "billing-7f9c-x2v5k",
) -> Object:
    """An event of the core/v1 API, as `kubectl get events -o json` writes it."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.17a", "namespace": "payments", "uid": "e1"},
        "involvedObject": {
            "kind": kind,
            "namespace": "payments",
            "name": name,
            "uid": UID,
            "fieldPath": "spec.containers{app}",
        },
        "reason": reason,
        "message": message,
        "type": "Normal",
        "source": {"component": "kubelet", "host": "node-3"},
        "eventTime": None,
        "firstTimestamp": "2026-11-21T12:30:00Z",
        "lastTimestamp": "2026-11-21T12:30:00Z",
        "count": 1,
    }


def newer_event() -> Object:
    """The same event of the events.k8s.io/v1 API."""
    old = event()
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": old["metadata"],
        "regarding": old["involvedObject"],
        "reason": old["reason"],
        "note": old["message"],
        "eventTime": "2026-11-21T12:30:00.000000Z",
        "deprecatedSource": {"component": "kubelet", "host": "node-3"},
    }


def exported(found: Object) -> Object:
    """An event as kubernetes-event-exporter writes it: without its kind, with labels of the object."""
    kept = {name: value for name, value in found.items() if name not in ("apiVersion", "kind")}
    about = kept["involvedObject"] | {"labels": {"app": "billing"}, "annotations": {"vault/token": SECRET}}
    return kept | {"involvedObject": about, "clusterName": "prod"}


def otlp_value(value: Any) -> Object:
    match value:
        case bool():
            return {"boolValue": value}
        case str():
            return {"stringValue": value}
        case int():
            return {"intValue": str(value)}
        case dict():
            return {"kvlistValue": {"values": [{"key": k, "value": otlp_value(v)} for k, v in value.items()]}}
        case list():
            return {"arrayValue": {"values": [otlp_value(each) for each in value]}}
    return {}


def otlp(*bodies: Any, attributes: Object | None = None, resource: Object | None = None) -> Object:
    """A batch of log records in OTLP/JSON."""
    listed = [
        {
            "timeUnixNano": "1795264200000000000",
            "body": otlp_value(body),
            "attributes": otlp_value(attributes or {})["kvlistValue"]["values"],
        }
        for body in bodies
    ]
    named = otlp_value(resource or {})["kvlistValue"]["values"]
    return {"resourceLogs": [{"resource": {"attributes": named}, "scopeLogs": [{"logRecords": listed}]}]}


def event_record() -> Object:
    """The batch that the `k8s_events` receiver makes of `event()`."""
    return otlp(
        event()["message"],
        attributes={"k8s.event.reason": "Killing", "k8s.event.count": 1, "k8s.namespace.name": "payments"},
        resource={
            "k8s.node.name": "node-3",
            "k8s.object.kind": "Pod",
            "k8s.object.name": "billing-7f9c-x2v5k",
            "k8s.object.uid": UID,
            "k8s.object.fieldpath": "spec.containers{app}",
        },
    )
