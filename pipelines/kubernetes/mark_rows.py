"""Facts about pods, from rows of `admin_observations` to rows of `marks`."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from pipelines.kubernetes.pod_facts import PodFact, fact
from schemas.states import MarkKind, PodChange

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

WORDS: Mapping[PodChange, str] = {
    PodChange.STARTED: "started",
    PodChange.OOM_KILLED: "OOMKilled",
    PodChange.PROBE_FAILED: "killed by a probe",
    PodChange.CONTAINER_FAILED: "container failed",
    PodChange.EVICTED: "evicted",
    PodChange.NODE_LOST: "node gone",
    PodChange.DRAINED: "drained",
    PodChange.DELETED: "deleted",
}


def pod_mark_rows(observations: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows of `marks` from rows of `admin_observations` of the kind `kubernetes`, in any order.

    A change that was reported more than once becomes one row that combines all reports. If the reports differ, the id
    of the pod and the host network are NULL, and of any other text the smallest value is used.
    """
    by_change: dict[tuple[Any, ...], list[PodFact]] = defaultdict(list)
    for row in observations:
        found = fact(json.loads(row["body"]))
        if isinstance(found, PodFact):
            by_change[row["cluster"], found.at, text_of(found)].append(found)
    return [_row(key, facts) for key, facts in sorted(by_change.items(), key=lambda item: item[0])]


def text_of(found: PodFact) -> str:
    """Return the change in words: `OOMKilled payments/billing-7f (container app)`."""
    where = f"{found.namespace}/{found.pod}" if found.namespace else found.pod
    inside = f" (container {found.container})" if found.container else ""
    return f"{WORDS[found.change]} {where or found.node}{inside}"


def _row(key: tuple[Any, ...], facts: list[PodFact]) -> dict[str, Any]:
    cluster, at, text = key
    # Names of hostile senders may give equal texts for different pods.
    one = min(facts, key=lambda each: (each.change, each.namespace, each.pod, each.container or ""))
    return {
        "cluster": cluster,
        "marked_at": at,
        "kind": str(MarkKind.KUBERNETES),
        "text": text,
        "group_id": None,
        "group_ids": None,
        "marked_by": None,
        "change": str(one.change),
        "namespace": one.namespace,
        "pod": one.pod or None,
        "pod_uid": _agreed({each.uid for each in facts}),
        "addresses": sorted({address for each in facts for address in each.addresses}),
        "node": min((each.node for each in facts if each.node), default=None),
        "container": one.container,
        "workload": min((each.workload for each in facts if each.workload), default=None),
        "is_host_network": _agreed({each.is_host_network for each in facts}),
        "detail": min((each.detail for each in facts if each.detail), default=None),
    }


def _agreed(values: set[Any]) -> Any:
    """Return the only known value; None if no value is known, or several are."""
    known = values - {None}
    return next(iter(known)) if len(known) == 1 else None
