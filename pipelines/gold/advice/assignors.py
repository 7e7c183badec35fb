"""Kafka's assignors, as far as they decide which resources change owner.

Members are numbers of instances, in Kafka's sort order, each with the topics to which it subscribed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from heapq import heapify, heapreplace

from pipelines.gold.churn import Resource

Subscriptions = Mapping[int, frozenset[str]]
Owners = dict[Resource, int]


def assign(name: str, resources: Sequence[Resource], members: Subscriptions, before: Mapping[Resource, int]) -> Owners:
    """Return the owner of each resource.

    `name` is the assignor's name in the records. An unknown assignor is treated as sticky, like all newer assignors.
    """
    if not members:
        return {}
    if name == "range":
        return range_assignor(resources, members)
    if name == "roundrobin":
        return round_robin(resources, members)
    return sticky(resources, members, before)


def range_assignor(resources: Sequence[Resource], members: Subscriptions) -> Owners:
    """Assign consecutive partitions, topic by topic; the first members get one more (`RangeAssignor`)."""
    out: Owners = {}
    in_order = sorted(members)
    for topic, mine in _by_topic(tuple(resources)).items():
        takers = [m for m in in_order if topic in members[m]]
        if not takers:
            continue
        share, extra = divmod(len(mine), len(takers))
        at = 0
        for position, member in enumerate(takers):
            count = share + (position < extra)
            out |= dict.fromkeys(mine[at : at + count], member)
            at += count
    return out


def round_robin(resources: Sequence[Resource], members: Subscriptions) -> Owners:
    """Assign all partitions in order to the members in turn (`RoundRobinAssignor`)."""
    out: Owners = {}
    takers, at = sorted(members), 0
    for resource in sorted(resources):
        for step in range(len(takers)):
            member = takers[(at + step) % len(takers)]
            if resource[0] in members[member]:
                out[resource] = member
                at += step + 1
                break
    return out


def sticky(resources: Sequence[Resource], members: Subscriptions, before: Mapping[Resource, int]) -> Owners:
    """Assign as evenly as possible and, among such assignments, move as little as possible.

    Sources: KIP-54, KIP-429, and the `uniform` assignor of KIP-848.
    """
    wanted = frozenset().union(*members.values())
    resources = [r for r in sorted(resources) if r[0] in wanted]
    assigned: dict[int, list[Resource]] = {m: [] for m in sorted(members)}
    free: list[Resource] = []
    for resource in resources:
        owner = before.get(resource)
        if owner in assigned and resource[0] in members[owner]:
            assigned[owner].append(resource)
        else:
            free.append(resource)
    if len(set(members.values())) == 1:
        _fill(assigned, free + _surplus(assigned, len(resources)))
        return {resource: member for member, mine in assigned.items() for resource in mine}
    for resource in free:
        able = [m for m in assigned if resource[0] in members[m]]
        if able:
            assigned[min(able, key=lambda m: (len(assigned[m]), m))].append(resource)
    _level(assigned, members)
    return {resource: member for member, mine in assigned.items() for resource in mine}


def _fill(assigned: dict[int, list[Resource]], free: Sequence[Resource]) -> None:
    """Give each resource to the member that has the fewest."""
    queue = [(len(mine), member) for member, mine in assigned.items()]
    heapify(queue)
    for resource in free:
        count, member = queue[0]
        assigned[member].append(resource)
        heapreplace(queue, (count + 1, member))


def _surplus(assigned: dict[int, list[Resource]], total: int) -> list[Resource]:
    """Take from members the resources above their share and return them.

    If the division leaves a remainder, that many of the fullest members keep one more.
    """
    share, extra = divmod(total, len(assigned))
    out: list[Resource] = []
    for member in sorted(assigned, key=lambda m: (-len(assigned[m]), m)):
        quota = share + (extra > 0 and len(assigned[member]) > share)
        extra -= len(assigned[member]) > share
        out += assigned[member][quota:]
        del assigned[member][quota:]
    return out


def _level(assigned: dict[int, list[Resource]], members: Subscriptions) -> None:
    """Move resources from the fullest to the emptiest members while that makes the assignment more even.

    This is needed if members subscribe to different topics.
    """
    for _ in range(sum(map(len, assigned.values()))):
        fullest = sorted(assigned, key=lambda m: (-len(assigned[m]), m))
        for giver in fullest:
            takers = [m for m in reversed(fullest) if len(assigned[giver]) - len(assigned[m]) > 1]
            move = next(((m, r) for m in takers for r in assigned[giver] if r[0] in members[m]), None)
            if move is not None:
                assigned[giver].remove(move[1])
                assigned[move[0]].append(move[1])
                break
        else:
            return


@lru_cache(maxsize=4)
def _by_topic(resources: tuple[Resource, ...]) -> dict[str, list[Resource]]:
    """Return the resources of each topic in order. All replays of a group ask for the same ones."""
    out: dict[str, list[Resource]] = defaultdict(list)
    for resource in sorted(resources):
        out[resource[0]].append(resource)
    return out
