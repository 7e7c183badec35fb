"""The rebalances of one group that have one cause, as its explanation looks at them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.gold.diagnosis.causes import Arrival, Context, Found
from pipelines.gold.diagnosis.departures import Departure
from pipelines.gold.instance_tracker import Number
from pipelines.gold.marks_nearby import is_deployed
from pipelines.gold.memberships import number
from schemas.rows import GenerationRow, MarkRow
from schemas.states import DiagnosisCause


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """The rebalances of one group that have one cause; `rows` and `found` side by side, in order. `numbers` are their
    generations and those that each of them overtook; `marks` are those of the group and of its whole cluster.
    """

    cause: DiagnosisCause
    rows: Sequence[GenerationRow]
    found: Sequence[Found]
    known: Context
    numbers: Sequence[Number]
    marks: Sequence[MarkRow] = ()

    def departures(self) -> list[Departure]:
        """Those of this cause that these rebalances show or, being returns, end; in order of time."""
        ended = [a.after for a in self.arrivals() if a.after is not None]
        shown = [d for n in self.numbers for d in self.known.departures.get(n, ()) if d.cause == self.cause]
        return sorted({id(d.membership): d for d in (*shown, *ended)}.values(), key=lambda d: (d.at, d.instance.label))

    def arrivals(self) -> list[Arrival]:
        mine = (a for n in self.numbers for a in self.known.arrivals.get(n, ()))
        return [a for a in mine if a.cause == self.cause]

    def size(self, at: int) -> int:
        """How many instances were in the group then, not counting those that came in the place of others."""
        new = {a.instance.number for a in self.arrivals() if a.after is None}
        return sum(
            any(s.was_there(at) for s in instance.memberships)
            for instance in self.known.instances
            if instance.number not in new
        )

    @property
    def is_announced(self) -> bool:
        """A deploy was announced shortly before each of these rebalances."""
        return all(is_deployed(g["joined_at"], self.marks) for g in self.rows)

    @property
    def names(self) -> list[str]:
        return [name for found in self.found for name in found.instances]


def longest_run(case: Case) -> int:
    """Follow-ups in a row, by the numbers of their generations."""
    longest, run, before = 0, 0, None
    for g in case.rows:
        is_next = before is not None and number(g) == (before[0], before[1] + 1)
        run, before = run + 1 if is_next else 1, number(g)
        longest = max(longest, run)
    return longest
