"""Which pod a member ran in, and what happened to that pod shortly before the member was gone.

A member is joined to a pod only if exactly one pod fits and that pod lived when the member joined: by the pod's
address, which is the member's client host, or else by the pod's name, which is its client id or instance id or a whole
word of them. Pods in the host network share the address of their node, so they are joined by name only.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from ipaddress import ip_address
from itertools import pairwise

from pipelines.gold.instance_tracker import Membership
from schemas.rows import MarkRow, PodChangeRow
from schemas.states import Evidence, GroupEventKind, PodChange
from schemas.thresholds import DEFAULT_SESSION_MS, MARK_MS, MINUTE_MS

SLACK_MS = 2_000
"""Kubernetes writes most times in whole seconds, and clocks of nodes and brokers differ a little."""

STOPPING_MS = 60_000
"""Longest time, in addition to the session timeout, from the change of a pod to the end of its member. A pod has 30 s
by default to stop (`terminationGracePeriodSeconds`).
"""

FAILURES = (
    PodChange.OOM_KILLED,
    PodChange.NODE_LOST,
    PodChange.EVICTED,
    PodChange.PROBE_FAILED,
    PodChange.CONTAINER_FAILED,
)
PLANNED = (PodChange.DRAINED, PodChange.DELETED)
RANK = (
    PodChange.OOM_KILLED,
    PodChange.NODE_LOST,
    PodChange.EVICTED,
    PodChange.DRAINED,
    PodChange.PROBE_FAILED,
    PodChange.CONTAINER_FAILED,
    PodChange.DELETED,
)
"""The most specific change first: a pod that is evicted is deleted too, and a killed container has an exit code."""

SUDDEN = (PodChange.OOM_KILLED, PodChange.NODE_LOST)
"""Changes after which a process cannot send a leave request."""

OVER = (PodChange.EVICTED, PodChange.DRAINED, PodChange.DELETED)
"""Changes after which the pod starts no process any more."""

# No name of Kubernetes has other characters than these. Capital letters do not separate words.
_SEPARATORS = re.compile(r"[^A-Za-z0-9.-]+")
_STREAMS = re.compile(r"-StreamThread-\d+(?:-.*)?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """One pod. `starts_at` and `ends_at` are None if no report shows them; times are in milliseconds."""

    namespace: str
    name: str
    uid: str | None
    addresses: frozenset[str]
    node: str | None
    is_host_network: bool
    starts_at: int | None
    ends_at: int | None
    changes: tuple[MarkRow, ...]

    def may_have_lived(self, at: int) -> bool:
        is_started = self.starts_at is None or self.starts_at <= at + SLACK_MS
        return is_started and (self.ends_at is None or at <= self.ends_at + SLACK_MS)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodEnd:
    """A change of a member's pod shortly before the member was gone, `before_ms` earlier (at least 0).

    `is_by_address`: whether the pod was found by its address, and not by its name.
    """

    change: MarkRow
    before_ms: int
    is_by_address: bool

    @property
    def kind(self) -> PodChange:
        return PodChange(self.change["change"] or "")

    @property
    def pod(self) -> str:
        """The name of the pod or, for a change of the node, of the node."""
        return self.change["pod"] or self.change["node"] or ""

    def row(self, instance: str) -> PodChangeRow:
        """Return the element of `verdicts.pod_changes`."""
        return {
            "changed_ms": self.change["marked_at"],
            "change": self.kind.value,
            "text": self.change["text"],
            "detail": self.change["detail"] or "",
            "instance": instance,
            "joined_by": "address" if self.is_by_address else "name",
        }


@dataclass(frozen=True, slots=True)
class PodIndex:
    """The pods of one cluster, by address and by name, and the changes of their nodes."""

    by_address: Mapping[str, Sequence[Pod]] = field(default_factory=dict)
    by_name: Mapping[str, Sequence[Pod]] = field(default_factory=dict)
    of_node: Mapping[str, Sequence[MarkRow]] = field(default_factory=dict)

    def end_of(self, membership: Membership) -> PodEnd | None:
        """Return what happened to the member's pod shortly before the member was gone.

        None: nothing is known, several pods fit, or the member is not gone.
        """
        if membership.gone_at is None or not self.by_name:
            return None
        found = self._pod(membership)
        if found is None:
            return None
        pod, is_by_address = found
        of_node = self.of_node.get(pod.node, ()) if pod.node is not None else ()
        near = [c for c in (*pod.changes, *of_node) if _is_near(c, membership)]
        if not near:
            return None
        gone_at = membership.gone_at
        chosen = min(near, key=lambda c: (RANK.index(PodChange(c["change"] or "")), -c["marked_at"], c["text"]))
        return PodEnd(
            change=chosen,
            before_ms=max(0, gone_at - chosen["marked_at"]),
            is_by_address=is_by_address,
        )

    def _pod(self, membership: Membership) -> tuple[Pod, bool] | None:
        arrived_at, host = membership.arrived_at, address_of(membership.client_host)
        there = [pod for pod in self.by_address.get(host, ()) if pod.may_have_lived(arrived_at)]
        words = words_of(membership)
        if len(there) > 1 or any(pod.is_host_network for pod in there):
            there = [pod for pod in there if pod.name in words]
        if len(there) == 1:
            return there[0], True
        if there:
            return None
        named = {
            id(pod): pod
            for word in sorted(words)
            for pod in self.by_name.get(word, ())
            if pod.may_have_lived(arrived_at)
        }
        if len(named) != 1:
            return None
        (only,) = named.values()
        return only, False


NO_PODS = PodIndex()


def pod_index(marks: Iterable[MarkRow]) -> PodIndex:
    """Return the pods in the marks of one cluster, which may be in any order. Marks of people are left out."""
    reports = sorted((m for m in marks if m["change"] is not None), key=lambda m: (m["marked_at"], m["text"]))
    by_pod: dict[tuple[str, str], dict[str | None, list[MarkRow]]] = defaultdict(lambda: defaultdict(list))
    of_node: dict[str, list[MarkRow]] = defaultdict(list)
    for mark in reports:
        if mark["pod"] is not None:
            by_pod[mark["namespace"] or "", mark["pod"]][mark["pod_uid"]].append(mark)
        elif mark["node"] is not None:
            of_node[mark["node"]].append(mark)
    by_address: dict[str, list[Pod]] = defaultdict(list)
    by_name: dict[str, list[Pod]] = defaultdict(list)
    for (namespace, name), by_uid in sorted(by_pod.items()):
        for pod in _pods_of_name(namespace, name, by_uid):
            by_name[name].append(pod)
            for address in sorted(pod.addresses):
                by_address[address].append(pod)
    return PodIndex(dict(by_address), dict(by_name), dict(of_node))


def pod_digests(marks: Iterable[MarkRow]) -> dict[str, str]:
    """Return a digest of the changes of pods in each minute that has some, by the minute since 1970 as text.

    Changes in the marks show as another digest, whatever their order.
    """
    by_minute: dict[int, list[str]] = defaultdict(list)
    for mark in marks:
        if mark["change"] is not None:
            by_minute[mark["marked_at"] // MINUTE_MS].append(json.dumps(mark, sort_keys=True))
    return {
        str(minute): sha256("\n".join(sorted(found)).encode("utf-8", "replace")).hexdigest()[:16]
        for minute, found in sorted(by_minute.items())
    }


def address_of(client_host: str) -> str:
    """Return the address of a client host (`/10.0.3.7`) in its shortest form; other hosts as they are."""
    host = client_host.removeprefix("/")
    try:
        return str(ip_address(host))
    except ValueError:
        return host


def words_of(membership: Membership) -> frozenset[str]:
    """Return the words of a member's client id and instance id that may be the name of its pod.

    The whole id, its parts between characters that no name of Kubernetes has, the host of a DNS name, and the id
    without what Kafka Streams appends to it. A part of a word with hyphens is no word: it may begin a longer name.
    """
    out: set[str] = set()
    for text in (membership.client_id, membership.group_instance_id or ""):
        for form in (text, _STREAMS.sub("", text)):
            words = [form, *_SEPARATORS.split(form)]
            out.update(words, (word.partition(".")[0] for word in words))
    return frozenset(word for word in out if word)


def _pods_of_name(namespace: str, name: str, by_uid: Mapping[str | None, Sequence[MarkRow]]) -> list[Pod]:
    """Return the pods that had this name one after another: Kubernetes has one pod of a name at a time."""
    unnamed, known = by_uid.get(None, ()), {uid: rows for uid, rows in by_uid.items() if uid is not None}
    if not known:
        return [_pod(namespace, name, None, unnamed, None)]
    starts = sorted((_start(rows), uid) for uid, rows in known.items() if _start(rows) is not None)
    following = {uid: after for (_, uid), (after, _) in pairwise(starts)}
    pods = [_pod(namespace, name, uid, rows, following.get(uid)) for uid, rows in sorted(known.items())]
    # Controllers report deletions by name only.
    return [_with_unnamed(pod, [m for m in unnamed if pod.may_have_lived(m["marked_at"])]) for pod in pods]


def _start(rows: Iterable[MarkRow]) -> int | None:
    return min((m["marked_at"] for m in rows if m["change"] == PodChange.STARTED), default=None)


def _pod(namespace: str, name: str, uid: str | None, rows: Sequence[MarkRow], replaced_at: int | None) -> Pod:
    ended = [m["marked_at"] for m in rows if m["change"] in OVER]
    ends = [*ended[:1], *([] if replaced_at is None else [replaced_at])]
    return Pod(
        namespace=namespace,
        name=name,
        uid=uid,
        addresses=frozenset(address for m in rows for address in m["addresses"] or ()),
        node=min((m["node"] for m in rows if m["node"] is not None), default=None),
        is_host_network=any(m["is_host_network"] for m in rows),
        starts_at=_start(rows),
        ends_at=min(ends, default=None),
        changes=tuple(m for m in rows if m["change"] != PodChange.STARTED),
    )


def _with_unnamed(pod: Pod, further: Sequence[MarkRow]) -> Pod:
    if not further:
        return pod
    changes = sorted((*pod.changes, *further), key=lambda m: (m["marked_at"], m["text"]))
    ended = next((m["marked_at"] for m in changes if m["change"] in OVER), None)
    ends_at = min((at for at in (pod.ends_at, ended) if at is not None), default=None)
    return replace(pod, changes=tuple(changes), ends_at=ends_at)


def _is_near(change: MarkRow, membership: Membership) -> bool:
    """Return whether a change during the membership may have ended it."""
    gone_at, at = membership.gone_at or 0, change["marked_at"]
    longest = min(MARK_MS, (membership.session_timeout_ms or DEFAULT_SESSION_MS) + STOPPING_MS)
    if not max(membership.arrived_at - SLACK_MS, gone_at - longest) <= at <= gone_at + SLACK_MS:
        return False
    has_left = membership.departure_kind == GroupEventKind.LEFT and membership.evidence == Evidence.OBSERVED
    return not (has_left and change["change"] in SUDDEN)
