"""Why instances left and returned: the cause of each end of a membership, judged from all memberships of the group.

Records do not contain "deploy" or "crash loop". These are patterns, so their evidence is inferred. Causes reported by
the coordinator's log lines or by clients (poll timeout, expired session) are used as reported, and so is what
Kubernetes reported of a member's pod.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median, median_low

from pipelines.gold.instance_tracker import Instance, Membership, is_same_process
from pipelines.gold.pod_ends import FAILURES, NO_PODS, PodEnd, PodIndex
from schemas.states import DiagnosisCause, Evidence, GroupEventKind
from schemas.thresholds import LOOP, PAUSED_MS, POLL_SLACK_MS, REPLACED_MS, RESTART_MS, SHORT_LIFE_MS, TOGETHER_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """The end of `membership`. `back` is the next membership of the same instance, if there is one.

    `pod` is what Kubernetes reported of the member's pod shortly before; None if nothing is known.
    """

    instance: Instance
    membership: Membership
    back: Membership | None
    cause: DiagnosisCause
    evidence: Evidence
    pod: PodEnd | None = None

    @property
    def at(self) -> int:
        return self.membership.gone_at or self.membership.settled_at

    @property
    def is_only_paused(self) -> bool:
        """Whether its session expired and the same process came back."""
        is_expiry = self.membership.departure_kind == GroupEventKind.SESSION_EXPIRED
        return is_expiry and self.back is not None and is_same_process(self.membership, self.back)

    @property
    def away_ms(self) -> int | None:
        """Milliseconds from its removal to its return; negative if the next process joined before; None if not back."""
        return None if self.back is None else self.back.arrived_at - self.at


def departures(instances: Sequence[Instance], *, leaves_on_close: bool, pods: PodIndex = NO_PODS) -> list[Departure]:
    """Return every departure, in order of time. `pods` are the pods of the cluster.

    `leaves_on_close` is False for classic Kafka Streams, whose members never send a leave request
    (`internal.leave.group.on.close`).
    """
    found = [
        Departure(
            instance=instance,
            membership=membership,
            back=back,
            cause=_first_guess(membership, back),
            evidence=membership.evidence,
            pod=pods.end_of(membership),
        )
        for instance in instances
        for membership, back in zip(instance.memberships, [*instance.memberships[1:], None], strict=True)
        if membership.is_over
    ]
    found.sort(key=lambda d: (d.at, d.instance.label, d.instance.number, d.membership.settled_at))
    changed = dict(_by_length(found))
    deploys = _deploys(found, changed, instances, leaves_on_close=leaves_on_close)
    stopped = {id(d) for d in found if d.pod is not None and d.pod.kind not in FAILURES}
    planned = frozenset(deploys) | frozenset(map(id, _stops_of_group(found, instances))) | stopped
    loops = dict(_loops(found, changed, planned))
    replaced = _replaced(found, instances)
    out = []
    for d in found:
        cause = deploys.get(id(d)) or loops.get(id(d)) or changed.get(id(d)) or replaced.get(id(d)) or d.cause
        if (by_pod := _by_pod(d, cause)) is not None:
            out.append(replace(d, cause=by_pod, evidence=Evidence.OBSERVED))
            continue
        is_logged = cause == d.cause and cause in (DiagnosisCause.POLL_TIMEOUT, DiagnosisCause.SESSION_EXPIRY)
        evidence = d.evidence if is_logged else Evidence.INFERRED
        out.append(replace(d, cause=cause, evidence=evidence))
    return out


def lost_together(
    d: Departure, gone: Iterable[Departure], instances: Iterable[Instance]
) -> tuple[list[Departure], list[Membership]]:
    """Return the departures among `gone` within seconds of `d`, itself included, and who was in the group before."""
    near = [o for o in gone if abs(o.at - d.at) <= TOGETHER_MS]
    there = [
        s
        for instance in instances
        for s in instance.memberships
        if s.arrived_at < d.at - TOGETHER_MS and (s.gone_at or d.at) >= d.at - TOGETHER_MS
    ]
    return near, there


def arrivals_of_replacements(found: Iterable[Departure], instances: Iterable[Instance]) -> set[int]:
    """Return the numbers of the instances that replaced an instance which left for good."""
    return {new for _, new in _pairs(list(found), list(instances))}


def replaced(found: Iterable[Departure], instances: Iterable[Instance]) -> set[int]:
    """Return the numbers of the instances that left for good and that a new instance replaced."""
    return {d.instance.number for d, _ in _pairs(list(found), list(instances))}


def _by_pod(d: Departure, cause: DiagnosisCause) -> DiagnosisCause | None:
    """Return the cause that the end of the pod shows; None if no pod is known, or if `cause` takes precedence.

    A late poll that the coordinator or the client reported is the cause, whatever happened to the pod. A crash loop
    takes precedence over the failures of single pods.
    """
    if d.pod is None or d.membership.departure_kind == GroupEventKind.POLL_TIMEOUT:
        return None
    if d.pod.kind in FAILURES:
        return None if cause == DiagnosisCause.CRASH_LOOP else DiagnosisCause.POD_FAILURE
    if cause in (DiagnosisCause.DEPLOY, DiagnosisCause.SCALING):
        return cause
    was_restarted = d.away_ms is not None and d.away_ms <= RESTART_MS
    return DiagnosisCause.DEPLOY if was_restarted else DiagnosisCause.SCALING


def _first_guess(membership: Membership, back: Membership | None) -> DiagnosisCause:
    match membership.departure_kind:
        case GroupEventKind.POLL_TIMEOUT:
            return DiagnosisCause.POLL_TIMEOUT
        case GroupEventKind.SESSION_EXPIRED:
            return DiagnosisCause.SESSION_EXPIRY
        case GroupEventKind.LEFT:
            gone = membership.gone_at or 0
            was_restarted = back is not None and back.arrived_at - gone <= RESTART_MS
            return DiagnosisCause.DEPLOY if was_restarted else DiagnosisCause.SCALING
    return DiagnosisCause.UNKNOWN


def _by_instance(found: Iterable[Departure]) -> Iterator[list[Departure]]:
    mine: dict[int, list[Departure]] = {}
    for d in found:
        mine.setdefault(d.instance.number, []).append(d)
    yield from mine.values()


def _by_length(found: Sequence[Departure]) -> Iterator[tuple[int, DiagnosisCause]]:
    """Yield departures without a recorded reason of instances whose memberships repeatedly last as long as a poll may
    take.
    """
    for mine in _by_instance(found):
        silent = [d for d in mine if _may_be_a_poll(d.membership) and d.back]
        alike = [d for d in silent if lasts_a_poll(d.membership)]
        if len(alike) >= LOOP and 3 * len(alike) >= 2 * len(silent):
            yield from ((id(d), DiagnosisCause.POLL_TIMEOUT) for d in alike)


def _may_be_a_poll(membership: Membership) -> bool:
    """Return whether no other reason is recorded.

    A static member does not leave after a late poll: it stops its heartbeats (KIP-345), so its session expires.
    """
    is_static = membership.group_instance_id is not None and membership.departure_kind == GroupEventKind.SESSION_EXPIRED
    return is_static or (membership.departure_kind in (None, GroupEventKind.LEFT) and not membership.reason)


def lasts_a_poll(membership: Membership) -> bool:
    """Return whether it ended max.poll.interval.ms after its assignment (plus the session timeout, if it expired)."""
    allowed = membership.rebalance_timeout_ms
    if allowed and membership.departure_kind == GroupEventKind.SESSION_EXPIRED:
        allowed += membership.session_timeout_ms
    return allowed > 0 and -POLL_SLACK_MS <= membership.held_ms - allowed <= allowed // 10 + 2 * POLL_SLACK_MS


def _loops(
    found: Sequence[Departure], changed: Mapping[int, DiagnosisCause], planned: frozenset[int]
) -> Iterator[tuple[int, DiagnosisCause]]:
    """Yield departures of instances that left at least three times in a row after short memberships.

    `planned` departures belong to deploys, or to a stop of the whole group. They continue a loop, but do not count for
    it.
    """
    for mine in _by_instance(found):
        loop: list[Departure] = []
        for d in [d for d in mine if changed.get(id(d), d.cause) != DiagnosisCause.POLL_TIMEOUT]:
            if loop and not _is_short(d, loop[-1]):
                yield from _of_loop(loop, planned)
                loop = []
            loop.append(d)
        yield from _of_loop(loop, planned)


def _stops_of_group(found: Sequence[Departure], instances: Sequence[Instance]) -> Iterator[Departure]:
    """Yield the departures with which groups were stopped: nobody joined any more, at least two instances left, and
    they did not come back within an hour.
    """
    memberships = [m for instance in instances for m in instance.memberships]
    came = sorted(m.arrived_at for m in memberships)
    gone = sorted(m.gone_at for m in memberships if m.gone_at is not None)
    # By the number of earlier arrivals: departures after the same last arrival.
    runs: dict[int, list[Departure]] = {}
    for d in found:
        runs.setdefault(bisect_left(came, d.at), []).append(d)
    for arrivals, run in runs.items():
        is_empty = len(gone) >= arrivals and gone[arrivals - 1] <= run[-1].at
        is_over = all(d.away_ms is None or d.away_ms > RESTART_MS for d in run)
        if is_empty and is_over and len({d.instance.number for d in run}) > 1:
            yield from run


def _is_short(d: Departure, before: Departure) -> bool:
    """Return whether the membership that `d` ends was short and began within an hour after `before`."""
    is_next = before.back is not None and (before.away_ms or 0) <= RESTART_MS
    return is_next and d.at - d.membership.arrived_at <= SHORT_LIFE_MS


def _of_loop(loop: Sequence[Departure], planned: frozenset[int]) -> Iterator[tuple[int, DiagnosisCause]]:
    known = [d for d in loop if d.membership.departure_kind is not None and id(d) not in planned]
    if len(known) < LOOP:
        return
    away = [d.away_ms for d in known if d.away_ms is not None]
    expired = [d for d in known if d.membership.departure_kind == GroupEventKind.SESSION_EXPIRED]
    # A paused process returns right after its removal. A dead process is replaced before that, or has to start first.
    paused = [d for d in expired if d.away_ms is not None and d.away_ms >= 0]
    is_paused = 2 * len(paused) > len(known) and median(away) <= PAUSED_MS
    if not is_paused:
        yield from ((id(d), DiagnosisCause.CRASH_LOOP) for d in known)


def _deploys(
    found: Sequence[Departure],
    changed: Mapping[int, DiagnosisCause],
    instances: Sequence[Instance],
    *,
    leaves_on_close: bool,
) -> dict[int, DiagnosisCause]:
    """Return departures in rounds in which the instances left once each, one after another, and came back."""
    restarted = [d for d in found if d.away_ms is not None and d.away_ms <= RESTART_MS]
    sure = [d for d in restarted if changed.get(id(d), d.cause) != DiagnosisCause.POLL_TIMEOUT]
    # If there is nothing to consume, members that leave were silent before, as if a poll had taken too long.
    silent = [
        d
        for d in restarted
        if d.membership.departure_kind == GroupEventKind.LEFT or d.membership.evidence == Evidence.INFERRED
    ]
    deploys = {
        id(d): DiagnosisCause.DEPLOY
        for chosen in (sure, silent)
        for round_ in _rounds(chosen)
        if _is_deploy(round_, instances, leaves_on_close=leaves_on_close)
        for d in round_
    }
    return {key: cause for key, cause in deploys.items() if changed.get(key) != DiagnosisCause.POLL_TIMEOUT}


def _rounds(restarted: Sequence[Departure]) -> Iterator[list[Departure]]:
    """Yield the rounds: a new round begins when an instance leaves again, or after an hour without a departure."""
    round_: list[Departure] = []
    for d in restarted:
        again = any(d.instance.number == r.instance.number for r in round_)
        if round_ and (again or d.at - round_[-1].at > RESTART_MS):
            yield round_
            round_ = []
        round_.append(d)
    if round_:
        yield round_


def _is_deploy(round_: Sequence[Departure], instances: Sequence[Instance], *, leaves_on_close: bool) -> bool:
    if len(round_) < 2 or not _one_after_another(round_):
        return False
    present = sum(any(s.was_there(round_[0].at) for s in instance.memberships) for instance in instances)
    if all(d.membership.departure_kind == GroupEventKind.LEFT for d in round_):
        return 3 * len(round_) >= 2 * present
    # If members did not send a leave request, a deploy is assumed only if all left at regular intervals, because
    # failures do not visit every instance in turn. Paused processes that returned were not restarted.
    if 2 * sum(d.is_only_paused for d in round_) > len(round_):
        return False
    return len(round_) >= max(LOOP if leaves_on_close else 2, present) and _is_steady(round_)


def _is_steady(round_: Sequence[Departure]) -> bool:
    gaps = [b.at - a.at for a, b in pairwise(round_)]
    return max(gaps) <= 3 * median_low(gaps)


def _one_after_another(round_: Sequence[Departure]) -> bool:
    """Return whether at most half of them, or one, were absent at the same time."""
    for d in round_:
        away = sum(r.at <= d.at < r.back.arrived_at for r in round_ if r.back is not None)
        if away > max(1, len(round_) // 2):
            return False
    return True


def _replaced(found: Sequence[Departure], instances: Sequence[Instance]) -> dict[int, DiagnosisCause]:
    return {id(d): DiagnosisCause.DEPLOY for d, _ in _pairs(found, instances)}


def _pairs(found: Sequence[Departure], instances: Sequence[Instance]) -> Iterator[tuple[Departure, int]]:
    """Yield each instance that left for good, with the number of the new instance that replaced it.

    The new instance has another name. It may have the same name if its process joined before the old one left.
    """
    left = [d for d in found if d.back is None and d.membership.departure_kind == GroupEventKind.LEFT]
    came = sorted(
        (instance.memberships[0].arrived_at, instance.number, _client(instance.memberships[0]))
        for instance in instances
        if instance.memberships[0].joined_in is not None
    )
    used: set[int] = set()
    for d in left:
        since = d.instance.memberships[0].arrived_at
        near = [
            (abs(at - d.at), new)
            for at, new, client in came
            if new not in used
            and abs(at - d.at) <= REPLACED_MS
            and since < at
            and (client == _client(d.membership) or at - since > REPLACED_MS)
        ]
        if near:
            used.add(min(near)[1])
            yield d, min(near)[1]


def _client(membership: Membership) -> tuple[str, str]:
    return membership.client_id, membership.client_host
