"""Event objects of the core/v1 and events.k8s.io/v1 APIs to facts about the pod or node that they are about.

docs/kubernetes.md has the source of each reason and message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from pipelines.kubernetes.pod_facts import PodFact, RefusedFactError, checked, name_in, text_in, time_of
from schemas.states import PodChange, QuarantineReason

_CONTAINER = re.compile(r"spec\.containers\{([A-Za-z0-9.-]{1,63})\}")
_DELETED = re.compile(r"(?:Deleted pod: |delete Pod )([a-z0-9][a-z0-9.-]{0,252})(?: in StatefulSet \S+ successful)?")
_ANY = re.compile("")
SHOWN = (
    ("Pod", "Killing", re.compile(r".*failed (?:liveness|startup) probe", re.IGNORECASE), PodChange.PROBE_FAILED),
    ("Pod", "Killing", re.compile(r"Stopping container |.*:Need to kill Pod"), PodChange.DELETED),
    ("Pod", "Evicted", _ANY, PodChange.EVICTED),
    ("Pod", "Preempted", _ANY, PodChange.EVICTED),
    ("Pod", "TaintManagerEviction", re.compile("Marking for deletion"), PodChange.EVICTED),
    ("Pod", "NodeNotReady", _ANY, PodChange.NODE_LOST),
    *(
        ("Node", reason, _ANY, PodChange.NODE_LOST)
        for reason in ("NodeNotReady", "RemovingNode", "DeletingNode", "Rebooted", "Shutdown")
    ),
    *((kind, "SuccessfulDelete", _DELETED, PodChange.DELETED) for kind in ("ReplicaSet", "StatefulSet", "DaemonSet")),
)
"""Kind of the object, reason, beginning of the message, and what an event with these shows."""


class KubernetesEvent(NamedTuple):
    """The fields of an event that facts are made from. A repeated event has its first and last times."""

    kind: str
    namespace: str
    name: str | None
    uid: str | None
    container: str | None
    reason: str
    message: str
    node: str | None
    times: tuple[datetime, ...]


def is_event(content: Mapping[str, Any]) -> bool:
    """Return whether the object is an event of either API. Exporters leave out its `kind`."""
    about = content.get("involvedObject") or content.get("regarding")
    return isinstance(about, dict) and isinstance(content.get("reason"), str)


def facts_of_event(content: Mapping[str, Any]) -> list[PodFact]:
    """Return what an event object shows; an empty list if it does not end a pod.

    Raises:
        RefusedFactError: a field that is used is wrong or missing.
    """
    about = content.get("involvedObject") or content.get("regarding") or {}
    source = content.get("source") or content.get("deprecatedSource")
    message = content.get("message") or content.get("note")
    reason = str(content.get("reason"))
    container = _CONTAINER.fullmatch(str(about.get("fieldPath")))
    found = KubernetesEvent(
        kind=str(about.get("kind")),
        namespace=name_in(about, "namespace") or "",
        name=name_in(about, "name"),
        uid=name_in(about, "uid"),
        container=container[1] if container else None,
        reason=reason,
        message=message if isinstance(message, str) else "",
        node=name_in(source, "host") if isinstance(source, dict) else None,
        times=(),
    )
    change = change_of(found)
    return [] if change is None else facts_of(found._replace(times=_times(content)), change)


def change_of(event: KubernetesEvent) -> PodChange | None:
    """Return what the event shows of a pod or node, or None for all other events."""
    matching = (
        change
        for kind, reason, text, change in SHOWN
        if (kind, reason) == (event.kind, event.reason) and text.match(event.message)
    )
    return next(matching, None)


def facts_of(event: KubernetesEvent, change: PodChange) -> list[PodFact]:
    """Return the fact of an event once for each of its times.

    Raises:
        RefusedFactError: the event has no time, or names no object.
    """
    if not event.times:
        raise RefusedFactError("the event has no time", QuarantineReason.INVALID_TIMESTAMP)
    if event.name is None:
        raise RefusedFactError("the event names no object")
    plain = PodFact(at=event.times[0], change=change, namespace=event.namespace, node=event.node)
    if event.kind == "Node":
        plain = plain._replace(node=event.name, namespace="")
    elif event.kind == "Pod":
        plain = plain._replace(pod=event.name, uid=event.uid, container=event.container)
    else:
        deleted = _DELETED.match(event.message)
        plain = plain._replace(pod=deleted[1] if deleted else "", workload=f"{event.kind}/{event.name}", node=None)
    if change == PodChange.DELETED:
        # One of several containers stops; the whole pod is deleted.
        plain = plain._replace(container=None)
    else:
        detail = f"{event.reason}: {event.message}" if event.message else event.reason
        plain = plain._replace(detail=text_in({"detail": detail}, "detail"))
    return [checked(plain._replace(at=at)) for at in sorted(set(event.times))]


def _times(content: Mapping[str, Any]) -> tuple[datetime, ...]:
    series = content.get("series")
    last = series.get("lastObservedTime") if isinstance(series, dict) else None
    names = ("eventTime", "firstTimestamp", "lastTimestamp", "deprecatedFirstTimestamp", "deprecatedLastTimestamp")
    found = [time_of(value) for value in (last, *(content.get(name) for name in names))]
    if not any(found):
        metadata = content.get("metadata")
        found = [time_of(metadata.get("creationTimestamp")) if isinstance(metadata, dict) else None]
    return tuple(at for at in found if at is not None)
