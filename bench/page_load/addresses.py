"""Addresses of pages with ranges, groups and storms of a history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from urllib.parse import quote

import duckdb

from bench.fleet.fleet import CLUSTER, HOUR


@dataclass(frozen=True, slots=True)
class Known:
    """The names to request. `groups` are in order of activity, busiest first, each with its newest generation."""

    groups: list[tuple[str, int]]
    storms: list[str]
    end: int


def known(warehouse: Path) -> Known:
    with duckdb.connect() as engine:
        made = f"read_parquet('{warehouse}/generations/*.parquet')"
        groups = engine.sql(
            f"SELECT group_id, max(generation_id) FROM {made} GROUP BY group_id ORDER BY count(*) DESC, group_id"
        ).fetchall()
        storms = engine.sql(f"SELECT storm_id FROM read_parquet('{warehouse}/storms/*.parquet')").fetchall()
        end = engine.sql(f"SELECT epoch_ms(max(to_at)) FROM read_parquet('{warehouse}/coverage/*.parquet')").fetchall()
    return Known([(group, number) for group, number in groups], [storm for (storm,) in storms], end[0][0])


class Asking:
    """Addresses whose ranges end at one of `ends` times. With the default, no time is requested twice."""

    def __init__(self, there: Known, seed: int, ends: int = 600_000) -> None:
        self.there, self.rng, self.ends = there, Random(seed), ends

    def between(self, hours: float) -> str:
        end = self.there.end - self.rng.randrange(self.ends) * 600_000 // self.ends
        return f"from={end - int(hours * HOUR)}&to={end}"

    def fleet(self, hours: float) -> str:
        return f"/?{self.between(hours)}"

    def group(self, hours: float) -> str:
        """Return the address of a group; a busy group more often than a quiet one."""
        chosen = min(self.rng.randrange(len(self.there.groups)) for _ in range(3))
        return f"/group?cluster={CLUSTER}&group={quote(self.there.groups[chosen][0], safe='')}&{self.between(hours)}"

    def rebalance(self) -> str:
        group, newest = self.rng.choice(self.there.groups)
        number = self.rng.randint(1, newest)
        return f"/rebalance?cluster={CLUSTER}&group={quote(group, safe='')}&incarnation=0&generation={number}"

    def storm(self) -> str:
        return f"/storms?storm={self.rng.choice(self.there.storms)}"

    def advice(self) -> str:
        return f"/advice?q={self.rng.choice(self.there.groups)[0][: self.rng.randrange(1, 3)]}"

    def pages(self) -> dict[str, Callable[[], str]]:
        return {
            "fleet 1 h": lambda: self.fleet(1),
            "fleet 24 h": lambda: self.fleet(24),
            "fleet 7 d": lambda: self.fleet(7 * 24),
            "fleet 30 d": lambda: self.fleet(30 * 24),
            "group 24 h": lambda: self.group(24),
            "zoom (group, 2 h)": lambda: self.group(2),
            "zoom (fleet, 3 h)": lambda: self.fleet(3),
            "rebalance": self.rebalance,
            "causes 7 d": lambda: f"/causes?{self.between(7 * 24)}",
            "causes 30 d": lambda: f"/causes?{self.between(30 * 24)}",
            "causes by group 30 d": lambda: f"/causes?by=group&{self.between(30 * 24)}",
            "storms 7 d": lambda: f"/storms?{self.between(7 * 24)}",
            "storm": self.storm,
            "advice": self.advice,
            "reassignments 30 d": lambda: f"/reassignments?{self.between(30 * 24)}",
            "health": lambda: "/health",
        }
