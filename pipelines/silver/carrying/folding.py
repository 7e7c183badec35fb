"""Generations of a loop that differ in number and times only are folded into one row with their count.

A block of generations lies between two resume points (`valid_points.begins_block`). It is folded once two more blocks
begin in the same episode, and only if the episode had `WHOLE` generations before it. So the first and last hundreds of
a loop stay whole, and what is folded depends on the records alone: a rebuild in which the second of these blocks may
begin resumes at the beginning of the block to fold, or earlier (`resume_points.restarts`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from pipelines.silver.history import Position
from schemas.rows import GenerationMemberOfGroup, GenerationOfGroup, GroupEventOfGroup, SilverOfGroup
from schemas.silver import GENERATION_MEMBERS
from schemas.states import GenerationOutcome, GroupProtocol, RebalanceMode

WHOLE = 100
"""Generations at the beginning of an episode that are not folded, and the fewest that are folded into one row."""

ALIKE = (
    "incarnation", "group_type", "protocol_type", "assignor", "rebalance_mode", "leader_member_id", "coordinator_id",
    "member_count", "static_member_count", "trigger", "trigger_evidence", "resources_assigned", "evidence",
)  # fmt: skip
"""Columns of `generations` in which all generations of one row are equal."""

OF_ONE = frozenset(
    ("cluster", "group_id", "generation_id", "valid_from_at", "valid_to_at", "previous_generation_id",
     "rejoined_at_earliest", "rejoined_at_latest", "reconciled_at")
)  # fmt: skip
"""Columns of `generation_members` in which equal members of two generations may differ, and those of the group."""

_of_group = itemgetter(*ALIKE)
_of_member = itemgetter(*(name for name in GENERATION_MEMBERS.names if name not in OF_ONE))

WITHOUT_STOPS = (RebalanceMode.COOPERATIVE, RebalanceMode.INCREMENTAL)
"""Modes in which a rebalance stops no resource that stays with its owner."""


class PointRow(NamedTuple):
    """A row of the generations before which a resume point lies: its position, the number of its episode, and how many
    generations the episode has before it.
    """

    row: int
    position: Position
    episode: int
    before: int


def blocks(points: Sequence[PointRow]) -> Iterator[slice]:
    """Yield the rows of the blocks that may be folded; `points` are the points at which blocks begin, in order."""
    for point, following, last in zip(points, points[1:], points[2:], strict=False):
        if point.before >= WHOLE and point.episode == following.episode == last.episode:
            yield slice(point.row, following.row)


def fold(out: SilverOfGroup, foldable: Iterable[slice]) -> None:
    """Fold the blocks in the rows of `generations`, `generation_members` and `group_events`."""
    generations = out["generations"]
    chosen = [generations[block] for block in foldable]
    if not chosen:
        return
    members: dict[tuple[int, int], list[GenerationMemberOfGroup]] = defaultdict(list)
    for row in out["generation_members"]:
        members[row["incarnation"], row["generation_id"]].append(row)
    runs = [run for block in chosen for run in _runs(block, members) if len(run) >= WHOLE]
    first_of = {_number(g): run[0] for run in runs for g in run}
    for run in runs:
        for row, last in zip(members[_number(run[0])], members[_number(run[-1])], strict=True):
            row["valid_to_at"] = last["valid_to_at"]
        first = run[0]
        first["unstable_ms"] = sum(map(_unstable_ms, run))
        first["folded_count"], first["last_generation_id"] = len(run), run[-1]["generation_id"]
        first["last_completed_at"] = run[-1]["completed_at"]
    removed = first_of.keys() - {_number(run[0]) for run in runs}
    out["generations"] = [g for g in generations if _number(g) not in removed]
    out["generation_members"] = [row for row in out["generation_members"] if _number(row) not in removed]
    out["group_events"] = _folded_events(out["group_events"], first_of)


def _runs(
    block: Iterable[GenerationOfGroup], members: Mapping[tuple[int, int], Sequence[GenerationMemberOfGroup]]
) -> Iterator[Sequence[GenerationOfGroup]]:
    """Yield the generations that follow each other and are alike."""
    for key, run in groupby(block, lambda g: _of_generation(g, members[_number(g)])):
        if key is not None:
            yield list(run)


def _folded_events(
    events: Iterable[GroupEventOfGroup], first_of: Mapping[tuple[int, int], GenerationOfGroup]
) -> list[GroupEventOfGroup]:
    """Return the events; those of one folded row that differ in time only are folded into the first one."""
    out: list[GroupEventOfGroup] = []
    found: dict[tuple[Hashable, ...], GroupEventOfGroup] = {}
    for event in sorted(events, key=lambda e: e["event_at"]):
        generation = event["generation_id"]
        row = first_of.get((event["incarnation"], generation)) if generation is not None else None
        if row is None or not row["joined_at"] <= event["event_at"] <= (row["last_completed_at"] or 0):
            out.append(event)
            continue
        key = (*_number(row), *(value for name, value in event.items() if name not in ("event_at", "generation_id")))
        if (first := found.setdefault(key, event)) is event:
            out.append(event)
        else:
            first["folded_count"] = (first["folded_count"] or 1) + 1
    return out


def _of_generation(g: GenerationOfGroup, members: Iterable[GenerationMemberOfGroup]) -> tuple[Any, ...] | None:
    """Return what must be equal in the generations of one row; None for a generation that is not folded."""
    is_plain = (
        # An epoch begins because a member, a subscription or a topic changed.
        g["group_protocol"] == GroupProtocol.CLASSIC
        and g["outcome"] == GenerationOutcome.COMPLETED
        and g["joined_member_ids"] == g["left_member_ids"] == []
        and not g["resources_moved"]
        and not g["skipped_generations"]
        and g["not_costed"] is None
        and g["missing_partitions"] is None
        and (not g["resources_assigned"] or g["rebalance_mode"] in WITHOUT_STOPS)
    )
    if not is_plain:
        return None
    return _of_group(g), *map(_of_member, members)


def _unstable_ms(g: GenerationOfGroup) -> int:
    start = g["prepared_at"] if g["prepared_at"] is not None else g["prepared_at_latest"]
    return max(0, (g["completed_at"] or start) - start)


def _number(row: GenerationOfGroup | GenerationMemberOfGroup) -> tuple[int, int]:
    return row["incarnation"], row["generation_id"]
