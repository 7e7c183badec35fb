"""Reads from `coverage` how far each source has been read. Only new files of the table are read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from dashboards.lake.lake import milliseconds
from jobs.tables.ask import ask
from jobs.tables.location import is_elsewhere
from jobs.tables.silver_rows import current_files
from jobs.tables.table_facts import exists
from pipelines.arrow_types import schema_of
from schemas.bronze import COVERAGE
from schemas.records import OFFSETS_TOPIC

POLL = "poll"
SOURCE = ["cluster", "source", "source_partition", "log_epoch"]
REACHED = f"""
SELECT {", ".join(SOURCE)}, max(to_offset) AS to_offset_max,
       max(CASE WHEN NOT is_gap THEN unix_millis(to_at) END) AS read_at_max
FROM {{coverage}} GROUP BY {", ".join(SOURCE)}
"""  # noqa: S608 - our own names
"""Spark's SQL for the same rows as `CoverageReader` computes from files."""


@dataclass(slots=True)
class Reached:
    """One partition: its newest log epoch, one past the last offset read or missed, and the newest record's time."""

    log_epoch: int
    upto: int
    newest_ms: int | None


@dataclass(slots=True)
class CoverageReader:
    """The state from all `coverage` files read so far. Rows of the table never change, so each file is read once."""

    _files: set[str] = field(default_factory=set)
    _reached: dict[tuple[str, str, int], Reached] = field(default_factory=dict)

    def refresh(self, warehouse: Path) -> None:
        """Read new files; a missing table has none. If only Spark reads the table, Spark returns the state."""
        if not exists(warehouse, COVERAGE):
            return
        if is_elsewhere(warehouse):
            self._reached = {}
            self._add(ask(warehouse, REACHED, (COVERAGE,)).to_pylist())
            return
        now = set(current_files(warehouse, COVERAGE))
        if not self._files & now:
            # The table was recreated or all its files rewritten: start again.
            self._files, self._reached = set(), {}
        self._take(sorted(now - self._files))
        self._files = now

    def clusters(self) -> set[str]:
        """Return the clusters whose `__consumer_offsets` was read."""
        return {cluster for cluster, source, _ in self._reached if source == OFFSETS_TOPIC}

    def of_offsets(self, cluster: str) -> dict[int, Reached]:
        """Return the state by partition of `__consumer_offsets`."""
        return {
            p: reached for (of, source, p), reached in self._reached.items() if (of, source) == (cluster, OFFSETS_TOPIC)
        }

    def polled_until(self, cluster: str) -> int | None:
        found = (r.newest_ms for (of, source, _), r in self._reached.items() if (of, source) == (cluster, POLL))
        return max((at for at in found if at is not None), default=None)

    def _take(self, paths: list[str]) -> None:
        if not paths:
            return
        schema = schema_of(COVERAGE)
        columns = [*SOURCE, "to_offset", "to_at", "is_gap"]
        found = milliseconds(ds.dataset(paths, schema=schema, format="parquet").to_table(columns=columns))
        read_at = pc.if_else(found["is_gap"], pa.scalar(None, pa.int64()), found["to_at"])
        spans = found.append_column("read_at", read_at).group_by(SOURCE)
        self._add(spans.aggregate([("to_offset", "max"), ("read_at", "max")]).to_pylist())

    def _add(self, rows: Iterable[dict[str, Any]]) -> None:
        for row in rows:
            partition = row["cluster"], row["source"], row["source_partition"]
            new = Reached(log_epoch=row["log_epoch"], upto=row["to_offset_max"], newest_ms=row["read_at_max"])
            self._reached[partition] = _later(self._reached.get(partition), new)


def _later(known: Reached | None, new: Reached) -> Reached:
    if known is None or new.log_epoch > known.log_epoch:
        return new
    if new.log_epoch == known.log_epoch:
        known.upto = max(known.upto, new.upto)
        known.newest_ms = max((at for at in (known.newest_ms, new.newest_ms) if at is not None), default=None)
    return known
