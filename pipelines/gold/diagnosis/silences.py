"""How members left whose departure no source shows, judged by their last commits.

The coordinator removes a silent member after its session timeout, and a client that polls too late leaves after its
max.poll.interval.ms. Both show in the topic as a gap in the commits of this member only. Each commit renews the
session, and so does each generation of a classic group, which every member joins with a poll. A member that did either
within both limits left on its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pipelines.gold.diagnosis.causes import Context
from pipelines.gold.diagnosis.departures import Departure
from pipelines.gold.instance_tracker import Number
from pipelines.gold.stall_times import stopped_at
from schemas.rows import StallRow
from schemas.states import DiagnosisCause, Evidence, GroupProtocol
from schemas.thresholds import DEFAULT_SESSION_MS

Stops = Mapping[str, Sequence[StallRow]]
"""The closed stalls of a generation by the member that stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Silences:
    """What the commits show of departures, by their `id`.

    `lengths_ms`: milliseconds between the estimated stop of a silent member and the next generation. `active`: members
    that left on their own.
    """

    lengths_ms: Mapping[int, int]
    active: frozenset[int]

    def was_silent(self, d: Departure) -> bool:
        return id(d) in self.lengths_ms

    def length_ms(self, d: Departure) -> int:
        return self.lengths_ms[id(d)]

    def left_on_its_own(self, d: Departure) -> bool:
        return id(d) in self.active


def silences(known: Context, stalls: Iterable[StallRow], joined_at: Mapping[Number, int]) -> Silences:
    """Return what the commits show of departures that no log line explains.

    `joined_at` has the time of each generation in milliseconds. A silence counts if the member's last commits are at
    least four fifths of its session or poll limit old (commits come at intervals, so the stop is only estimated), and
    the stop was twice as long ago as those of the members that stayed.
    """
    stopped: dict[Number, dict[str, list[StallRow]]] = defaultdict(lambda: defaultdict(list))
    for stall in stalls:
        if stall["stopped_ms"] is not None:
            stopped[stall["incarnation"], stall["generation_id"]][stall["from_member_id"]].append(stall)
    found: dict[int, int] = {}
    active: set[int] = set()
    for n, gone in known.departures.items():
        left = {d.membership.member_id for d in gone}
        stayed = max((_since_stop(mine, joined_at[n]) for m, mine in stopped[n].items() if m not in left), default=0)
        for d in (d for d in gone if d.evidence == Evidence.INFERRED):
            mine = stopped[n].get(d.membership.member_id, ())
            if _is_active(d, mine, joined_at[n], _joined_before(n, known)):
                active.add(id(d))
            elif (length := _silence_ms(d, mine, joined_at[n])) >= 2 * stayed and length > 0:
                found[id(d)] = length
    deploys = {id(d) for gone in known.departures.values() for d in gone if d.cause == DiagnosisCause.DEPLOY}
    if 2 * len(deploys & found.keys()) > len(deploys):
        # These processes are stopped without leaving, all in turn, so silence does not tell a deploy from a failure.
        found = {key: length for key, length in found.items() if key not in deploys}
    return Silences(lengths_ms=found, active=frozenset(active))


def _since_stop(mine: Sequence[StallRow], joined_at: int) -> int:
    return joined_at - min(stopped_at(stall) for stall in mine)


def _last_commit(mine: Sequence[StallRow]) -> int | None:
    return max((s["last_commit_at"] for s in mine if s["last_commit_at"] is not None), default=None)


def _joined_before(n: Number, known: Context) -> int:
    """Return when the previous generation was joined, which needed a request of each member; 0 if none needs one."""
    before = known.previous.get(n)
    return before["joined_at"] if before is not None and before["group_protocol"] == GroupProtocol.CLASSIC else 0


def _is_active(d: Departure, mine: Sequence[StallRow], joined_at: int, joined_before: int) -> bool:
    """Return whether the member was at work within its session timeout and poll limit. Its session must be known."""
    session, poll = d.membership.session_timeout_ms, d.membership.rebalance_timeout_ms
    alive_at = max(d.membership.settled_at, joined_before, _last_commit(mine) or 0)
    return session > 0 and joined_at - alive_at < min(session, poll or session)


def _silence_ms(d: Departure, mine: Sequence[StallRow], joined_at: int) -> int:
    last = _last_commit(mine)
    if last is None:
        return 0
    limits = (d.membership.session_timeout_ms or DEFAULT_SESSION_MS, d.membership.rebalance_timeout_ms)
    needed = min(ms for ms in limits if ms > 0) * 4 // 5
    length = _since_stop(mine, joined_at)
    return length if min(length, joined_at - last) >= needed else 0
