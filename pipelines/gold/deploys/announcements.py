"""The marks that announce deploys of one group."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from pipelines.gold.marks_nearby import groups_of, in_order
from schemas.rows import MarkRow
from schemas.states import MarkKind
from schemas.thresholds import MARK_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """The marks of kind deploy at one time, in milliseconds. `is_named`: one of them names the group."""

    at: int
    text: str
    is_named: bool


def announcements(marks: Iterable[MarkRow], joined: Sequence[int]) -> list[Announcement]:
    """Return the announcements that may begin a deploy of the group, in order.

    `marks` are about the group or its whole cluster. `joined` are the times of the group's completed rebalances, in
    order. A mark about the whole cluster does not count up to 30 min after one that names the group: it is another
    team's. Of several announcements within 30 min without a rebalance between them, the last one counts.
    """
    found = [_of_time(list(same)) for _, same in groupby(_deploys(marks), key=lambda m: m["marked_at"])]
    named = [a.at for a in found if a.is_named]
    kept = [a for a in found if a.is_named or not _any_in(named, a.at - MARK_MS, a.at)]
    return [
        a
        for a, following in zip(kept, [*kept[1:], None], strict=False)
        if following is None or following.at - a.at > MARK_MS or _any_in(joined, a.at, following.at)
    ]


def _deploys(marks: Iterable[MarkRow]) -> list[MarkRow]:
    return in_order(m for m in marks if m["kind"] == MarkKind.DEPLOY)


def _of_time(same: Sequence[MarkRow]) -> Announcement:
    named = [m for m in same if groups_of(m)]
    texts = sorted({m["text"] for m in named or same})
    return Announcement(at=same[0]["marked_at"], text="; ".join(texts), is_named=bool(named))


def _any_in(timestamps: Sequence[int], first: int, end: int) -> bool:
    """Return whether one of these times, which are in order, is in [first, end)."""
    at = bisect_left(timestamps, first)
    return at < len(timestamps) and timestamps[at] < end
