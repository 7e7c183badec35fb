"""Rows of `rebalances`: generations that follow each other without a pause are one episode, with its cost."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from pipelines.silver.generations import Generation
from pipelines.silver.history import Position, Record
from pipelines.silver.stops.stall import Stall
from schemas.loss_interval import loss
from schemas.rows import GenerationOfGroup, RebalanceOfGroup
from schemas.states import Evidence, RebalanceMode, StallCause


class ResumePoint(NamedTuple):
    """A point from which a rebuild may resume.

    `position` is the first record that the rebuild reads. Rows up to the time `at` stay unchanged. `mode` and `state`
    hold facts that the records from `position` on do not contain. `state` is set only for a group whose coordinator
    assigns (`coordinator_assigned.snapshot`).
    """

    position: Position
    at: int
    mode: RebalanceMode
    state: Callable[[], str] | None = None


def episodes(
    generations: list[GenerationOfGroup], windows: list[Stall], quiet_ms: int, bases: Mapping[Position, ResumePoint]
) -> list[RebalanceOfGroup]:
    """Return the episodes.

    An episode ends when no rebalance begins within `quiet_ms` after its last rebalance completed. A rebalance that was
    overtaken does not end it. If the start of a rebalance is known only as a range, its latest time counts, the end of
    the join phase. So a pause is never hidden, but one episode may be split in two. `bases` maps the position of a
    generation that began with every resource owned to the point from which a rebuild may resume.
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
    ended = [(w, ms) for w in windows if w.is_lost and (ms := w.milliseconds)]
    lost = [ms for _, ms in ended]
    _, low, high = loss(((w.incarnation, w.generation, w.owner), *ms) for w, ms in ended)
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
        "lost_resource_seconds_low": low / 1000,
        "lost_resource_seconds_high": high / 1000,
    }


def resume_points(
    generations: list[Generation], windows: list[Stall], undecided: Collection[Position], records: Sequence[Record]
) -> dict[Position, ResumePoint]:
    """Return the resume points by the position of each generation that began with every resource owned.

    The point is the previous generation of the same incarnation. From there on, the rows depend only on the records
    after it, because no earlier stall is open, neither at the point nor when the generation began, and none may still
    turn out to have been open (`undecided`). A point is valid only if the timestamps ascend across it: no later record
    is older than an earlier one. A later record can be older if a new coordinator's clock is behind the old
    coordinator's.
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
    unsure = sorted(undecided)
    out = {}
    for g in generations:
        before, begun, over = g.previous, stopped[g.incarnation], resumed[g.incarnation]
        if before is None or not is_in_time(before.position):
            continue
        is_unsure = bisect_right(unsure, before.position) != bisect_right(unsure, g.position)
        is_open = bisect_left(begun, g.position) != bisect_left(over, g.position)
        was_open = bisect_right(begun, before.position) != bisect_right(over, before.position)
        if not (is_unsure or is_open or was_open):
            out[g.position] = ResumePoint(before.position, before.completed_at, before.mode)
    return out


def in_time_order(records: Sequence[Record]) -> Callable[[Position], bool]:
    """Return a function that checks whether the timestamps ascend across a position.

    They do if no earlier record is newer than the record at the position, and no later record is older.
    """
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
