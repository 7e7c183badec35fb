"""The newest advice for one group, and which of it recommends a change."""

from __future__ import annotations

from collections.abc import Iterable

from dashboards.lake.lake import Row
from dashboards.queries.store import Store
from schemas.states import AdviceAction


def advice_of(store: Store, cluster: str, group: str) -> list[Row]:
    """Return the rows of the group's newest advice, the best first."""
    return [row for row in store.advice(group).rows if (row["cluster"], row["group_id"]) == (cluster, group)]


def recommended(rows: Iterable[Row]) -> list[Row]:
    """Return the rows that recommend a change."""
    return [row for row in rows if row["is_recommended"] and row["action"] != AdviceAction.NONE]
