"""Rows of `rebalances`: generations that follow each other without a pause are one episode, with what it cost."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from pipelines.silver.generations import Generation
from pipelines.silver.history import Position, Record
from pipelines.silver.stalls import Stall
from schemas.rows import GenerationOfGroup, RebalanceOfGroup
from schemas.states import Evidence, RebalanceMode, StallCause


class ResumePoint(NamedTuple):
    """Where a rebuild may go on: the first record that it reads, the time up to which rows stand, and what the records
    from there on do not tell; `state` is that of a group whose coordinator assigns (`modern.snapshot`).
    """

    position: Position
    at: int
    mode: RebalanceMode
    state: Callable[[], str] | None = None


def episodes(
    generations: list[GenerationOfGroup], windows: list[Stall], quiet_ms: int, bases: Mapping[Position, ResumePoint]
) -> list[RebalanceOfGroup]:
    """One episode ends when no new rebalance begins within `quiet_ms` after one completed.

    One that was overtaken before it completed goes on. A start that is only bounded counts at its latest, the end of
    the join phase: an episode is then rather two than one that hides a pause. `bases` say, by the position of a
    generation that began with nothing open, where a rebuild may go on.
    """
    by_generation: dict[tuple[int, int], list[Stall]] = defaultdict(list)
    for window in windows:
        by_generation[window.incarnation, window.generation].append(window)
    out: list[list[GenerationOfGroup]] = []
    for row in generations:
        start = row["prepared_at"] if row["prepared_at"] is not None else row["prepared_at_latest"]
        last = out[-1][-1] if out else None
        goes_on = (
            last is not None
            and last["incarnation"] == row["incarnation"]
            and (last["completed_at"] is None or start - last["completed_at"] <= quiet_ms)
        )
        if goes_on:
            out[-1].append(row)
        else:
            out.append([row])
    return [_row(rows, by_generation, bases) for rows in out]


def _row(
    rows: list[GenerationOfGroup],
    by_generation: dict[tuple[int, int], list[Stall]],
    bases: Mapping[Position, ResumePoint],
) -> RebalanceOfGroup:
    first, last = rows[0], rows[-1]
    base = bases.get((first["log_epoch"], first["source_offset"]))
    windows = [w for row in rows for w in by_generation[row["incarnation"], row["generation_id"]]]
    lost = [ms for w in windows if w.is_lost and (ms := w.milliseconds)]
    idle = [ms[1] for w in windows if w.cause == StallCause.NO_MEMBER and (ms := w.milliseconds)]
    grades = {row["evidence"] for row in rows} | {w.stop.evidence for w in windows}
    worst = next(e for e in (Evidence.INFERRED, Evidence.BOUNDED, Evidence.OBSERVED) if e in grades)
    return {
        "incarnation": first["incarnation"],
        "first_generation_id": first["generation_id"],
        "last_generation_id": last["generation_id"],
        "started_at_earliest": first["prepared_at_earliest"],
        "started_at_latest": first["prepared_at_latest"],
        "ended_at": last["completed_at"],
        "generations": sum(row["completed_at"] is not None for row in rows),
        "triggers": list(dict.fromkeys(row["trigger"] for row in rows)),
        "lost_resource_seconds_min": sum(ms[0] for ms in lost) / 1000,
        "lost_resource_seconds": sum(ms[1] for ms in lost) / 1000,
        "lost_resource_seconds_max": sum(ms[2] for ms in lost) / 1000,
        "idle_resource_seconds": sum(idle) / 1000,
        "evidence": worst,
        "log_epoch": first["log_epoch"],
        "source_offset": first["source_offset"],
        "settled_at": first["completed_at"],
        "base_log_epoch": base.position[0] if base else None,
        "base_offset": base.position[1] if base else None,
        "base_at": base.at if base else None,
        "base_rebalance_mode": base.mode if base else None,
        "base_state": base.state() if base and base.state else None,
    }


def resume_points(
    generations: list[Generation], windows: list[Stall], records: Sequence[Record]
) -> dict[Position, ResumePoint]:
    """Generations that began with every resource in somebody's hands, and the one before each in the same life.

    From the one before, history alone gives what follows: nothing older is still open. And time alone tells what
    follows: no record after it is older than one before, as where a coordinator's clock is behind its predecessor's.
    """
    is_in_time = in_time_order(records)
    stopped: dict[int, list[Position]] = defaultdict(list)
    resumed: dict[int, list[Position]] = defaultdict(list)
    for w in windows:
        stopped[w.incarnation].append(w.stopped_by)
        if w.resumed_by is not None:
            resumed[w.incarnation].append(w.resumed_by)
    for positions in (*stopped.values(), *resumed.values()):
        positions.sort()
    out = {}
    for g in generations:
        ends = (bisect_left(side[g.incarnation], g.position) for side in (stopped, resumed))
        if g.previous is not None and next(ends) == next(ends) and is_in_time(g.previous.position):
            before = g.previous
            out[g.position] = ResumePoint(before.position, before.completed_at, before.mode)
    return out


def in_time_order(records: Sequence[Record]) -> Callable[[Position], bool]:
    """Whether no record before that at a position is younger than it, and none after it older."""
    timed = sorted((r.position, r.at) for r in records if r.at is not None)
    positions, times = [position for position, _ in timed], [at for _, at in timed]
    newest = list(accumulate(times, max))
    oldest = list(accumulate(reversed(times), min))[::-1]

    def is_in_time(position: Position) -> bool:
        after = bisect_right(positions, position)
        if not after:
            return True
        at = times[after - 1]
        return newest[after - 1] == at and (after == len(times) or at <= oldest[after])

    return is_in_time
