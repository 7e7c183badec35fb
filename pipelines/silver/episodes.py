"""Rows of `rebalances`: generations that follow each other without a pause are one episode, with its cost."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from pipelines.silver.carrying.episode import Episode
from pipelines.silver.generations import Generation
from pipelines.silver.history import Position, Record
from pipelines.silver.stops.stall import Stall
from schemas.rows import GenerationOfGroup, RebalanceOfGroup
from schemas.states import RebalanceMode


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


Boundary = Callable[[GenerationOfGroup], Sequence[Stall] | None]
"""Returns the stalls that may still change right before a generation; None if no rebuild may resume there."""


class Episodes(NamedTuple):
    """The rows, and by the position of a generation the sums of episodes right before it that may still change."""

    rows: list[RebalanceOfGroup]
    carried: dict[Position, list[Episode]]


def episodes(
    generations: list[GenerationOfGroup],
    windows: list[Stall],
    quiet_ms: int,
    bases: Mapping[Position, ResumePoint],
    begun: Sequence[Episode] = (),
    boundary: Boundary = lambda _: None,
) -> Episodes:
    """Return the episodes.

    An episode ends when no rebalance begins within `quiet_ms` after its last rebalance completed. A rebalance that was
    overtaken does not end it. If the start of a rebalance is known only as a range, its latest time counts, the end of
    the join phase. So a pause is never hidden, but one episode may be split in two.

    Args:
        generations: the rows of `generations`.
        windows: the stalls.
        quiet_ms: the pause that ends an episode, in milliseconds.
        bases: the position of a generation that began with every resource owned → the point from which a rebuild may
            resume.
        begun: episodes that began before the generations, the last of which they may continue, without `windows`.
        boundary: tells before which generations the sums are carried on.
    """
    by_generation: dict[tuple[int, int], list[Stall]] = defaultdict(list)
    for window in windows:
        by_generation[window.incarnation, window.generation].append(window)
    out = [*begun]
    for key, known in by_generation.items():
        for episode in (each for each in begun if each.contains(*key)):
            episode.add_stalls(known)
    carried = {}
    for row in generations:
        position = row["log_epoch"], row["source_offset"]
        begins = not (out and out[-1].goes_on(row, quiet_ms))
        # A rebuild may resume at the start of this episode without any state.
        live = None if begins and position in bases else boundary(row)
        if live is not None and out:
            carried[position] = _carried(out, live)
        if begins:
            out.append(Episode.of(row, _base(bases.get(position))))
        out[-1].add(row, by_generation[row["incarnation"], row["generation_id"]])
    return Episodes([episode.rebalance() for episode in out], carried)


def _carried(known: Sequence[Episode], live: Sequence[Stall]) -> list[Episode]:
    """Return the sums of the last episode and of those with stalls in `live`, without these stalls."""
    counted = list({id(window.root): window.root for window in live if not window.root.is_void}.values())
    out = []
    for episode in known:
        mine = [window for window in counted if episode.contains(window.incarnation, window.generation)]
        if mine or episode is known[-1]:
            out.append(episode.without(mine))
    return out


def _base(point: ResumePoint | None) -> dict[str, Any]:
    return {
        "base_log_epoch": point.position[0] if point else None,
        "base_offset": point.position[1] if point else None,
        "base_at": point.at if point else None,
        "base_rebalance_mode": point.mode if point else None,
        "base_state": point.state() if point and point.state else None,
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
