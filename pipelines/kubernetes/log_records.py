"""Log records of the OpenTelemetry Collector's receivers for Kubernetes, in OTLP/JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pipelines.decoding.record_times import utc_datetime
from pipelines.kubernetes.events import KubernetesEvent, change_of, facts_of
from pipelines.kubernetes.pod_facts import PodFact, name_in
from pipelines.otlp.values import attributes, listed, milliseconds, plain


def records(content: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], list[Any], int]]:
    """Yield the records of an ExportLogsServiceRequest: the resource's attributes, a list of records, and its index."""
    for resource in listed(content, "resourceLogs"):
        named = attributes(listed(resource.get("resource"), "attributes")) if isinstance(resource, dict) else {}
        for scope in listed(resource, "scopeLogs"):
            found = listed(scope, "logRecords")
            yield from ((named, found, index) for index in range(len(found)))


def is_event_record(record: Mapping[str, Any]) -> bool:
    """Return whether a record is one of the `k8s_events` receiver, whose body is the message of an event."""
    return isinstance(attributes(record.get("attributes")).get("k8s.event.reason"), str)


def facts_of_record(record: Mapping[str, Any], resource: Mapping[str, Any]) -> list[PodFact]:
    """Return what a record of the `k8s_events` receiver shows.

    Raises:
        RefusedFactError: a field that is used is wrong or missing.
    """
    named = {**resource, **attributes(record.get("attributes"))}
    at, message = utc_datetime(milliseconds(record.get("timeUnixNano"))), plain(record.get("body"))
    path = str(named.get("k8s.object.fieldpath"))
    inside = path.removeprefix("spec.containers{").removesuffix("}") if path.startswith("spec.containers{") else ""
    found = KubernetesEvent(
        kind=str(named.get("k8s.object.kind")),
        namespace=name_in(named, "k8s.namespace.name") or "",
        name=name_in(named, "k8s.object.name"),
        uid=name_in(named, "k8s.object.uid"),
        container=name_in({"container": inside}, "container"),
        reason=str(named.get("k8s.event.reason")),
        message=message if isinstance(message, str) else "",
        node=name_in(named, "k8s.node.name"),
        times=() if at is None else (at,),
    )
    change = change_of(found)
    return [] if change is None else facts_of(found, change)
