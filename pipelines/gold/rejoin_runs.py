"""Runs of generations that change nothing: unchanged members rejoin, or members expel each other.

Diagnoses and patterns use the same runs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pipelines.gold.instance_tracker import Number
from pipelines.gold.memberships import GONE, Silver, number
from schemas.folded_rows import count_of
from schemas.rows import GenerationMemberRow, GenerationRow, GroupEventRow
from schemas.states import Evidence, GroupEventKind, GroupProtocol, GroupType, Trigger
from schemas.thresholds import FLAP_MS, LOOP

IN_A_ROW = 5
"""Consecutive generations that change nothing. A rolling restart, a new topic or a move of the coordinator causes
fewer: cooperative members settle after two, and flapping leaders (`FLAPS`) are diagnosed from three on."""

NO_JOIN_MS = 10
"""A join phase this short waited for nobody: members that were not in it were removed although they were alive."""

NOT_LOOPING = (Trigger.PROBING, Trigger.CONNECT_DELAY_EXPIRED)
TYPES = (GroupType.CONSUMER, GroupType.STREAMS, GroupType.OTHER)
PROVED = (GroupEventKind.LEFT, GroupEventKind.SESSION_EXPIRED)
"""Departures that are no expulsion, if they are observed."""

Run = list[GenerationRow]
Plan = tuple[tuple[str, tuple[tuple[str, int], ...]], ...]


@dataclass(frozen=True, slots=True)
class GroupLife:
    """Generations of one group in order, and by generation its members and the events with which members were gone."""

    generations: Sequence[GenerationRow]
    members: Mapping[Number, Sequence[GenerationMemberRow]]
    gone: Mapping[Number, Sequence[GroupEventRow]]

    @classmethod
    def of(cls, silver: Silver) -> GroupLife:
        """Return the life of a group from its rows in any order."""
        members: dict[Number, list[GenerationMemberRow]] = defaultdict(list)
        for row in sorted(silver["generation_members"], key=lambda row: row["member_id"]):
            members[number(row)].append(row)
        gone: dict[Number, list[GroupEventRow]] = defaultdict(list)
        for event in silver["group_events"]:
            if event["kind"] in GONE and event["generation_id"] is not None:
                gone[event["incarnation"], event["generation_id"]].append(event)
        return cls(sorted(silver["generations"], key=number), members, gone)

    def of_generation(self, g: GenerationRow) -> Sequence[GenerationMemberRow]:
        return self.members.get(number(g), ())


def unchanged_runs(life: GroupLife) -> list[Run]:
    """Return runs in which the same members get the same assignment."""
    return [run for run in _runs(life, _changes_nothing) if count_of(run) >= IN_A_ROW]


def expelling_runs(life: GroupLife) -> list[Run]:
    """Return runs in which members are replaced although none left, and the same clients come again and again.

    A deploy replaces each client once.
    """
    long = [run for run in _runs(life, _expels) if len(run) >= IN_A_ROW]
    return [run for run in long if max(Counter(joined(life, run)).values(), default=0) >= LOOP]


def joined(life: GroupLife, run: Sequence[GenerationRow]) -> list[str]:
    """Return the names of the members that joined in these generations, each time."""
    return [
        name_of(m) for g in run for m in life.of_generation(g) if m["member_id"] in set(g["joined_member_ids"] or ())
    ]


def name_of(row: GenerationMemberRow) -> str:
    """Return the name by which operators know a member: its instance id, else its client id, else its member id."""
    return row["group_instance_id"] or row["client_id"] or row["member_id"]


def is_logged(g: GenerationRow) -> bool:
    """Return whether a log line shows how a classic generation began."""
    is_classic = g["group_protocol"] == GroupProtocol.CLASSIC
    return is_classic and g["trigger_evidence"] == Evidence.OBSERVED and g["prepared_at"] is not None


def _runs(life: GroupLife, is_part: Callable[[GroupLife, GenerationRow, GenerationRow], bool]) -> Iterator[Run]:
    """Yield runs of consecutive generations that are like `is_part`, with at most `FLAP_MS` between two of them."""
    run: Run = []
    for before, g in pairwise(life.generations):
        if g["joined_at"] - before["joined_at"] <= FLAP_MS and is_part(life, before, g):
            run.append(g)
            continue
        if run:
            yield run
        run = []
    if run:
        yield run


def _changes_nothing(life: GroupLife, before: GenerationRow, g: GenerationRow) -> bool:
    if g["group_type"] not in TYPES or g["trigger"] in NOT_LOOPING or g["group_protocol"] == GroupProtocol.SHARE:
        return False
    plan = _plan(life.of_generation(g))
    return bool(plan) and plan == _plan(life.of_generation(before))


def _plan(members: Sequence[GenerationMemberRow]) -> Plan | None:
    """Return each member's assignment, or None if one is not known or nothing is assigned at all."""
    plan = []
    for m in members:
        if m["assigned"] is None:
            return None
        plan.append((m["member_id"], tuple((r["name"], r["index"]) for r in m["assigned"])))
    return tuple(plan) if any(given for _, given in plan) else None


def _expels(life: GroupLife, before: GenerationRow, g: GenerationRow) -> bool:
    """Return whether members were replaced although none left and no session can have expired."""
    is_replaced = bool(g["left_member_ids"]) and bool(g["joined_member_ids"])
    if not is_replaced or g["group_protocol"] != GroupProtocol.CLASSIC or g["group_type"] not in TYPES:
        return False
    if any(e["kind"] in PROVED and e["evidence"] == Evidence.OBSERVED for e in life.gone.get(number(g), ())):
        return False
    gone = [m for m in life.of_generation(before) if m["member_id"] in set(g["left_member_ids"] or ())]
    is_short = g["joined_at"] - before["joined_at"] < min((m["session_timeout_ms"] or 0 for m in gone), default=0)
    has_no_time = any((m["rebalance_timeout_ms"] or 1) <= 0 for m in gone)
    is_at_once = is_logged(g) and g["join_ms"] is not None and g["join_ms"] <= NO_JOIN_MS
    return is_short and (has_no_time or is_at_once)
