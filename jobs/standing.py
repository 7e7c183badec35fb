"""What a batch needs of bronze and silver as they stand: of few groups DuckDB reads it, of many Spark.

Of few groups, planning a read of Delta takes Spark longer than all there is to read. Either way only those rows come to
the driver that a batch may replace, however long the groups' history is.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from jobs.delta_io import read
from jobs.engine import connect, show
from pipelines.arrow_types import row_type
from pipelines.silver.frame import INPUTS, RAW
from pipelines.silver.restarts import (
    COMMITTING,
    RESTARTS,
    after_base,
    committing,
    from_base,
    replaced,
    restarts,
    since_base,
)
from schemas.silver import GENERATION_MEMBERS, GROUPS, REBALANCES, STALLS
from schemas.tables import Table

FEW_GROUPS = 5_000
"""Up to so many, their rows fit into the driver, which finds them sooner than Spark plans to."""

FEW_ROWS = 200_000
"""So many rows of bronze are rebuilt in the driver, in 30 us each, not a long history that is read for the first time.
Spark takes seconds before it begins, the most where a batch is late already and therefore large.
"""

ASTRAY_MS = 600_000
"""Clocks of two brokers differ by less: what was written after a record has a time at most so much before it."""

GROUP = ["cluster", "group_id"]


class Frames(NamedTuple):
    """Rows of bronze that Spark is to rebuild silver from."""

    records: DataFrame
    runs: DataFrame
    events: DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The tables of a warehouse, as far as the groups in `touched` go, which has what `restarts.committing` reads."""

    spark: SparkSession
    warehouse: Path
    touched: pa.Table

    @property
    def are_few(self) -> bool:
        return int(self.touched.num_rows) <= FEW_GROUPS

    def committing(self) -> tuple[pa.Table, pa.Table]:
        """Of groups that only committed on, the rows of `groups` and what becomes of them (`restarts.committing`)."""
        kind = pa.schema(list(row_type(GROUPS)))
        if not self.touched.filter(pc.is_valid(self.touched["last_commit_at"])).num_rows:
            return kind.empty_table(), kind.empty_table()
        if self.are_few:
            new = self._asked(COMMITTING, groups=GROUPS, stalls=STALLS, members=GENERATION_MEMBERS)
            return self._rows(GROUPS, new.select(GROUP), ""), new.cast(kind)
        groups, stalls, members = (self._read(table) for table in (GROUPS, STALLS, GENERATION_MEMBERS))
        new = committing(self.spark.createDataFrame(self.touched), groups, stalls, members).toArrow()
        told = F.broadcast(self.spark.createDataFrame(new.select(GROUP)))
        old = groups.join(told, GROUP, "left_semi").select(*GROUPS.names).toArrow() if new.num_rows else new
        return old, new

    def restarts(self) -> pa.Table:
        """Where the history of each group may be taken up again (`restarts.restarts`)."""
        if self.are_few:
            return self._asked(RESTARTS, rebalances=REBALANCES, groups=GROUPS)
        new = self.spark.createDataFrame(self.touched.select([*GROUP, "since_at"]))
        return restarts(new, self._read(REBALANCES), self._read(GROUPS)).toArrow()

    def history(self, points: pa.Table) -> dict[str, pa.Table] | Frames:
        """The rows of bronze that a rebuild from `points` (what `restarts` returned) needs, by their names in `INPUTS`,
        where they are few.
        """
        if self.are_few:
            found: dict[str, pa.Table] = {}
            for name, table in INPUTS.items():
                found[name] = self._since(table, points, from_base(table), most=FEW_ROWS)
                if found[name].num_rows > FEW_ROWS:
                    break
            else:
                return found
        stand = self.spark.createDataFrame(points)
        return Frames(*(since_base(self._read(table), table, stand) for table in INPUTS.values()))

    def replaced(self, table: Table, points: pa.Table) -> pa.Table:
        """The rows of a silver table that a rebuild from `points` replaces."""
        if self.are_few:
            return self._since(table, points, after_base(table))
        return replaced(self._read(table), table, self.spark.createDataFrame(points)).toArrow()

    def _read(self, table: Table) -> DataFrame:
        return read(self.spark, self.warehouse, table)

    def _asked(self, sql: str, **tables: Table) -> pa.Table:
        with connect() as engine:
            engine.register("touched", self.touched)
            for name, table in tables.items():
                show(engine, name, self.warehouse, table)
            return engine.sql(sql.format(touched="touched", **{name: name for name in tables})).to_arrow_table()

    def _since(self, table: Table, points: pa.Table, holds: str, *, most: int | None = None) -> pa.Table:
        """Rows `old` of the table for which `holds`; where there are more than `most`, some of them, more than `most`.

        For groups with a base, files are not opened whose rows are all from before it.
        """
        tail = f"WHERE {holds}" + (f" LIMIT {most + 1}" if most is not None else "")
        has_base = pc.is_valid(points["base_at"])
        parts = [self._rows(table, points.filter(pc.invert(has_base)), tail)]
        if (based := points.filter(has_base)).num_rows:
            earliest = round(pc.min(based["base_at"]).as_py().timestamp() * 1000) - ASTRAY_MS
            parts.append(self._rows(table, based, tail, since=(table.time, earliest) if table.time else None))
        return pa.concat_tables(parts)

    def _rows(self, table: Table, points: pa.Table, tail: str, since: tuple[str, int] | None = None) -> pa.Table:
        """Rows `old` of the table whose groups are among `points` (`point`) and for which `tail` holds."""
        kind = pa.schema([field for field in row_type(table) if field.name not in RAW])
        if not points.num_rows:
            return kind.empty_table()
        columns = ", ".join(f'old."{name}"' for name in kind.names)
        with connect() as engine:
            show(engine, "stored", self.warehouse, table, since=since)
            engine.register("points", points)
            found = engine.sql(
                f"SELECT {columns} FROM stored old JOIN points point "  # noqa: S608 - our own names
                f"ON old.cluster = point.cluster AND old.group_id = point.group_id {tail}"
            ).to_arrow_table()
        found = found.cast(kind)
        # Spark takes no column of no pieces.
        return found if found.num_rows else kind.empty_table()
