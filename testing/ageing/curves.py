"""Curves of figures over batches: how much they grow after the warm-up, and the files that hold them."""

from __future__ import annotations

import csv
import json
import statistics
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from testing.ageing.processes import Figures

WARM_UP = 1 / 3
"""Share of the batches before which a curve does not count."""

MOST_POINTS = 300
NEXT_TO_NOTHING = 5.0
"""Growth in MB per 1,000 batches that counts as none: 17,280 batches would add less than 90 MB."""

LEAST = 200
"""Batches after the warm-up below which nothing is said. Caches of files and queries fill during fifty batches."""


class Sample(NamedTuple):
    """The figures by role after a number of batches. `seconds` are those since the start."""

    seconds: float
    batches: int
    roles: dict[str, Figures]
    files: Figures


def slope(points: Sequence[tuple[float, float]]) -> float | None:
    """Return the median of the slopes between any two points, which single peaks do not change; None if unknown."""
    some = points[:: max(1, len(points) // MOST_POINTS)]
    slopes = [(y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in combinations(some, 2) if x2 > x1]
    return statistics.median(slopes) if slopes else None


def after_warm_up(samples: Sequence[Sample]) -> list[Sample]:
    """Return the samples of the last two thirds of the batches."""
    last = samples[-1].batches if samples else 0
    return [each for each in samples if each.batches >= WARM_UP * last]


def growth(samples: Sequence[Sample], role: str, figure: str) -> float | None:
    """Return the growth of a role's figure per 1,000 batches after the warm-up; None if there are too few batches."""
    points = [
        (each.batches / 1_000, each.roles[role][figure])
        for each in after_warm_up(samples)
        if figure in each.roles.get(role, {})
    ]
    return slope(points) if points and 1_000 * (points[-1][0] - points[0][0]) >= LEAST else None


def verdict(role: str, per_thousand: float | None) -> str:
    """Return one sentence on the growth of a role."""
    if per_thousand is None:
        return f"{role}: too few batches to say whether it grows"
    if abs(per_thousand) < NEXT_TO_NOTHING:
        return f"{role}: does not grow ({per_thousand:+.1f} MB per 1,000 batches after the warm-up)"
    verb = "grows" if per_thousand > 0 else "shrinks"
    return f"{role}: {verb} by {abs(per_thousand):.0f} MB per 1,000 batches after the warm-up"


def write(samples: Sequence[Sample], path: Path) -> None:
    """Write the samples as JSON, and as CSV with one row per sample and role."""
    whole = [{"seconds": s.seconds, "batches": s.batches, "roles": s.roles, "files": s.files} for s in samples]
    path.with_suffix(".json").write_text(json.dumps(whole), encoding="utf-8")
    figures = sorted({figure for s in samples for of_role in s.roles.values() for figure in of_role})
    with path.with_suffix(".csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["seconds", "batches", "role", *figures])
        for each in samples:
            for name, of_role in sorted(each.roles.items()):
                cells = [f"{of_role[figure]:.1f}" if figure in of_role else "" for figure in figures]
                rows.writerow([round(each.seconds), each.batches, name, *cells])
