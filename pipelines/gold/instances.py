"""Which member ids were the same instance: one running place of an application, which restarts under new member ids.

Told apart by `group.instance.id`; else by a member id that comes again; else by client id and host; else by the client
id alone; else by the part of a pod's name that survives a restart (`<deployment>-<replica set>-<pod>`, as Kubernetes
makes it).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from schemas.states import GroupEventKind

POD = re.compile(r"^(?P<deployment>.+?)-[a-z0-9]{6,10}-[bcdfghjklmnpqrstvwxz2456789]{5}(?P<rest>\b.*)$")
"""Names of a Deployment's pods: a hash of the template, then five letters without vowels (apimachinery's `rand`)."""

Name = Callable[["Life"], tuple[str, ...] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """One member id from its join to its end. Milliseconds; `gone_at` None: still there. `stopped_at` is when its
    resources stopped, which for one that died or hung is before the coordinator knew.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    topics: tuple[str, ...]
    session_timeout_ms: int
    rebalance_timeout_ms: int
    arrived_at: int
    stopped_at: int | None = None
    gone_at: int | None = None
    how: GroupEventKind | None = None


@dataclass(slots=True, kw_only=True)
class Instance:
    """`lives` in order of time. `is_renamed`: a restart changed its client id, so nothing stable names it yet."""

    number: int
    lives: list[Life] = field(default_factory=list)
    is_renamed: bool = False

    @property
    def name(self) -> str:
        last = self.lives[-1]
        return last.group_instance_id or last.client_id or last.member_id


def instances(lives: Iterable[Life]) -> list[Instance]:
    """Return lives chained into instances, best match first: a life goes on where one of the same name has ended
    before. Takes time proportional to n log n of the lives, however their names are chosen.
    """
    found: list[Instance] = []
    waiting = _Waiting()
    for life in sorted(lives, key=lambda x: (x.arrived_at, x.client_id, x.member_id)):
        chosen = waiting.for_life(life)
        if chosen is None:
            chosen = Instance(number=len(found))
            found.append(chosen)
        elif chosen.lives[-1].client_id != life.client_id:
            chosen.is_renamed = True
        chosen.lives.append(life)
        waiting.add(chosen)
    return found


@dataclass(slots=True)
class _Queue:
    """Instances whose last life has one name: those that may go on, the last to stop first, and those that may not yet,
    the first to be free first. Entries hold the number of lives; they are stale once the instance has more.
    """

    ready: list[tuple[int, int, int]] = field(default_factory=list)
    pending: list[tuple[int, int, int, int]] = field(default_factory=list)

    def latest(self, at: int, found: Sequence[Instance]) -> tuple[int, int, int] | None:
        """Return the entry of the instance that stopped last of those free at `at`, which never decreases."""
        while self.pending and self.pending[0][0] <= at:
            heappush(self.ready, heappop(self.pending)[1:])
        while self.ready:
            _, number, lives = self.ready[0]
            if len(found[number].lives) == lives:
                return self.ready[0]
            heappop(self.ready)
        return None


class _Waiting:
    """Instances whose last life has ended, by each of its names, all together and by its instance id."""

    def __init__(self) -> None:
        self._found: list[Instance] = []
        self._all: dict[tuple[int, tuple[str, ...]], _Queue] = {}
        self._by_id: dict[tuple[int, tuple[str, ...], str | None], _Queue] = {}

    def for_life(self, life: Life) -> Instance | None:
        """Return the instance that goes on with this life, by its best name; the one that stopped last if several may.

        A dynamic member may come back static, but two different instance ids are two instances.
        """
        for place, name in enumerate(NAMES):
            wanted = name(life)
            if wanted is None:
                continue
            if life.group_instance_id is None:
                queues = [self._all.get((place, wanted))]
            else:
                queues = [self._by_id.get((place, wanted, own)) for own in (None, life.group_instance_id)]
            chosen = [entry for queue in queues if queue and (entry := queue.latest(life.arrived_at, self._found))]
            if chosen:
                return self._found[min(chosen)[1]]
        return None

    def add(self, instance: Instance) -> None:
        """Take in an instance with a new last life."""
        if instance.number == len(self._found):
            self._found.append(instance)
        last = instance.lives[-1]
        if last.stopped_at is None:
            return
        # A killed process may be back before the coordinator has noticed its death.
        free_at = min(last.stopped_at, last.gone_at or last.stopped_at)
        entry = (free_at, -last.stopped_at, instance.number, len(instance.lives))
        for place, name in enumerate(NAMES):
            if (wanted := name(last)) is not None:
                heappush(self._all.setdefault((place, wanted), _Queue()).pending, entry)
                own = (place, wanted, last.group_instance_id)
                heappush(self._by_id.setdefault(own, _Queue()).pending, entry)


def _by_instance_id(life: Life) -> tuple[str, ...] | None:
    return (life.group_instance_id,) if life.group_instance_id else None


def _by_member(life: Life) -> tuple[str, ...] | None:
    """A KIP-848 client makes its member id itself and keeps it when it was fenced."""
    return (life.member_id,)


def _by_client(life: Life) -> tuple[str, ...] | None:
    return life.client_id, life.client_host


def _by_client_id(life: Life) -> tuple[str, ...] | None:
    return (life.client_id,)


def _by_pod(life: Life) -> tuple[str, ...] | None:
    match = POD.match(life.client_id)
    return (match["deployment"], match["rest"]) if match else None


NAMES = (_by_instance_id, _by_member, _by_client, _by_client_id, _by_pod)
