"""One episode of `rebalances` as sums to which generations and stalls are added, so that it can be carried on.

All sums are whole milliseconds, so they are exact and do not depend on the order.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import Any

from pipelines.silver.stops.stall import Stall
from schemas.loss_interval import SHARE
from schemas.rows import GenerationOfGroup, RebalanceOfGroup
from schemas.states import Evidence, RebalanceMode, StallCause, Trigger

WORST_FIRST = (Evidence.INFERRED, Evidence.BOUNDED, Evidence.OBSERVED)
FIRST = (
    "incarnation", "first_generation_id", "started_at_earliest", "started_at_latest", "log_epoch", "source_offset",
    "settled_at",
)  # fmt: skip
BASE = ("base_log_epoch", "base_offset", "base_at", "base_rebalance_mode", "base_state")
Fields = dict[str, Any]
"""JSON values by name."""

OneStop = tuple[int, str]
"""Generation and owner: the resources that stop together (`schemas.loss_interval`)."""


def _widths(known: Mapping[OneStop, list[int]] | None = None) -> defaultdict[OneStop, list[int]]:
    return defaultdict(lambda: [0, 0], known or {})


@dataclass(slots=True, kw_only=True)
class Episode:
    """The sums of one episode.

    `row` has the columns that do not change after the first generation. `lost` are the sums of lower bounds, estimates
    and upper bounds. `widths` are the distances to both bounds of stops that may still grow, `squares` the sums of the
    squares of all others.
    """

    row: dict[str, Any]
    last_generation_id: int
    ended_at: int | None
    generations: int = 0
    triggers: dict[Trigger, None] = field(default_factory=dict)
    lost: list[int] = field(default_factory=lambda: [0, 0, 0])
    idle: int = 0
    grades: Counter[str] = field(default_factory=Counter)
    squares: list[int] = field(default_factory=lambda: [0, 0])
    widths: defaultdict[OneStop, list[int]] = field(default_factory=_widths)

    @classmethod
    def of(cls, first: GenerationOfGroup, base: dict[str, Any]) -> Episode:
        """Return the episode that begins with this generation, without the generation itself."""
        named = {
            "incarnation": first["incarnation"],
            "first_generation_id": first["generation_id"],
            "started_at_earliest": first["prepared_at_earliest"],
            "started_at_latest": first["prepared_at_latest"],
            "log_epoch": first["log_epoch"],
            "source_offset": first["source_offset"],
            "settled_at": first["completed_at"],
        }
        return cls(row=named | base, last_generation_id=first["generation_id"], ended_at=None)

    def contains(self, incarnation: int, generation: int) -> bool:
        """Return whether a generation that is known to be over belongs to the episode."""
        first: int = self.row["first_generation_id"]
        return bool(self.row["incarnation"] == incarnation and first <= generation <= self.last_generation_id)

    def goes_on(self, row: GenerationOfGroup, quiet_ms: int) -> bool:
        """Return whether a generation that follows belongs to the episode (`episodes.episodes`)."""
        start = row["prepared_at"] if row["prepared_at"] is not None else row["prepared_at_latest"]
        is_same = bool(self.row["incarnation"] == row["incarnation"])
        return is_same and (self.ended_at is None or start - self.ended_at <= quiet_ms)

    def add(self, row: GenerationOfGroup, windows: Iterable[Stall]) -> None:
        """Add a generation and the stalls that it began."""
        self.last_generation_id, self.ended_at = row["generation_id"], row["completed_at"]
        self.generations += row["completed_at"] is not None
        self.triggers.setdefault(Trigger(row["trigger"]))
        self.grades[row["evidence"]] += 1
        self.add_stalls(windows)

    def add_stalls(self, windows: Iterable[Stall]) -> None:
        """Add stalls of the episode's generations."""
        for window in windows:
            self._count(window, 1)

    def without(self, windows: Sequence[Stall]) -> Episode:
        """Return a copy without some of the added stalls.

        From now on, only stops that these stalls belong to may change, so the squares of all others are final.
        """
        kept = {(w.generation, w.owner) for w in windows}
        self.squares = self._squares(self.widths.keys() - kept)
        self.widths = _widths({key: self.widths[key] for key in kept & self.widths.keys()})
        out = replace(
            self,
            triggers=dict(self.triggers),
            lost=[*self.lost],
            grades=self.grades.copy(),
            squares=[*self.squares],
            widths=_widths({key: [*both] for key, both in self.widths.items()}),
        )
        for window in windows:
            out._count(window, -1)  # noqa: SLF001 - of the same class
        return out

    def _count(self, window: Stall, sign: int) -> None:
        self.grades[window.stop.evidence] += sign
        if not (ms := window.milliseconds):
            return
        least, estimate, most = ms
        if window.cause == StallCause.NO_MEMBER:  # idle, not lost
            self.idle += sign * estimate
            return
        lost, widths = self.lost, self.widths[window.generation, window.owner]
        lost[0] += sign * least
        lost[1] += sign * estimate
        lost[2] += sign * most
        widths[0] += sign * (estimate - least)
        widths[1] += sign * (most - estimate)

    def _squares(self, of: Iterable[OneStop]) -> list[int]:
        """Return the sums of squares, with those of further stops."""
        added = [self.widths[key] for key in of]
        return [total + sum(both[side] ** 2 for both in added) for side, total in enumerate(self.squares)]

    def rebalance(self) -> RebalanceOfGroup:
        """Return the row of `rebalances`."""
        least, estimate, most = self.lost
        below, above = (SHARE * sqrt(total) for total in self._squares(self.widths))
        row = self.row
        return {
            "incarnation": row["incarnation"],
            "first_generation_id": row["first_generation_id"],
            "last_generation_id": self.last_generation_id,
            "started_at_earliest": row["started_at_earliest"],
            "started_at_latest": row["started_at_latest"],
            "ended_at": self.ended_at,
            "generations": self.generations,
            "triggers": list(self.triggers),
            "lost_resource_seconds_min": least / 1000,
            "lost_resource_seconds": estimate / 1000,
            "lost_resource_seconds_max": most / 1000,
            "idle_resource_seconds": self.idle / 1000,
            "evidence": next(grade for grade in WORST_FIRST if self.grades[grade] > 0),
            "log_epoch": row["log_epoch"],
            "source_offset": row["source_offset"],
            "settled_at": row["settled_at"],
            "base_log_epoch": row["base_log_epoch"],
            "base_offset": row["base_offset"],
            "base_at": row["base_at"],
            "base_rebalance_mode": row["base_rebalance_mode"],
            "base_state": row["base_state"],
            "lost_resource_seconds_low": (estimate - below) / 1000,
            "lost_resource_seconds_high": (estimate + above) / 1000,
        }

    def to_fields(self) -> Fields:
        """Return the sums as JSON values; equal sums give equal values."""
        return {
            "row": {name: self.row[name] for name in (*FIRST, *BASE)},
            "last": self.last_generation_id,
            "ended_at": self.ended_at,
            "generations": self.generations,
            "triggers": list(self.triggers),
            "lost": self.lost,
            "idle": self.idle,
            "grades": sorted(grade for grade, count in self.grades.items() if count > 0),
            "squares": self.squares,
            "widths": sorted([*key, *widths] for key, widths in self.widths.items() if any(widths)),
        }

    @classmethod
    def from_fields(cls, fields: Fields) -> Episode:
        """Return the sums that `to_fields` wrote."""
        mode = fields["row"]["base_rebalance_mode"]
        out = cls(
            row=fields["row"] | {"base_rebalance_mode": mode and RebalanceMode(mode)},
            last_generation_id=fields["last"],
            ended_at=fields["ended_at"],
            generations=fields["generations"],
            triggers=dict.fromkeys(map(Trigger, fields["triggers"])),
            lost=[*fields["lost"]],
            idle=fields["idle"],
            grades=Counter(fields["grades"]),
            squares=fields["squares"],
        )
        for generation, owner, *widths in fields["widths"]:
            out.widths[generation, owner] = widths
        return out


def sums_without(known: Sequence[Episode], stalls: Sequence[Stall]) -> list[Fields]:
    """Return the sums of the last episode and of those that these stalls belong to, without these stalls."""
    out = []
    for episode in known:
        mine = [stall for stall in stalls if episode.contains(stall.incarnation, stall.generation)]
        if mine or episode is known[-1]:
            out.append(episode.without(mine).to_fields())
    return out
