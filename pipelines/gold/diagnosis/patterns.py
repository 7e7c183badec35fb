"""Patterns that only several generations of a group show: changed resources, a flapping leader, other assignors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from pipelines.gold.instance_tracker import Number
from pipelines.gold.memberships import number
from schemas.folded_rows import count_of
from schemas.rows import GenerationMemberRow, GenerationRow
from schemas.states import GroupType, RebalanceMode, Trigger
from schemas.thresholds import FLAP_MS, FLAPS


def changed(generations: Sequence[GenerationRow], members: Iterable[GenerationMemberRow]) -> Iterator[Number]:
    """Yield generations with resources that no earlier generation assigned or (eager ones only) without resources that
    the previous generation assigned.
    """
    handed: dict[Number, set[tuple[str, int]]] = defaultdict(set)
    for row in members:
        handed[number(row)] |= {(r["name"], r["index"]) for r in row["assigned"] or ()}
    seen = set(handed[number(generations[0])]) if generations else set()
    for before, g in pairwise(generations):
        now = handed[number(g)]
        is_whole = before["rebalance_mode"] == g["rebalance_mode"] == RebalanceMode.EAGER
        if (now - seen and seen) or (is_whole and now and handed[number(before)] - now):
            yield number(g)
        seen |= now


def flapping(generations: Sequence[GenerationRow], changed: frozenset[Number]) -> Iterator[Number]:
    """Yield generations in which a leader repeatedly rejoins although the resources to assign stay the same."""
    run: list[GenerationRow] = []
    for g in generations:
        is_flap = g["trigger"] in (Trigger.LEADER_REJOINED, Trigger.METADATA_CHANGED) and number(g) not in changed
        if not is_flap or g["group_type"] == GroupType.CONNECT:
            continue
        if run and g["joined_at"] - run[-1]["joined_at"] > FLAP_MS:
            yield from map(number, run if count_of(run) >= FLAPS else ())
            run = []
        run.append(g)
    yield from map(number, run if count_of(run) >= FLAPS else ())


def switching(generations: Sequence[GenerationRow]) -> Iterator[Number]:
    """Yield each generation with a new assignor, if the group returned at least once to an earlier assignor."""
    led = [g for g in generations if g["assignor"]]
    switches = [g for before, g in pairwise(led) if g["assignor"] != before["assignor"]]
    used = [g["assignor"] for g in [*led[:1], *switches]]
    if len(used) > len(set(used)):
        yield from map(number, switches)
