"""Rows of `rebalances`: generations that follow each other without a pause are one episode, with its cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from pipelines.silver.carrying.episode import Episode, Fields, sums_without
from pipelines.silver.carrying.folding import PointRow
from pipelines.silver.carrying.valid_points import ResumePoint
from pipelines.silver.history import Position
from pipelines.silver.stops.stall import Stall
from schemas.rows import GenerationOfGroup, RebalanceOfGroup


class Episodes(NamedTuple):
    """The rows, and by the position of a generation the sums of episodes right before it that may still change
    (`Episode.to_fields`).

    `point_rows` are the rows of the generations at these positions, in order.
    """

    rows: list[RebalanceOfGroup]
    carried: dict[Position, list[Fields]]
    point_rows: list[PointRow]


def episodes(
    generations: list[GenerationOfGroup],
    windows: list[Stall],
    quiet_ms: int,
    bases: Mapping[Position, ResumePoint],
    begun: Sequence[Episode] = (),
    unfinished: Mapping[Position, Sequence[Stall]] = MappingProxyType({}),
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
        unfinished: the positions of the generations before which the sums are carried on → the stalls that may still
            change there.
    """
    by_generation: dict[tuple[int, int], list[Stall]] = defaultdict(list)
    for window in windows:
        by_generation[window.incarnation, window.generation].append(window)
    out = [*begun]
    for key, known in by_generation.items():
        for episode in (each for each in begun if each.contains(*key)):
            episode.add_stalls(known)
    carried, point_rows = {}, []
    for number, row in enumerate(generations):
        position = row["log_epoch"], row["source_offset"]
        begins = not (out and out[-1].goes_on(row, quiet_ms))
        # A rebuild may resume at the start of this episode without any state.
        live = None if begins and position in bases else unfinished.get(position)
        if live is not None and out:
            carried[position] = sums_without(out, live)
        if begins:
            out.append(Episode.of(row, _base(bases.get(position))))
        if position in carried:
            point_rows.append(PointRow(number, position, len(out), out[-1].generations))
        out[-1].add(row, by_generation[row["incarnation"], row["generation_id"]])
    return Episodes([episode.rebalance() for episode in out], carried, point_rows)


def _base(point: ResumePoint | None) -> dict[str, Any]:
    return {
        "base_log_epoch": point.position[0] if point else None,
        "base_offset": point.position[1] if point else None,
        "base_at": point.at if point else None,
        "base_rebalance_mode": point.mode if point else None,
        "base_state": point.state() if point and point.state else None,
    }
