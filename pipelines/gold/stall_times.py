"""The time at which a resource stopped, from a row of silver's `stalls`."""

from __future__ import annotations

from schemas.rows import StallRow


def stopped_at(stall: StallRow) -> int:
    """Return the best estimate of the time at which the resource stopped, in milliseconds."""
    if stall["stopped_ms"] is not None and stall["resumed_at_earliest"] is not None:
        return int(stall["resumed_at_earliest"] - stall["stopped_ms"])
    return int(stall["stopped_at_earliest"] + stall["stopped_at_latest"]) // 2
