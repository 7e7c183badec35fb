"""Which member ids were the same instance: one running place of an application, which restarts under new member ids.

Told apart by `group.instance.id`; else by a member id that comes again; else by client id and host; else by the client
id alone; else by the part of a pod's name that survives a restart (`<deployment>-<replica set>-<pod>`, as Kubernetes
makes it).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

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
    """Lives chained into instances, best match first: a life goes on where one of the same name has ended before."""
    found: list[Instance] = []
    for life in sorted(lives, key=lambda x: (x.arrived_at, x.client_id, x.member_id)):
        free = [i for i in found if _is_free(i.lives[-1], life) and _may_be_same(i.lives[-1], life)]
        chosen = next((i for name in NAMES if (i := _latest(free, name(life), name)) is not None), None)
        if chosen is None:
            chosen = Instance(number=len(found))
            found.append(chosen)
        elif chosen.lives[-1].client_id != life.client_id:
            chosen.is_renamed = True
        chosen.lives.append(life)
    return found


def _is_free(last: Life, life: Life) -> bool:
    """A killed process may be back before the coordinator has noticed its death."""
    return last.stopped_at is not None and min(last.stopped_at, last.gone_at or last.stopped_at) <= life.arrived_at


def _may_be_same(last: Life, life: Life) -> bool:
    """A dynamic member may come back static; two different ids are two instances."""
    return None in (last.group_instance_id, life.group_instance_id) or last.group_instance_id == life.group_instance_id


def _latest(free: list[Instance], wanted: tuple[str, ...] | None, name: Name) -> Instance | None:
    if wanted is None:
        return None
    same = [i for i in free if name(i.lives[-1]) == wanted]
    return max(same, key=lambda i: (i.lives[-1].stopped_at or 0, -i.number), default=None)


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
