"""Times of a row of `generations` that pages, answers and queries need alike."""

from __future__ import annotations

from dashboards.lake.lake import Row


def ended(generation: Row) -> int:
    """Return when the rebalance completed (of a loop the last), or its join phase if it did not, in ms."""
    known = (generation.get("last_completed_at"), generation["completed_at"], generation["joined_at"])
    return int(next(at for at in known if at is not None))
