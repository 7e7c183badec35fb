"""The number of generations in a row: 1, or many of a loop (`folded_count`, `pipelines.silver.carrying.folding`).

So the number of rebalances is the sum of `folded_count` over rows of `generations` or `verdicts`, not the number of
rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def counted(condition: str = "true") -> str:
    """Return the aggregate that counts the generations of all rows with the condition, in SQL for DuckDB and Spark."""
    return f"CAST(coalesce(sum(coalesce(folded_count, 1)) FILTER (WHERE {condition}), 0) AS BIGINT)"


def instants_of(rows: Iterable[Mapping[str, Any]]) -> list[int]:
    """Return when the generations of these rows joined, in milliseconds.

    Those of a folded row count as equally far apart.
    """
    out: list[int] = []
    for row in rows:
        number = count_of([row])
        length = row["last_completed_at"] - row["completed_at"] if number > 1 else 0
        out += [row["joined_at"] + length * at // max(1, number - 1) for at in range(number)]
    return out


def count_of(rows: Iterable[Mapping[str, Any]]) -> int:
    """Return the number of generations in these rows."""
    return sum(row.get("folded_count") or 1 for row in rows)
