"""Rebalances that take long because a member joins late.

A member learns of a rebalance from its next heartbeat, so some member is always the last to join, up to a heartbeat
interval after the others. Only a longer wait, or waits for the same member that chance does not explain, show a slow
one. The coordinator's log names it. Without the log, the commits can show that there is one: a member that notices the
rebalance late works until then, and joins at once. If all members of an eager group had stopped long before the last of
them joined, a revocation callback or the like took the time between.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from pipelines.gold.chance import binomial
from pipelines.gold.instance_tracker import Instance, Membership, Number
from pipelines.gold.memberships import number
from pipelines.gold.stall_times import stopped_at
from schemas.rows import GenerationRow, StallRow
from schemas.states import GroupProtocol, RebalanceMode
from schemas.thresholds import NOTICED_MS, SLOW_BY_CHANCE, SLOW_MS, SLOW_TIMES, VERY_SLOW_MS

ROUND_MS = 250
"""Commits of one round are at most this far apart, and a stop is estimated this long after the last of them at most."""


def slow(generations: Sequence[GenerationRow], found: Sequence[Instance]) -> Iterator[tuple[Number, Instance]]:
    """Yield rebalances in which the others waited for one member: for a long time, or more often than chance explains.

    Only the coordinator's log shows these waits.
    """
    of_member = {membership.member_id: instance for instance in found for membership in instance.memberships}
    classic = [g for g in generations if g["group_protocol"] == GroupProtocol.CLASSIC]
    waited: dict[int, list[GenerationRow]] = defaultdict(list)
    for g in classic:
        last = of_member.get(g["slowest_member_id"] or "")
        # The coordinator waits for a dead member until its session expires; such a member does not join slowly.
        is_gone = g["slowest_member_id"] in (g["left_member_ids"] or ())
        if last is not None and (g["slowest_waited_ms"] or 0) >= SLOW_MS and not is_gone:
            waited[last.number].append(g)
    logged = [number(g) for g in classic if g["prepared_at"] is not None]
    for instance in found:
        mine = waited.get(instance.number, [])
        is_usual = _is_unlikely([g["slowest_waited_ms"] or 0 for g in mine], _times_asked(instance, logged))
        for g in mine:
            if is_usual or (g["slowest_waited_ms"] or 0) >= VERY_SLOW_MS:
                yield number(g), instance


def held_up(generations: Sequence[GenerationRow], stalls: Iterable[StallRow]) -> Iterator[tuple[Number, int]]:
    """Yield rebalances without a log line in which all members that stayed had stopped long before the last one joined,
    with the milliseconds from the last stop to that join; only if this holds for most rebalances of the group, at least
    three.
    """
    stopped: dict[Number, dict[str, list[StallRow]]] = defaultdict(lambda: defaultdict(list))
    for stall in stalls:
        stopped[stall["incarnation"], stall["generation_id"]][stall["from_member_id"]].append(stall)
    waits: dict[Number, int] = {}
    for g in generations:
        is_eager = g["group_protocol"] == GroupProtocol.CLASSIC and g["rebalance_mode"] == RebalanceMode.EAGER
        if is_eager and g["prepared_at"] is None:
            left = g["left_member_ids"] or ()
            stayed = [_idle_ms(mine, g["joined_at"]) for m, mine in stopped[number(g)].items() if m not in left]
            known = [ms for ms in stayed if ms is not None]
            if len(known) == len(stayed) >= 1:
                waits[number(g)] = min(known)
    long = {n: ms for n, ms in waits.items() if ms >= SLOW_MS}
    if len(long) >= SLOW_TIMES and 3 * len(long) >= 2 * len(waits):
        yield from long.items()


def _idle_ms(mine: Sequence[StallRow], joined_at: int) -> int | None:
    """Return how long before the end of the join phase a member's commits show that it had stopped.

    None if the commits do not show it: the member did not commit, or its stop is only assumed. 0 if a silence of this
    length is usual for the member.
    """
    lasts = [s["last_commit_at"] for s in mine if s["last_commit_at"] is not None]
    if not lasts:
        return None
    last, stop = max(lasts), min(map(stopped_at, mine))
    if stop > last + ROUND_MS:
        return None
    interval = last - min(s["stopped_at_earliest"] for s in mine)
    is_late = stop < last - ROUND_MS  # The last commit came after the stop, so its progress shows the stop.
    return joined_at - stop if is_late or joined_at - stop >= 2 * interval else 0


def _is_unlikely(waits: Sequence[int], tries: int) -> bool:
    """Return whether chance does not explain that the others waited this long for one member in `tries` rebalances.

    Heartbeats come at any time of an interval. With one other member, the last one joins at least w later with the
    probability (1 - w / interval)² / 2; with more, less often.
    """
    ranked = sorted(waits, reverse=True)
    for count, wait in enumerate(ranked, 1):
        chance = max(0.0, 1 - wait / NOTICED_MS) ** 2 / 2
        if count >= SLOW_TIMES and binomial(count, max(tries, len(waits)), chance) <= SLOW_BY_CHANCE:
            return True
    return False


def _times_asked(instance: Instance, logged: Sequence[Number]) -> int:
    """Return in how many of these rebalances, in order, the instance had to join again."""
    return sum(_asked(membership, logged) for membership in instance.memberships)


def _asked(membership: Membership, logged: Sequence[Number]) -> int:
    first = 0 if membership.joined_in is None else bisect_right(logged, membership.joined_in)
    last = len(logged) if membership.left_in is None else bisect_left(logged, membership.left_in)
    return max(0, last - first)
