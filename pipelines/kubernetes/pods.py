"""Pod objects of the core/v1 API to facts: when a pod started, and how it or its containers ended.

docs/kubernetes.md has the source of each field.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from pipelines.decoding.record_times import EPOCH
from pipelines.kubernetes.pod_facts import PodFact, RefusedFactError, addresses, checked, name_in, text_in, time_of
from schemas.states import PodChange, QuarantineReason

OOM_KILLED = "OOMKilled"
MOST_CONTAINERS, MOST_CONDITIONS = 100, 100
"""Limits for senders of any JSON; real pods have a few of each."""

DISRUPTIONS: Mapping[str, PodChange] = {
    "EvictionByEvictionAPI": PodChange.DRAINED,
    "TerminationByKubelet": PodChange.EVICTED,
    "PreemptionByScheduler": PodChange.EVICTED,
    "DeletionByTaintManager": PodChange.EVICTED,
    "DeletionByPodGC": PodChange.NODE_LOST,
}
"""Reasons of the condition `DisruptionTarget`, which a pod has before a component of Kubernetes ends it."""


def facts_of_pod(pod: Mapping[str, Any]) -> list[PodFact]:
    """Return what the state of a pod shows. A pod that has not started yet shows nothing.

    Raises:
        RefusedFactError: a field that is used is wrong.
    """
    metadata, spec, status = (_inner(pod, name) for name in ("metadata", "spec", "status"))
    if name_in(metadata, "name") is None:
        return []  # a bookmark of a watch
    deleted = _deletion(metadata)
    plain = _plain(metadata, spec, status)
    ended = [*_containers(plain, status, deleted), *_pod(plain, status, deleted)]
    started = time_of(status.get("startTime"))
    begun = [] if started is None else [plain._replace(at=started, change=PodChange.STARTED)]
    return [checked(found) for found in (*begun, *ended)]


def _plain(metadata: Mapping[str, Any], spec: Mapping[str, Any], status: Mapping[str, Any]) -> PodFact:
    """Return the fields that all facts of the pod share, with any time."""
    listed = status.get("podIPs")
    further = [each.get("ip") for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    host_network = spec.get("hostNetwork")
    return PodFact(
        at=EPOCH,
        change=PodChange.STARTED,
        namespace=name_in(metadata, "namespace") or "",
        pod=name_in(metadata, "name") or "",
        uid=name_in(metadata, "uid"),
        addresses=addresses([status.get("podIP"), *further]),
        node=name_in(spec, "nodeName"),
        workload=_owner(metadata),
        # The field is absent if it is false. A pod without a spec, as in a partial object, shows neither.
        is_host_network=host_network if isinstance(host_network, bool) else (False if spec else None),
    )


def _owner(metadata: Mapping[str, Any]) -> str | None:
    owners = metadata.get("ownerReferences")
    for owner in owners if isinstance(owners, list) else ():
        if isinstance(owner, dict) and owner.get("controller") is True:
            kind, name = name_in(owner, "kind"), name_in(owner, "name")
            return f"{kind}/{name}" if kind and name else None
    return None


def _deletion(metadata: Mapping[str, Any]) -> datetime | None:
    """Return when the deletion was requested: `deletionTimestamp` is later by the grace period."""
    at = time_of(metadata.get("deletionTimestamp"))
    grace = metadata.get("deletionGracePeriodSeconds")
    if at is None or not isinstance(grace, int) or isinstance(grace, bool) or not 0 <= grace <= 10**6:
        return at
    return at - timedelta(seconds=grace)


def _containers(plain: PodFact, status: Mapping[str, Any], deleted: datetime | None) -> Iterator[PodFact]:
    listed = status.get("containerStatuses")
    if isinstance(listed, list) and len(listed) > MOST_CONTAINERS:
        raise RefusedFactError(f"the pod has more than {MOST_CONTAINERS} containers", QuarantineReason.OVERSIZED)
    for container in listed if isinstance(listed, list) else ():
        if not isinstance(container, dict):
            raise RefusedFactError("containerStatuses is not a list of objects")
        name = name_in(container, "name")
        for when in ("lastState", "state"):
            ended = _inner(_inner(container, when), "terminated")
            at, code = time_of(ended.get("finishedAt")), ended.get("exitCode")
            if at is None or not isinstance(code, int) or isinstance(code, bool):
                continue
            of_container = plain._replace(at=at, container=name, detail=f"exit code {code}"[:20])
            if ended.get("reason") == OOM_KILLED:
                yield of_container._replace(change=PodChange.OOM_KILLED)
            elif code != 0 and (deleted is None or at < deleted):
                # A container that is told to stop may exit with 143 or 137, which is no failure.
                yield of_container._replace(change=PodChange.CONTAINER_FAILED)


def _pod(plain: PodFact, status: Mapping[str, Any], deleted: datetime | None) -> Iterator[PodFact]:
    conditions = status.get("conditions")
    listed = conditions[:MOST_CONDITIONS] if isinstance(conditions, list) else []
    found = [each for each in listed if isinstance(each, dict)]
    ended = False
    for each in found:
        change = DISRUPTIONS.get(str(each.get("reason")))
        at = time_of(each.get("lastTransitionTime"))
        if each.get("type") == "DisruptionTarget" and each.get("status") == "True" and change and at:
            ended = True
            yield plain._replace(at=at, change=change, detail=text_in(each, "reason"))
    if ended:
        return
    if status.get("reason") == "Evicted":
        # Kubernetes before 1.26 has no DisruptionTarget; the pod then stopped being ready when it was evicted.
        unready = (each.get("lastTransitionTime") for each in found if _is_unready(each))
        if (at := next(filter(None, map(time_of, unready)), deleted)) is not None:
            yield plain._replace(at=at, change=PodChange.EVICTED, detail="Evicted")
    elif deleted is not None:
        is_lost = status.get("reason") == "NodeLost"
        yield plain._replace(at=deleted, change=PodChange.NODE_LOST if is_lost else PodChange.DELETED)


def _is_unready(condition: Mapping[str, Any]) -> bool:
    return condition.get("type") == "Ready" and condition.get("status") == "False"


def _inner(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = content.get(name)
    return found if isinstance(found, dict) else {}
