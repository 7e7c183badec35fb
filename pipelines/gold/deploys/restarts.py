"""The members of a group during one deploy: who restarted, who did not come back, who was slow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipelines.gold.deploys.runs import Run
from pipelines.gold.diagnosis.causes import never_leaves
from pipelines.gold.diagnosis.departures import Departure, departures, replaced
from pipelines.gold.instance_tracker import Instance, Number
from pipelines.gold.memberships import tracked
from pipelines.gold.window import Windows
from schemas.rows import GenerationRow, VerdictOfGroup
from schemas.states import DiagnosisCause
from schemas.thresholds import RESTART_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Slowest:
    """The instance for which the others waited longest, and for how many milliseconds."""

    name: str
    host: str
    waited_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Restarts:
    """What the members did, in a deploy's generations and in static returns during it.

    `departures` are in order of time. `restarted` are names, sorted; `not_back` are names with hosts, sorted. A member
    that a pause removed, and that came back itself, is in neither. `returned` are the member ids that static members
    had before they returned without a rebalance.
    """

    instances: Sequence[Instance]
    departures: Sequence[Departure]
    restarted: Sequence[str]
    not_back: Sequence[tuple[str, str]]
    returned: frozenset[str]
    slowest: Slowest | None


def restarts(windows: Windows, run: Run, rows: Sequence[GenerationRow], started_at: int) -> Restarts:
    """Return what the members did. `rows` are the generations of the run, those that were overtaken included.

    Members are followed for an hour after the run.
    """
    start = min([started_at, *(g["joined_at"] for g in rows[:1])])
    silver = windows.window(start, run.until + RESTART_MS)
    instances = tracked(silver)
    gone = departures(instances, leaves_on_close=not any(never_leaves(g) for g in silver["generations"]))
    numbers = {(g["incarnation"], g["generation_id"]) for g in rows}
    mine = [d for d in gone if _is_of(d, numbers, started_at, run.until)]
    last = {d.instance.number: d for d in mine}
    new = replaced(mine, instances)
    back = {number for number, d in last.items() if number in new or _is_back(d)}
    return Restarts(
        instances=instances,
        departures=mine,
        restarted=sorted(last[number].instance.label for number in back if not last[number].is_only_paused),
        not_back=sorted(
            (d.instance.label, d.membership.client_host) for number, d in last.items() if number not in back
        ),
        returned=frozenset(d.membership.member_id for d in mine if d.membership.left_in is None),
        slowest=_slowest(rows, instances),
    )


def rounds(run: Run, found: Restarts, parts: Mapping[Number, Sequence[Number]]) -> Iterator[Run]:
    """Yield the deploys in a run of planned rebalances. Only the first of them has the run's mark.

    Without a mark, the first deploy begins with the first rebalance in which an instance left or whose cause is a
    deploy; earlier rebalances, in which members only joined, do not belong to it. The next deploy begins when an
    instance leaves again after every instance that was there has left once. `parts` has the generations of each
    rebalance.
    """
    mark = run.mark
    there: set[int] = set()
    left: set[int] = set()
    mine: list[VerdictOfGroup] = []
    for v in run.rebalances:
        numbers = parts[v["incarnation"], v["generation_id"]]
        now = {d.instance.number for d in found.departures if d.membership.left_in in numbers}
        if mine and there and there <= left and now and v["joined_at"] > mine[-1]["joined_at"]:
            yield Run(mark=mark, rebalances=tuple(mine), until=mine[-1]["joined_at"])
            mark, mine = None, []
        if not mine:
            if mark is None and not now and DiagnosisCause.DEPLOY not in (v["cause"], v["set_off_by"]):
                continue
            there, left = _there(found, numbers[0]), set()
        left |= now
        mine.append(v)
    if mine:
        yield Run(mark=mark, rebalances=tuple(mine), until=run.until)


def _there(found: Restarts, number: Number) -> set[int]:
    """Return the instances that were in the group before a generation."""
    return {
        i.number
        for i in found.instances
        for s in i.memberships
        if (s.joined_in is None or s.joined_in < number) and (s.left_in is None or s.left_in >= number)
    }


def _is_of(d: Departure, numbers: set[Number], start: int, until: int) -> bool:
    """Return whether a departure belongs to these generations or, without a rebalance, to this time."""
    if d.membership.left_in is not None:
        return d.membership.left_in in numbers
    return start <= d.at <= until


def _is_back(d: Departure) -> bool:
    return d.away_ms is not None and d.away_ms <= RESTART_MS


def _slowest(rows: Sequence[GenerationRow], instances: Sequence[Instance]) -> Slowest | None:
    of_member = {s.member_id: i for i in instances for s in i.memberships}
    waits = [(g["slowest_waited_ms"] or 0, of_member.get(g["slowest_member_id"] or "")) for g in rows]
    known = [(ms, instance) for ms, instance in waits if ms and instance is not None]
    if not known:
        return None
    ms, instance = max(known, key=lambda wait: wait[0])
    return Slowest(name=instance.label, host=instance.memberships[-1].client_host, waited_ms=ms)
