"""The functions that apply `rows.silver_rows` to many groups: one for Spark frames and one for rows in memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from pipelines.arrow_types import RowsOfGroups
from pipelines.limits import NAME_BYTES
from pipelines.long_names import cut, parsed, shortened
from pipelines.rows_of_tables import batches, by_table, ddl, types
from pipelines.silver.client_hosts import ClientHosts
from pipelines.silver.commits.commit_columns import Group, commit_histories
from pipelines.silver.generations import ResumeState
from pipelines.silver.history import History
from pipelines.silver.rows import rows_of_group
from schemas.bronze import COORDINATOR_EVENTS, COORDINATOR_RECORDS, OFFSET_COMMITS
from schemas.rows import SilverOfGroup
from schemas.silver import SILVER
from schemas.states import RebalanceMode
from schemas.tables import Table

INPUTS = {"record": COORDINATOR_RECORDS, "run": OFFSET_COMMITS, "event": COORDINATOR_EVENTS}
UNUSED = ("raw_key", "raw_value", "leader_epoch", "committer_library", "commits")
"""Columns of bronze that silver does not use."""
TopicNames = Mapping[str, Mapping[str, str]]
PartitionCounts = Mapping[str, Mapping[str, int]]
Row = dict[str, Any]


class PolledTopics(NamedTuple):
    """The topic names and partition counts of each cluster, from polls."""

    topic_names: TopicNames
    partition_counts: PartitionCounts


ROWS_PER_BATCH = 2_000


def silver(
    records: DataFrame,
    runs: DataFrame,
    events: DataFrame,
    *,
    quiet_ms: int,
    hosts: ClientHosts,
    restarts: DataFrame | None = None,
    topic_names: TopicNames | None = None,
    partition_counts: PartitionCounts | None = None,
    name_bytes: int = NAME_BYTES,
) -> DataFrame:
    """Rebuild the groups whose history is in the three bronze frames.

    Args:
        records: `coordinator_records`.
        runs: `offset_commits`.
        events: `coordinator_events`; lines without a group are ignored.
        quiet_ms: pause in milliseconds that ends an episode (`rebalances`).
        hosts: policy for clients' addresses. It is pickled for Spark's workers; Spark does not print the key.
        restarts: result of `resume_points.resume_points`. A group with a base needs only its history from the base on
            (`resume_points.since_base`), and only rows of later
            generations are returned. None: all histories are complete.
        topic_names: by cluster, topic id → name, from polls.
        partition_counts: by cluster, topic → the highest partition count in any poll.
        name_bytes: maximum size of names in records in bytes; longer names are truncated (`long_names`).

    Returns:
        One struct column per silver table, with that table's columns. Each row fills one of them; the others are NULL.
    """
    sides = zip(INPUTS, (records, runs, events), strict=True)
    parts = [_side(name, frame) for name, frame in sides]
    if restarts is not None:
        parts.append(_bases(restarts))
    history = _union(parts)
    ordered = history.repartition("cluster", "group_id").sortWithinPartitions("cluster", "group_id")
    polled = PolledTopics(topic_names or {}, partition_counts or {})
    return ordered.mapInArrow(partial(_rebuild, quiet_ms, hosts, polled, name_bytes), ddl(SILVER))


def silver_of_few(
    history: Mapping[str, pa.Table],
    bases: Iterable[Row],
    *,
    quiet_ms: int,
    hosts: ClientHosts,
    topic_names: TopicNames,
    partition_counts: PartitionCounts | None = None,
    name_bytes: int = NAME_BYTES,
) -> dict[Table, pa.Table]:
    """Return the rows that `silver` returns, as one Arrow table per silver table.

    For a few thousand rows this takes less time than a Spark job needs to start.

    Args:
        history: rows of the three bronze tables by their names in `INPUTS`, with timestamps as integers in
            milliseconds; lines without a group are ignored.
        bases: rows of `resume_points.resume_points`, with timestamps in milliseconds.
        quiet_ms: as for `silver`.
        hosts: as for `silver`.
        topic_names: as for `silver`.
        partition_counts: as for `silver`.
        name_bytes: as for `silver`.
    """
    polled = PolledTopics(topic_names, partition_counts or {})
    base_rows = {(row["cluster"], row["group_id"]): row for row in bases if row["base_offset"] is not None}
    groups: dict[Group, dict[str, Any]] = defaultdict(lambda: {"record": [], "run": (), "event": []})
    for name in ("record", "event"):
        for row in history[name].to_pylist():
            if row["group_id"] is not None:
                groups[row["cluster"], row["group_id"]][name].append(row)
    for group, commits in commit_histories(history["run"]).items():
        groups[group]["run"] = commits
    out = SilverTables()
    for group in groups.keys() | base_rows.keys():
        cluster, group_id = group
        known = _history(cluster, group_id, groups[group], polled, name_bytes)
        base = _base(base_rows[group]) if group in base_rows else None
        out.add(cluster, group_id, rows_of_group(known, quiet_ms, base, hosts))
    return out.stored()


def _side(name: str, frame: DataFrame) -> DataFrame:
    """Return cluster, group_id and the row as a struct, with timestamps in milliseconds."""
    table = INPUTS[name]
    fields = [
        F.unix_millis(c.name).alias(c.name) if c.type == "TIMESTAMP" else F.col(c.name)
        for c in table.columns
        if c.name not in UNUSED
    ]
    return frame.where(F.col("group_id").isNotNull()).select("cluster", "group_id", F.struct(*fields).alias(name))


def _bases(restarts: DataFrame) -> DataFrame:
    """Return the base of each group that has one, as an additional input row."""
    fields = ["base_log_epoch", "base_offset", "base_rebalance_mode", "base_state", "incarnation", "state"]
    seen = F.unix_millis("first_seen_at").alias("first_seen_at")
    known = restarts.where(F.col("base_offset").isNotNull())
    return known.select("cluster", "group_id", F.struct(*fields, seen).alias("base"))


def _union(sides: list[DataFrame]) -> DataFrame:
    first, *rest = sides
    for side in rest:
        first = first.unionByName(side, allowMissingColumns=True)
    return first


def _rebuild(
    quiet_ms: int, hosts: ClientHosts, polled: PolledTopics, name_bytes: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    rows = (row for batch in batches for row in batch.to_pylist())
    out = SilverTables()
    for (cluster, group_id), of_group in groupby(rows, key=lambda row: (row["cluster"], row["group_id"])):
        mine = list(of_group)
        history = {name: [row[name] for row in mine if row[name] is not None] for name in INPUTS}
        base = next((row["base"] for row in mine if row.get("base") is not None), None)
        known = _history(cluster, group_id, history, polled, name_bytes)
        out.add(cluster, group_id, rows_of_group(known, quiet_ms, base and _base(base), hosts))
        if len(out) >= ROWS_PER_BATCH:
            yield from out.batches()
            out = SilverTables()
    yield from out.batches()


class SilverTables:
    """The rows of every silver table, of any number of groups."""

    def __init__(self) -> None:
        self._rows = {table: RowsOfGroups(table) for table in SILVER}

    def __len__(self) -> int:
        return sum(map(len, self._rows.values()))

    def add(self, cluster: str, group_id: str, rows: SilverOfGroup) -> None:
        """Add the rows of one group."""
        found = by_table(rows)
        for table, mine in self._rows.items():
            mine.add(cluster, group_id, found[table.name])

    def stored(self) -> dict[Table, pa.Table]:
        """Return the rows as Arrow tables."""
        return {table: rows.stored() for table, rows in self._rows.items()}

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows as batches with one struct column per table."""
        rows = {table.name: found.to_struct_array().combine_chunks() for table, found in self.stored().items()}
        return batches(rows, types(SILVER))


def _history(cluster: str, group_id: str, rows: Mapping[str, Any], polled: PolledTopics, name_bytes: int) -> History:
    for record in rows["record"]:
        record["body"] = parsed(record["body"], name_bytes)
        record["member_id"] = record["member_id"] and shortened(record["member_id"], name_bytes)
    events = [cut(row, name_bytes) if len(row["raw"]) > name_bytes else row for row in rows["event"]]
    names, counts = polled.topic_names.get(cluster, {}), polled.partition_counts.get(cluster, {})
    return History.of(cluster, group_id, rows["record"], rows["run"], events, names, counts)


def _base(row: Row) -> ResumeState:
    return ResumeState(
        position=(row["base_log_epoch"], row["base_offset"]),
        incarnation=row["incarnation"],
        mode=RebalanceMode(row["base_rebalance_mode"]),
        first_seen_at=row["first_seen_at"],
        state=row["base_state"],
        carried=row["state"],
    )
