"""Where a rebuild of a group may resume: at rest, and at points of a classic group that does not come to rest.

A point that is not at rest lies between two generations whose shifted numbers or times (`shift_of`) have different
whole parts when divided by `EVERY`, `EVERY_MS` or `WITHIN_MS`. So it depends on the group's name and records alone, not
on the batches in which the records came. It needs the state of the group (`pipelines.silver.carrying.points`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from itertools import accumulate
from typing import NamedTuple
from zlib import crc32

from pipelines.decoding.record_times import LAST_MS
from pipelines.silver.generation_log import LogIndex
from pipelines.silver.generations import Generation
from pipelines.silver.history import Position, Record
from pipelines.silver.stops.stall import Stall
from schemas.states import RebalanceMode

EVERY = 500
"""Maximum number of generations of a block (`folding`): 2.5 s of a loop that makes 200 a second."""

EVERY_MS = 300_000
"""Maximum milliseconds of a block, if a group has more generations but is slow to make `EVERY`."""

WITHIN_MS = 60_000
"""Maximum milliseconds from one point to the next within a block, if a group has more generations."""

LARGE_WITHIN_MS = 1_000
"""`WITHIN_MS` of a group with `LARGE` members or resources. A rebuild takes about 0.1 ms for each of them in each
generation that it reads again.
"""

LARGE = 1_000
"""Members of a group, or resources with an owner."""

COARSE_MS = 2_000
"""Milliseconds around a point within which a log line with a precision of a second may belong to either side."""


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


def resume_points(
    generations: list[Generation], windows: list[Stall], undecided: Collection[Position], in_order: Collection[Position]
) -> dict[Position, ResumePoint]:
    """Return the resume points by the position of each generation that began with every resource owned.

    The point is the previous generation of the same incarnation. From there on, the rows depend only on the records
    after it, because no earlier stall is open, neither at the point nor when the generation began, and none may still
    turn out to have been open (`undecided`). A point is valid only if the timestamps ascend across it: no later record
    is older than an earlier one. A later record can be older if a new coordinator's clock is behind the old
    coordinator's.
    """
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
        if before is None or g.position not in in_order:
            continue
        is_unsure = bisect_right(unsure, before.position) != bisect_right(unsure, g.position)
        is_open = bisect_left(begun, g.position) != bisect_left(over, g.position)
        was_open = bisect_right(begun, before.position) != bisect_right(over, before.position)
        if not (is_unsure or is_open or was_open):
            out[g.position] = ResumePoint(before.position, before.completed_at, before.mode)
    return out


def after_ordered(generations: Sequence[Generation], records: Sequence[Record]) -> frozenset[Position]:
    """Return the positions of the generations before which the timestamps ascend (`in_time_order`)."""
    is_in_time = in_time_order(records)
    return frozenset(g.position for g in generations if g.previous is not None and is_in_time(g.previous.position))


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


class Block(NamedTuple):
    """Generations that may be folded (`folding`), with lower numbers and earlier times than these."""

    until_generation_id: int
    until_at: int


def shift_of(group_id: str) -> int:
    """Return what is added to the numbers, and to the times in milliseconds, of a group's generations.

    A rebuild in which a block may begin reads more. The number differs between groups, so that the blocks of many
    groups do not begin at the same time, even if the groups did.
    """
    return crc32(group_id.encode()) % EVERY_MS


def block_of(g: Generation, shift: int) -> Block:
    """Return the block of a generation; `shift` is that of its group (`shift_of`)."""
    number, at = (g.number + shift) // EVERY, (g.completed_at + shift) // EVERY_MS
    return Block((number + 1) * EVERY - shift, min((at + 1) * EVERY_MS - shift, LAST_MS))


def _begins_part(g: Generation, before: Generation, shift: int) -> bool:
    """Return whether a part of a block begins with a generation; `before` is the previous one."""
    within_ms = LARGE_WITHIN_MS if max(len(g.members), len(g.owners)) >= LARGE else WITHIN_MS
    return (g.completed_at + shift) // within_ms != (before.completed_at + shift) // within_ms


def border_positions(
    generations: Sequence[Generation], in_order: Collection[Position], lines: LogIndex, shift: int
) -> frozenset[Position]:
    """Return the positions of the generations before which a point may lie.

    As at rest (`resume_points`), timestamps must ascend across the point (`in_order`). `shift` is that of the group.
    """
    return frozenset(
        g.position
        for g in generations
        if g.previous is not None
        and g.position in in_order
        and (block_of(g, shift) != block_of(g.previous, shift) or _begins_part(g, g.previous, shift))
        and g.joined_at >= g.previous.completed_at < g.completed_at
        # Every row's time must show on which side of the point it is.
        and all(
            line.precision <= 1
            for line in lines.window(g.previous.completed_at - COARSE_MS, g.completed_at + COARSE_MS)
        )
    )
