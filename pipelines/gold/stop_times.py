"""When the members of a group stopped and asked to join, from the stops of their resources.

Memberships of the instance tracker begin and end when the coordinator learns of it. A replay needs the times at which
members themselves acted; they come from silver's stalls and from the starts of rebalances.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.gold.instance_tracker import Membership, Number
from pipelines.gold.memberships import CAME, Silver, number
from pipelines.gold.stall_times import stopped_at
from schemas.rows import GenerationMemberRow, GenerationRow, StallRow
from schemas.states import Evidence, GroupEventKind, Trigger


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipEnd:
    """How a membership ended. Times are in milliseconds.

    The member stopped working at `stopped_at`, at most `early_ms` earlier or `late_ms` later; the coordinator removed
    it at `gone_at`. It owned `owned` resources.
    """

    stopped_at: int
    gone_at: int
    owned: int
    early_ms: int
    late_ms: int


class StopTimes:
    """The times of one group's memberships, from its silver rows in any order."""

    def __init__(self, silver: Silver) -> None:
        self._generations = {number(g): g for g in silver["generations"]}
        self._rows: dict[str, list[GenerationMemberRow]] = defaultdict(list)
        for row in sorted(silver["generation_members"], key=number):
            self._rows[row["member_id"]].append(row)
        self._stalls: dict[str, list[StallRow]] = defaultdict(list)
        self._begun: dict[Number, int] = {}
        for stall in silver["stalls"]:
            self._stalls[stall["from_member_id"]].append(stall)
            at, key = stopped_at(stall), (stall["incarnation"], stall["generation_id"])
            self._begun[key] = min(at, self._begun.get(key, at))
        self.first_stops: dict[tuple[str, Number], int] = {}
        """The first stop of each member in each rebalance, by member id and generation."""
        for member_id, stalls in self._stalls.items():
            for stall in stalls:
                number_of = (member_id, (stall["incarnation"], stall["generation_id"]))
                at = stopped_at(stall)
                self.first_stops[number_of] = min(at, self.first_stops.get(number_of, at))
        self._seen_joining = {
            (e["member_id"], e["event_at"])
            for e in silver["group_events"]
            if e["kind"] in CAME and e["evidence"] == Evidence.OBSERVED
        }
        self._noticing = _noticing(list(self._generations.values()), silver["stalls"])

    def arrived_at(self, membership: Membership) -> int:
        """Return when a member asked to join.

        The source is a log line; without one, the time is that at which the others began to notice the rebalance, less
        the usual time until they notice.
        """
        key = membership.joined_in
        if key is None or (membership.member_id, membership.arrived_at) in self._seen_joining:
            return membership.arrived_at
        g = self._generations[key]
        if g["prepared_at"] is not None:
            return int(g["prepared_at"])
        first = self._begun.get(key)
        return membership.settled_at if first is None else min(first - self._noticing, membership.settled_at)

    def end(self, membership: Membership) -> MembershipEnd | None:
        """Return how a membership ended; None while it lasts."""
        if membership.gone_at is None:
            return None
        row = self._last_row(membership)
        stop, early, late = self._stopped(membership, row)
        is_left = membership.departure_kind in (None, GroupEventKind.LEFT)
        is_absence = is_left and (membership.evidence == Evidence.INFERRED or membership.left_in is None)
        # If only its absence is recorded, or that a static member was replaced: a client leaves when it has stopped.
        gone = stop if is_absence else membership.gone_at
        return MembershipEnd(
            stopped_at=stop,
            gone_at=gone,
            owned=len(row["assigned"] or ()),
            early_ms=max(0, stop - early),
            late_ms=max(0, min(late, gone) - stop),
        )

    def _last_row(self, membership: Membership) -> GenerationMemberRow:
        mine = self._rows[membership.member_id]
        until = membership.left_in
        return next((row for row in reversed(mine) if until is None or number(row) < until), mine[0])

    def _stopped(self, membership: Membership, row: GenerationMemberRow) -> tuple[int, int, int]:
        """Return when a member stopped: the estimate, the earliest and the latest time.

        A member that leaves releases its resources last; one that hangs or dies may have stopped before.
        """
        end = membership.gone_at or 0
        found = {
            stopped_at(s): s
            for s in self._stalls[membership.member_id]
            if (s["resumed_at_earliest"] is None or s["to_member_id"] != membership.member_id)
            and row["valid_from_at"] <= stopped_at(s) <= end
        }
        if found:
            is_left = membership.departure_kind in (None, GroupEventKind.LEFT)
            at = max(found) if is_left else min(found)
            return at, found[at]["stopped_at_earliest"], found[at]["stopped_at_latest"]
        silent = 0
        if membership.departure_kind == GroupEventKind.SESSION_EXPIRED:
            silent = membership.session_timeout_ms
        elif membership.departure_kind == GroupEventKind.POLL_TIMEOUT:
            silent = membership.rebalance_timeout_ms
        return end - silent, end - silent, end - silent


def _noticing(generations: Sequence[GenerationRow], stalls: Sequence[StallRow]) -> int:
    """Return the average time in milliseconds until the first of the other members notices that a member left."""
    stopped: dict[Number, list[StallRow]] = defaultdict(list)
    for stall in stalls:
        stopped[stall["incarnation"], stall["generation_id"]].append(stall)
    found = []
    for g in generations:
        left = g["left_member_ids"] or ()
        gone = [stopped_at(s) for s in stopped[number(g)] if s["from_member_id"] in left]
        stayed = [stopped_at(s) for s in stopped[number(g)] if s["from_member_id"] not in left]
        if gone and stayed and not g["joined_member_ids"] and g["trigger"] == Trigger.MEMBER_LEFT:
            found.append(max(0, min(stayed) - min(gone)))
    return sum(found) // len(found) if found else 0
