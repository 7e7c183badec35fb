"""Whether stopped resources resumed, and at which offset: late, or with records read again."""

from __future__ import annotations

from collections.abc import Iterable

from dashboards.lake.lake import Row
from dashboards.text import instant
from dashboards.zone import zone
from schemas.written import count


def resumed_from(stalls: Iterable[Row], unit: str) -> str:
    """Return how ended stops resumed, from the last commit before each and the first after it.

    If the first commit is behind the last one, records were read again. Otherwise nothing is known of records that were
    read but not committed when the resource stopped, because Kafka has no record of them.
    """
    over = [s for s in stalls if s["resumed_at_latest"] is not None]
    known = [s for s in over if s["last_committed_offset"] is not None and s["first_committed_offset"] is not None]
    if not known:
        return "not known: no commits before and after it"
    back = [s for s in known if s["first_committed_offset"] < s["last_committed_offset"]]
    of = f"{len(known):,} of {count(len(over), unit)} known"
    if not back:
        return f"no commit went back ({of})"
    records = sum(s["last_committed_offset"] - s["first_committed_offset"] for s in back)
    return f"{count(len(back), unit)} went back by {count(records, 'record')} in all, read again ({of})"


def all_resumed(stalls: Iterable[Row], unit: str) -> str:
    """Return whether all resources stopped by the newest rebalance have committed again, and when the last one did."""
    rows = list(stalls)
    if not rows:
        return ""
    newest = max((s["incarnation"], s["generation_id"]) for s in rows)
    mine = [s for s in rows if (s["incarnation"], s["generation_id"]) == newest]
    waiting = [s for s in mine if s["first_commit_at"] is None]
    if waiting:
        of = f" Of {count(len(mine), unit)} stopped by the last rebalance,"
        return f"{of} {len(waiting):,} had no commit yet, or none within ten minutes."
    last = max(s["first_commit_at"] for s in mine)
    return f" All {count(len(mine), unit)} stopped by the last rebalance committed again by {instant(last)} {zone()}."
