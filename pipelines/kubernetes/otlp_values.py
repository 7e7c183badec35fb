"""Values of OTLP/JSON as plain values, and log records of the OpenTelemetry Collector's receivers for Kubernetes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pipelines.decoding.record_times import instant
from pipelines.kubernetes.events import KubernetesEvent, change_of, facts_of
from pipelines.kubernetes.pod_facts import PodFact, name_in

NANOS = 1_000_000


def plain(value: Any) -> Any:
    """Return the plain value of an OTLP `AnyValue`; None for an unknown form."""
    found: Any = None
    match value:
        case {"kvlistValue": dict(inner)}:
            found = attributes(inner.get("values"))
        case {"arrayValue": dict(inner)}:
            found = [plain(each) for each in _listed(inner, "values")]
        case {"intValue": str(digits)} if digits.removeprefix("-").isdecimal() and len(digits) < 20:
            found = int(digits)  # OTLP/JSON writes 64-bit integers as text
        case {"stringValue": str(found)} | {"boolValue": bool(found)} | {"intValue": int(found)}:
            pass
        case {"doubleValue": float(found)}:
            pass
    return found


def attributes(listed: Any) -> dict[str, Any]:
    """Return a list of keys with values as a dict. Other entries are left out."""
    found = listed if isinstance(listed, list) else []
    return {
        each["key"]: plain(each.get("value"))
        for each in found
        if isinstance(each, dict) and isinstance(each.get("key"), str)
    }


def records(content: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], list[Any], int]]:
    """Yield the records of an ExportLogsServiceRequest: the resource's attributes, a list of records, and its index."""
    for resource in _listed(content, "resourceLogs"):
        named = attributes(_listed(resource.get("resource"), "attributes")) if isinstance(resource, dict) else {}
        for scope in _listed(resource, "scopeLogs"):
            found = _listed(scope, "logRecords")
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
    nanos, message = str(record.get("timeUnixNano")), plain(record.get("body"))
    ms = int(nanos) // NANOS if nanos.isascii() and nanos.isdigit() and len(nanos) < 20 else 0
    at = instant(ms) if ms else None
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


def _listed(content: Any, name: str) -> list[Any]:
    found = content.get(name) if isinstance(content, dict) else None
    return found if isinstance(found, list) else []
