"""A small warehouse of silver tables: scripted groups whose numbers fit together, for pages and requests.

`everyday` returns its rows, `write` writes them; `python -m testing.sample DIR` does both. Times are relative to `now`,
so that relative ranges show something. Rows of recorded captures are in `testing.warehouses`.
"""

from __future__ import annotations

from testing.sample.cluster import announced, coverage, deploys, moves, pushes, setting_changes, storms, verdicts
from testing.sample.groups import churny, cooperative, guessed, hostile, nightly, operations, static, stuck, unknown
from testing.sample.history import CLUSTER, History
from testing.sample.tables import Rows, merge, write

__all__ = [
    "CLUSTER", "History", "Rows", "announced", "churny", "cooperative", "coverage", "deploys", "everyday",
    "guessed", "hostile", "merge", "moves", "nightly", "operations", "setting_changes", "static", "storms", "stuck",
    "unknown", "verdicts", "write",
]  # fmt: skip


def everyday(now: int) -> Rows:
    return merge(
        {},
        *(story(now) for story in (churny, guessed, cooperative, static, nightly, stuck, unknown)),
        churny(now - 60_000, "imports-joiner", "imports", "imports"),
        coverage(now),
        moves(now),
        announced(now),
        storms(now),
        deploys(now),
        setting_changes(now),
        verdicts(churny(now)),
        pushes(churny(now)),
    )
