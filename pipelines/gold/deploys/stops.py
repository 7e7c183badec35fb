"""What a deploy stopped: the loss of its stalls, and when every resource had an owner again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from pipelines.gold.churn import is_lost
from pipelines.gold.diagnosis.losses import RebalanceLoss, is_return
from pipelines.gold.instance_tracker import Number
from pipelines.gold.memberships import number
from schemas.loss_interval import loss
from schemas.rows import GenerationRow, StallRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Stops:
    """The loss in resource-milliseconds, with its hard bounds and the limits of its 90 % interval.

    `resumed_at` is the time at which the last of the resources had an owner again, None if there are none. `is_over`:
    whether all of them have one.
    """

    bounds: RebalanceLoss
    low: float
    high: float
    resumed_at: int | None
    is_over: bool


def stops(
    stalls: Iterable[StallRow], rows: Sequence[GenerationRow], numbers: Collection[Number], returned: Collection[str]
) -> Stops:
    """Return the stops that the generations with these `numbers` caused, and those of `returned` static members.

    `rows` has every generation of the stalls. `returned` are the member ids that these members had before.
    """
    offsets = {number(g): g["source_offset"] for g in rows}
    mine = [s for s in stalls if _is_of(s, offsets, numbers, returned)]
    lost, bounds = [s for s in mine if is_lost(s)], RebalanceLoss()
    for stall in lost:
        bounds.add(stall)
    _, low, high = loss(
        (
            (s["incarnation"], s["generation_id"], s["from_member_id"]),
            s["stopped_ms_min"] or 0,
            s["stopped_ms"] or 0,
            s["stopped_ms_max"] or 0,
        )
        for s in lost
    )
    ends = [s["resumed_at_latest"] for s in mine]
    known = [at for at in ends if at is not None]
    return Stops(
        bounds=bounds, low=low, high=high, resumed_at=max(known, default=None), is_over=len(known) == len(ends)
    )


def _is_of(stall: StallRow, offsets: dict[Number, int], numbers: Collection[Number], returned: Collection[str]) -> bool:
    if is_return(stall, offsets):
        return stall["from_member_id"] in returned
    return (stall["incarnation"], stall["generation_id"]) in numbers
