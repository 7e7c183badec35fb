"""Who gets what: Kafka's assignors, as far as they decide which resources change hands.

Members are instances by number, in the order in which Kafka would sort them; each knows the topics it subscribed to.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from heapq import heapify, heapreplace

from pipelines.gold.churn import Resource

Subscriptions = Mapping[int, frozenset[str]]
Owners = dict[Resource, int]


def assign(name: str, resources: Sequence[Resource], members: Subscriptions, before: Mapping[Resource, int]) -> Owners:
    """`name` as in the records; an unknown assignor is taken to keep what it can, as all newer ones do."""
    if not members:
        return {}
    if name == "range":
        return range_assignor(resources, members)
    if name == "roundrobin":
        return round_robin(resources, members)
    return sticky(resources, members, before)


def range_assignor(resources: Sequence[Resource], members: Subscriptions) -> Owners:
    """Topic by topic, consecutive partitions; the first members get one more (`RangeAssignor`)."""
    out: Owners = {}
    for topic, mine in _by_topic(resources).items():
        takers = [m for m in sorted(members) if topic in members[m]]
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
    """All partitions in order, dealt out in turn (`RoundRobinAssignor`)."""
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
    """As balanced as can be, and then as much as can be stays (KIP-54, KIP-429, KIP-848's `uniform`)."""
    wanted = frozenset().union(*members.values())
    resources = [r for r in sorted(resources) if r[0] in wanted]
    held: dict[int, list[Resource]] = {m: [] for m in sorted(members)}
    free: list[Resource] = []
    for resource in resources:
        owner = before.get(resource)
        if owner in held and resource[0] in members[owner]:
            held[owner].append(resource)
        else:
            free.append(resource)
    if len(set(members.values())) == 1:
        _fill(held, free + _surplus(held, len(resources)))
        return {resource: member for member, mine in held.items() for resource in mine}
    for resource in free:
        able = [m for m in held if resource[0] in members[m]]
        if able:
            held[min(able, key=lambda m: (len(held[m]), m))].append(resource)
    _level(held, members)
    return {resource: member for member, mine in held.items() for resource in mine}


def _fill(held: dict[int, list[Resource]], free: Sequence[Resource]) -> None:
    """Each to whoever has least."""
    queue = [(len(mine), member) for member, mine in held.items()]
    heapify(queue)
    for resource in free:
        count, member = queue[0]
        held[member].append(resource)
        heapreplace(queue, (count + 1, member))


def _surplus(held: dict[int, list[Resource]], total: int) -> list[Resource]:
    """What members hold above their share; the fullest may keep one more, as many as the division leaves over."""
    share, extra = divmod(total, len(held))
    out: list[Resource] = []
    for member in sorted(held, key=lambda m: (-len(held[m]), m)):
        quota = share + (extra > 0 and len(held[member]) > share)
        extra -= len(held[member]) > share
        out += held[member][quota:]
        del held[member][quota:]
    return out


def _level(held: dict[int, list[Resource]], members: Subscriptions) -> None:
    """Members that may not take everything: move from the fullest to the emptiest while that evens them out."""
    for _ in range(sum(map(len, held.values()))):
        fullest = sorted(held, key=lambda m: (-len(held[m]), m))
        for giver in fullest:
            takers = [m for m in reversed(fullest) if len(held[giver]) - len(held[m]) > 1]
            move = next(((m, r) for m in takers for r in held[giver] if r[0] in members[m]), None)
            if move is not None:
                held[giver].remove(move[1])
                held[move[0]].append(move[1])
                break
        else:
            return


def _by_topic(resources: Sequence[Resource]) -> dict[str, list[Resource]]:
    out: dict[str, list[Resource]] = defaultdict(list)
    for resource in sorted(resources):
        out[resource[0]].append(resource)
    return out
