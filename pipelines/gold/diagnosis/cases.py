"""The rebalances and static returns of one group that have one cause, with the data that its explanation needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.gold.diagnosis.causes import Arrival, Context, Found
from pipelines.gold.diagnosis.departures import Departure
from pipelines.gold.instance_tracker import Number
from pipelines.gold.marks_nearby import is_deployed
from pipelines.gold.memberships import number
from schemas.folded_rows import count_of
from schemas.rows import GenerationRow, MarkRow
from schemas.states import DiagnosisCause


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """The rebalances of one group that have one cause.

    `rows` and `found` have one element per rebalance, in order. `numbers` are the generations of these rebalances and
    the generations that they overtook. `marks` are the marks of the group and of its whole cluster. `returns` are
    departures with this cause of static members that returned without a rebalance.
    """

    cause: DiagnosisCause
    rows: Sequence[GenerationRow]
    found: Sequence[Found]
    known: Context
    numbers: Sequence[Number]
    marks: Sequence[MarkRow] = ()
    returns: Sequence[Departure] = ()

    def departures(self) -> list[Departure]:
        """Return the departures of this cause in these rebalances, or before returns in them, in order of time."""
        ended = [a.after for a in self.arrivals() if a.after is not None]
        shown = [d for n in self.numbers for d in self.known.departures.get(n, ()) if d.cause == self.cause]
        return sorted({id(d.membership): d for d in (*shown, *ended)}.values(), key=lambda d: (d.at, d.instance.label))

    def arrivals(self) -> list[Arrival]:
        """Return the arrivals of this cause in these rebalances."""
        mine = (a for n in self.numbers for a in self.known.arrivals.get(n, ()))
        return [a for a in mine if a.cause == self.cause]

    def size(self, at: int) -> int:
        """Return the number of instances in the group at `at`, without new instances of this case."""
        new = {a.instance.number for a in self.arrivals() if a.after is None}
        return sum(
            any(s.was_there(at) for s in instance.memberships)
            for instance in self.known.instances
            if instance.number not in new
        )

    @property
    def rebalances(self) -> int:
        """The number of these rebalances, of which one row may have many."""
        return count_of(self.rows)

    @property
    def is_announced(self) -> bool:
        """Whether a deploy was announced shortly before each of these rebalances and returns."""
        return all(is_deployed(at, self.marks) for at in self.moments)

    @property
    def moments(self) -> list[int]:
        """The times of these rebalances and returns, in milliseconds and in order."""
        return sorted([*(g["joined_at"] for g in self.rows), *(d.at for d in self.returns)])

    @property
    def names(self) -> list[str]:
        """The instances of the rebalances."""
        return [name for found in self.found for name in found.instances]


def longest_run(case: Case) -> int:
    """Return the longest run of consecutive generations among these rebalances."""
    longest, run, before = 0, 0, None
    for g in case.rows:
        is_next = before is not None and number(g) == (before[0], before[1] + 1)
        run = count_of([g]) + (run if is_next else 0)
        before = g["incarnation"], g.get("last_generation_id") or g["generation_id"]
        longest = max(longest, run)
    return longest
