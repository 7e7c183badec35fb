"""The loss of each completed rebalance: the stalls that its generation, and those that it overtook, caused."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pipelines.gold.churn import is_lost
from pipelines.gold.instance_tracker import Number
from pipelines.gold.memberships import number
from schemas.rows import GenerationRow, StallRow
from schemas.states import StallCause


@dataclass(slots=True)
class RebalanceLoss:
    """Bounds and best estimate of a loss in resource-milliseconds."""

    low: int = 0
    best: int = 0
    high: int = 0

    def add(self, stall: StallRow) -> None:
        """Add a stop if it counts as lost."""
        if is_lost(stall):
            self.low += stall["stopped_ms_min"] or 0
            self.best += stall["stopped_ms"] or 0
            self.high += stall["stopped_ms_max"] or 0


def overtaken(rows: Sequence[GenerationRow]) -> dict[Number, list[Number]]:
    """Return, by completed generation, the generations that it overtook and itself."""
    out: dict[Number, list[Number]] = {}
    waiting: list[Number] = []
    for g in rows:
        waiting.append(number(g))
        if g["completed_at"] is not None:
            out[number(g)], waiting = waiting, []
    return out


def losses(
    stalls: Iterable[StallRow], rows: Sequence[GenerationRow], parts: Mapping[Number, Sequence[Number]]
) -> Mapping[Number, RebalanceLoss]:
    """Return the loss by completed generation, for every key of `parts`, which `overtaken` returned for `rows`.

    The loss of an overtaken generation counts for the generation that overtook it. A static member that returned within
    a generation was not stopped by a rebalance, so its loss is left out.
    """
    pays = {part: whole for whole, mine in parts.items() for part in mine}
    offsets = {number(g): g["source_offset"] for g in rows}
    out: dict[Number, RebalanceLoss] = defaultdict(RebalanceLoss)
    for stall in stalls:
        made = (stall["incarnation"], stall["generation_id"])
        if made in pays and not is_return(stall, offsets):
            out[pays[made]].add(stall)
    return {whole: out[whole] for whole in parts}


def losses_of_returns(stalls: Iterable[StallRow], rows: Sequence[GenerationRow]) -> Mapping[str, RebalanceLoss]:
    """Return what static members lost that returned within a generation, by the member id that they had before.

    `rows` has every generation of these stalls.
    """
    offsets = {number(g): g["source_offset"] for g in rows}
    out: dict[str, RebalanceLoss] = defaultdict(RebalanceLoss)
    for stall in stalls:
        if is_return(stall, offsets):
            out[stall["from_member_id"]].add(stall)
    return out


def is_return(stall: StallRow, offsets: Mapping[Number, int]) -> bool:
    """Return whether a static member that returned without a rebalance caused the stop.

    `offsets` has the offset of each generation's record.
    """
    made = (stall["incarnation"], stall["generation_id"])
    return bool(stall["cause"] == StallCause.STATIC_RESTART and stall["stopped_by_offset"] != offsets.get(made))
