"""Silver that the facts of storms are read from.

Below an address, each read is a query of Spark, which takes about a second however few rows it returns. So the rows of
several storms' groups are read at once there, and of other groups only the rows that a storm is compared with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path

import pyarrow as pa
from duckdb import DuckDBPyConnection
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from jobs.tables.as_of import version_of
from jobs.tables.delta_io import read
from jobs.tables.engine import show
from jobs.tables.location import is_elsewhere
from jobs.tables.named_tables import not_before, of_cluster
from pipelines.gold.groups import INPUTS, TIMES
from pipelines.gold.storms.storms import Storm
from schemas.silver import GENERATION_MEMBERS, GENERATIONS
from schemas.states import StormScope
from schemas.tables import Table
from schemas.thresholds import DAY_MS

BEFORE_MS = 7 * DAY_MS
"""Time before a storm that its facts are read from, in ms."""

GENERATION = ("incarnation", "generation_id")
MEMBER = ("group_id", *GENERATION, "member_id", "valid_from_at", "group_instance_id", "client_id", "client_host",
          "client_library", "subscribed_topics")  # fmt: skip
COMPARED = ("assignor", "rebalance_mode", "group_protocol")
IN_FORCE = ("group_id", *COMPARED, "source_partition", "coordinator_id")
"""Columns of `generation_members` and of `generations` by which the groups of a cluster are compared."""

READ_AT_ONCE = 100_000
"""Rows of single groups' storms to read at once, about 50 MB. One storm may have more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StormSilver:
    """Silver of a warehouse. `rows` are the rows of some storms' groups by table, if they were already read."""

    warehouse: Path
    rows: Mapping[Table, pa.Table] = field(default_factory=dict)

    def show(
        self,
        engine: DuckDBPyConnection,
        name: str,
        table: Table,
        since: tuple[str, int] | None = None,
        *,
        groups: pa.Table | None = None,
        where: str | None = None,
    ) -> None:
        """Register the view `name`, as `engine.show` does. Its rows may be of other groups and times as well."""
        if table in self.rows:
            engine.register(name, self.rows[table])
        else:
            show(engine, name, self.warehouse, table, since, groups=groups, where=where)

    def show_members_in_force(self, engine: DuckDBPyConnection, name: str, storm: Storm) -> None:
        """Register the columns `MEMBER` of members of the storm's cluster as the view `name`.

        It has the members of each group's last generation before the storm, and maybe others.
        """
        if not is_elsewhere(self.warehouse):
            show(engine, name, self.warehouse, GENERATION_MEMBERS)
            return
        members = _of_cluster(self.warehouse, GENERATION_MEMBERS, storm)
        found = _until("valid_from_at", storm.last_at, members).join(_in_force(members, storm.started_at), "group_id")
        found = found.where(F.struct(*GENERATION) == F.col("in_force"))
        engine.register(name, found.select("cluster", *MEMBER).toArrow())

    def show_generations_in_force(self, engine: DuckDBPyConnection, name: str, storm: Storm) -> None:
        """Register the columns `IN_FORCE` and `joined_at` of generations before the storm in its cluster as `name`.

        Of generations that are equal in `IN_FORCE`, it has at least the last.
        """
        if not is_elsewhere(self.warehouse):
            show(engine, name, self.warehouse, GENERATIONS)
            return
        generations = _until("joined_at", storm.started_at, _of_cluster(self.warehouse, GENERATIONS, storm))
        last = generations.groupBy("cluster", *IN_FORCE).agg(F.max("joined_at").alias("joined_at"))
        engine.register(name, last.toArrow())


def _of_cluster(warehouse: Path, table: Table, storm: Storm) -> DataFrame:
    return read(SparkSession.active(), warehouse, table, version_of(table)).where(of_cluster(storm.cluster))


def _in_force(members: DataFrame, at_ms: int) -> DataFrame:
    """Return each group's generation in force at this time as `in_force`, unless the group had none."""
    begun = _until("valid_from_at", at_ms, members)
    return begun.groupBy("group_id").agg(F.max(F.struct(*GENERATION)).alias("in_force"))


def _until(time: str, at_ms: int, rows: DataFrame) -> DataFrame:
    return rows.where(F.col(time) <= F.timestamp_millis(F.lit(at_ms)))


def silver_of_storms(warehouse: Path, storms: Sequence[Storm]) -> Iterator[tuple[Sequence[Storm], StormSilver]]:
    """Yield parts of the storms, all of one cluster, and the silver of each part.

    Below an address, each storm of several groups is a part, and the other storms are read in parts of about
    `READ_AT_ONCE` rows, in the order of their beginnings.
    """
    if not is_elsewhere(warehouse):
        yield storms, StormSilver(warehouse=warehouse)
        return
    of_one = sorted((s for s in storms if s.scope == StormScope.GROUP), key=lambda storm: storm.started_at)
    for storm in storms:
        if storm.scope != StormScope.GROUP:
            yield [storm], StormSilver(warehouse=warehouse)
    for part in _parts(of_one, _counts(warehouse, of_one) if of_one else {}):
        yield part, StormSilver(warehouse=warehouse, rows=_read(warehouse, part))


def _parts(storms: Sequence[Storm], counts: Mapping[str, int]) -> Iterator[list[Storm]]:
    """Yield the storms in parts whose groups have at most `READ_AT_ONCE` rows, at least one storm each."""
    part: list[Storm] = []
    groups: set[str] = set()
    for storm in storms:
        groups |= storm.group_ids
        if part and sum(counts.get(group, 0) for group in groups) > READ_AT_ONCE:
            yield part
            part, groups = [], set(storm.group_ids)
        part.append(storm)
    if part:
        yield part


def _counts(warehouse: Path, storms: Sequence[Storm]) -> dict[str, int]:
    """Return the number of rows of each group that the facts of these storms may need."""
    frames = [frame.select("group_id") for frame in _frames(warehouse, storms).values()]
    counted = reduce(DataFrame.unionAll, frames).groupBy("group_id").count()
    return {row["group_id"]: row["count"] for row in counted.toArrow().to_pylist()}


def _read(warehouse: Path, storms: Sequence[Storm]) -> dict[Table, pa.Table]:
    return {table: frame.toArrow() for table, frame in _frames(warehouse, storms).items()}


def _frames(warehouse: Path, storms: Sequence[Storm]) -> dict[Table, DataFrame]:
    """Return the rows that the facts of these storms of single groups need, or more.

    These are rows since a week before the first storm, and the members that were in force then.
    """
    first = storms[0]
    groups = named(first.cluster, {group for storm in storms for group in storm.group_ids})
    theirs = F.broadcast(SparkSession.active().createDataFrame(groups))
    begin = min(storm.started_at for storm in storms) - BEFORE_MS
    found = {}
    for table in INPUTS:
        rows = _of_cluster(warehouse, table, first).join(theirs, ["cluster", "group_id"], "left_semi")
        if table is GENERATION_MEMBERS:
            in_force = _in_force(rows, begin)
            rows = rows.join(in_force, "group_id", "left").where(
                F.col("in_force").isNull() | (F.struct(*GENERATION) >= F.col("in_force"))
            )
        else:
            rows = rows.where(not_before(TIMES[table.name], begin))
        found[table] = rows.select(*table.names)
    return found


def named(cluster: str, groups: Iterable[str]) -> pa.Table:
    """Return groups of a cluster as rows with cluster and group_id."""
    names = sorted(groups)
    return pa.table(
        {"cluster": pa.array([cluster] * len(names), pa.string()), "group_id": pa.array(names, pa.string())}
    )
