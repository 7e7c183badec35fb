"""Groups memberships by instance. An instance is one running copy of an application, with a new member id per restart.

All gold tables use this tracker: diagnoses, health and advice with memberships from silver's generations, storms with
memberships from its events. `instance_names` defines the names by which an instance is recognized.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from pipelines.gold.instance_names import Name, names_of
from schemas.states import Evidence, GroupEventKind
from schemas.thresholds import PAUSED_MS

Number = tuple[int, int]
"""Incarnation and generation id, which sort generations over all incarnations of the group id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """One member from its join to its end. Times are in milliseconds.

    - `settled_at`: when it had its assignment and its first poll began.
    - `stopped_at`: when its resources stopped. For a member that died or hung, this is before the coordinator knew it.
    - `gone_at`: when it left; None while it is a member.
    - `departure_kind`: how it left; None if unknown. `reason`: further text of the record or log line.
    - `joined_in`: generation of its join; None if it was present when the rows begin, or if it is a static member that
      returned without a rebalance.
    - `left_in`: generation without it; None while it is a member, or before such a static return.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    topics: tuple[str, ...] = ()
    session_timeout_ms: int = 0
    rebalance_timeout_ms: int = 0
    arrived_at: int
    settled_at: int = 0
    stopped_at: int | None = None
    gone_at: int | None = None
    departure_kind: GroupEventKind | None = None
    joined_in: Number | None = None
    left_in: Number | None = None
    evidence: Evidence = Evidence.INFERRED
    reason: str | None = None

    @property
    def is_over(self) -> bool:
        return self.gone_at is not None

    def was_there(self, at: int) -> bool:
        return self.arrived_at <= at and (self.gone_at is None or self.gone_at >= at)

    @property
    def held_ms(self) -> int:
        """Milliseconds from its assignment until the coordinator removed it."""
        return max(0, (self.gone_at or self.settled_at) - self.settled_at)


def is_same_process(before: Membership, following: Membership) -> bool:
    """Return whether `following` seems to be the same process that was removed, and not its successor.

    A member of the consumer protocol keeps its member id. With the classic protocol, the same process returns at once
    with the same client id and host.
    """
    if before.gone_at is None:
        return False
    names = [(one.client_id, one.client_host, one.group_instance_id) for one in (before, following)]
    is_soon = 0 <= following.arrived_at - before.gone_at <= PAUSED_MS
    return before.member_id == following.member_id or (names[0] == names[1] and is_soon)


@dataclass(slots=True, kw_only=True)
class Instance:
    """One instance with its memberships in order of time.

    `is_renamed`: a restart changed its client id, so it has no stable name yet. `label` is its name, with its host if
    an instance on another host has the same name.
    """

    number: int
    memberships: list[Membership] = field(default_factory=list)
    is_renamed: bool = False
    label: str = ""

    @property
    def name(self) -> str:
        last = self.memberships[-1]
        return last.group_instance_id or last.client_id or last.member_id


def instances(memberships: Iterable[Membership], *, within_ms: int | None = None) -> list[Instance]:
    """Return the instances of memberships: a membership continues the instance that ended before with the same name.

    Names are compared best first. The running time is proportional to n log n for n memberships, whatever their names.

    Args:
        memberships: memberships of one group, in any order.
        within_ms: an instance that ended longer ago than this is not continued; None for no limit. Callers that read a
            part of the history set it, so that the result does not depend on how far back they read.
    """
    found: list[Instance] = []
    waiting = _Waiting(within_ms)
    for one in sorted(memberships, key=lambda x: (x.arrived_at, x.client_id, x.member_id)):
        names = names_of(one)
        chosen = waiting.for_membership(one, names)
        if chosen is None:
            chosen = Instance(number=len(found))
            found.append(chosen)
        elif chosen.memberships[-1].client_id != one.client_id:
            chosen.is_renamed = True
        chosen.memberships.append(one)
        waiting.add(chosen, names)
    _label(found)
    return found


def _label(found: Sequence[Instance]) -> None:
    hosts: dict[str, set[str]] = defaultdict(set)
    for instance in found:
        hosts[instance.name].add(instance.memberships[-1].client_host)
    for instance in found:
        name, host = instance.name, instance.memberships[-1].client_host.removeprefix("/")
        instance.label = f"{name} ({host})" if len(hosts[name]) > 1 else name


@dataclass(slots=True)
class _Queue:
    """Instances whose last membership has one name.

    `ready` holds instances that may continue, the last to stop first; `pending` those that may continue later, the
    earliest first. Entries contain the instance's number of memberships; an entry is stale if that number has grown.
    """

    ready: list[tuple[int, int, int]] = field(default_factory=list)
    pending: list[tuple[int, int, int, int]] = field(default_factory=list)

    def latest(self, at: int, found: Sequence[Instance]) -> tuple[int, int, int] | None:
        """Return the entry of the instance that stopped last, among those free at `at`, which must never decrease."""
        while self.pending and self.pending[0][0] <= at:
            heappush(self.ready, heappop(self.pending)[1:])
        while self.ready:
            _, number, count = self.ready[0]
            if len(found[number].memberships) == count:
                return self.ready[0]
            heappop(self.ready)
        return None


class _Waiting:
    """Instances whose last membership has ended, by each of its names, all together and by its instance id."""

    def __init__(self, within_ms: int | None) -> None:
        self._found: list[Instance] = []
        self._within_ms = within_ms
        self._all: defaultdict[tuple[int, Name], _Queue] = defaultdict(_Queue)
        self._by_id: defaultdict[tuple[int, Name, str | None], _Queue] = defaultdict(_Queue)

    def for_membership(self, one: Membership, names: Sequence[tuple[int, Name]]) -> Instance | None:
        """Return the instance that this membership continues, by its best name; if there are several, the last to stop.

        A dynamic member may return as a static one, but two different group.instance.ids are two instances.
        """
        for named in names:
            if one.group_instance_id is None:
                queues = [self._all.get(named)]
            else:
                queues = [self._by_id.get((*named, own)) for own in (None, one.group_instance_id)]
            chosen = [entry for queue in queues if queue and (entry := queue.latest(one.arrived_at, self._found))]
            if chosen and self._is_recent(min(chosen), one.arrived_at):
                return self._found[min(chosen)[1]]
        return None

    def _is_recent(self, entry: tuple[int, int, int], at: int) -> bool:
        gone_at = self._found[entry[1]].memberships[-1].gone_at
        return self._within_ms is None or gone_at is None or at - gone_at < self._within_ms

    def add(self, instance: Instance, names: Sequence[tuple[int, Name]]) -> None:
        """Add an instance whose new last membership has these names."""
        if instance.number == len(self._found):
            self._found.append(instance)
        last = instance.memberships[-1]
        if last.stopped_at is None:
            return
        # A killed process may return before the coordinator notices its end.
        free_at = min(last.stopped_at, last.gone_at or last.stopped_at)
        entry = (free_at, -last.stopped_at, instance.number, len(instance.memberships))
        for named in names:
            heappush(self._all[named].pending, entry)
            heappush(self._by_id[(*named, last.group_instance_id)].pending, entry)
