"""The log lines of `quarantine` that may be lifecycle lines but are not known, for `doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute as pc
from deltalake import DeltaTable

from jobs.tables.delta_io import table_path
from schemas.bronze import QUARANTINE
from schemas.unread_lines import REMEDIES, UNREAD_REASONS

COLUMNS = ("cluster", "source", "source_partition", "source_offset", "reason", "detail", "lines")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadLines:
    """Lines of one source and reason: their number, the `detail` of the newest kept line, and what to do."""

    cluster: str
    source: str
    reason: str
    lines: int
    detail: str
    remedy: str


def unread_lines(warehouse: Path) -> list[UnreadLines]:
    """Return the unread lines by cluster, source and reason; none if the table is missing or of an older Regroup."""
    path = table_path(warehouse, QUARANTINE)
    if not DeltaTable.is_deltatable(path):
        return []
    table = DeltaTable(path)
    if "lines" not in {field.name for field in table.schema().fields}:
        return []
    reasons = [str(reason) for reason in UNREAD_REASONS]
    rows = table.to_pyarrow_table(columns=list(COLUMNS), filters=[("reason", "in", reasons)])
    found: list[UnreadLines] = []
    for place in rows.group_by(["cluster", "source", "reason"]).aggregate([]).sort_by("source").to_pylist():
        alike = rows
        for column, value in place.items():
            alike = alike.filter(pc.equal(alike[column], value))
        newest = alike.sort_by([("source_offset", "descending")]).slice(length=1).to_pylist()[0]
        remedy = REMEDIES[place["reason"], newest["source_partition"] < 0]
        count = int(pc.sum(pc.fill_null(alike["lines"], 1)).as_py())
        found.append(UnreadLines(**place, lines=count, detail=newest["detail"] or "", remedy=remedy))
    return found
