"""The log lines of `quarantine` that may be lifecycle lines but are not known, for `doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from deltalake import DeltaTable

from jobs.tables.engine import connect, show
from jobs.tables.paths import table_path
from schemas.bronze import QUARANTINE
from schemas.unread_lines import REMEDIES, UNREAD_REASONS

BY_SOURCE = """
SELECT cluster, source, reason, sum(coalesce(lines, 1)), arg_max(detail, source_offset),
       arg_max(source_partition, source_offset) < 0
FROM quarantine WHERE list_contains($reasons, reason)
GROUP BY cluster, source, reason ORDER BY source, cluster, reason
"""


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
    """Return the unread lines by source, cluster and reason; none if the table is missing or of an older Regroup."""
    path = table_path(warehouse, QUARANTINE)
    if not DeltaTable.is_deltatable(path) or "lines" not in {field.name for field in DeltaTable(path).schema().fields}:
        return []
    with connect() as engine:
        show(engine, QUARANTINE.name, warehouse, QUARANTINE)
        rows = engine.sql(BY_SOURCE, params={"reasons": [str(reason) for reason in UNREAD_REASONS]}).fetchall()
    return [
        UnreadLines(
            cluster=cluster,
            source=source,
            reason=reason,
            lines=int(lines),
            detail=detail or "",
            remedy=REMEDIES[reason, is_file],
        )
        for cluster, source, reason, lines, detail, is_file in rows
    ]
