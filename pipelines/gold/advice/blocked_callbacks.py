"""Members whose rebalance callback waits for as long as max.poll.interval.ms allows.

Some clients derive the timeout of their own shutdown or drain from the poll interval: everyone waits for 299 s, with an
interval of 300 s (backbeat#2787). A longer interval makes such a wait longer.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from pipelines.gold.memberships import Silver, number
from schemas.states import GroupProtocol

NEARLY = 0.9
"""A wait of at least this share of the poll interval counts as derived from the interval. The coordinator removes a
member that takes longer than the whole interval."""

TIMES = 2
"""Minimum number of such waits of the same member. A single one may be chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockedCallback:
    """A member for which all others waited `times` times for nearly its poll interval; the longest wait was
    `longest_ms`.
    """

    client_id: str
    times: int
    longest_ms: int
    poll_interval_ms: int

    def is_wait(self, ms: int) -> bool:
        """Return whether a latency in milliseconds is such a wait."""
        return NEARLY * self.poll_interval_ms <= ms < self.poll_interval_ms


def blocked_callback(silver: Silver) -> BlockedCallback | None:
    """Return the member for which everyone waited most often for nearly its poll interval; None if there is none."""
    members = {(number(m), m["member_id"]): m for m in silver["generation_members"]}
    waits: dict[tuple[str, int], list[int]] = {}
    for g in silver["generations"]:
        last = members.get((number(g), g["slowest_member_id"] or ""))
        waited = g["slowest_waited_ms"]
        if last is None or waited is None or g["group_protocol"] != GroupProtocol.CLASSIC:
            continue
        interval = last["rebalance_timeout_ms"] or 0
        if NEARLY * interval <= waited < interval:
            waits.setdefault((last["client_id"] or last["member_id"], interval), []).append(waited)
    for (client_id, interval), times in Counter({key: len(each) for key, each in waits.items()}).most_common(1):
        if times >= TIMES:
            longest = max(waits[client_id, interval])
            return BlockedCallback(client_id=client_id, times=times, longest_ms=longest, poll_interval_ms=interval)
    return None
