"""Runs of commits from several batches, merged into the runs that one batch would have written.

`pipelines.offset_commits` ends a run at the end of each batch, so a stream of small batches leaves many short runs.
Consecutive runs are merged if they lie in the same ten minutes and no record of their group and no unreadable record is
between them. The merged run has the exact first record and the exact last three records, so `pipelines.silver` computes
the same rows from it. Rows stay unchanged if they overlap (because something was read twice), have no time or are
tombstones.
"""

from __future__ import annotations

import duckdb
import pyarrow as pa

from pipelines.arrow_types import schema_of
from pipelines.offset_commits import BUCKET_MS
from schemas.bronze import OFFSET_COMMITS

KEY = 'cluster, log_epoch, source_partition, group_id, topic, "partition"'
"""The columns that consecutive runs have in common."""


def _points(row: str) -> str:
    ends = ("first", "third_last", "before_last", "last")
    return ", ".join(f"{{o: {row}{e}_offset, t: {row}{e}_commit_at, c: {row}{e}_committed_offset}}" for e in ends)


MERGE = f"""
WITH placed AS (
    SELECT f.*, r.source_offset AS cut, u.source_offset AS unread, epoch_ms(f.first_commit_at) // {BUCKET_MS} AS bucket,
           f.is_tombstone OR f.first_commit_at IS NULL AS is_alone
    FROM fragments f ASOF LEFT JOIN records r
      ON f.cluster = r.cluster AND f.log_epoch = r.log_epoch AND f.source_partition = r.source_partition
     AND f.group_id = r.group_id AND f.first_offset > r.source_offset
    ASOF LEFT JOIN unread u
      ON f.cluster = u.cluster AND f.log_epoch = u.log_epoch AND f.source_partition = u.source_partition
     AND f.first_offset > u.source_offset
), compared AS (
    SELECT *, coalesce(
        is_alone OR lag(is_alone) OVER before OR bucket <> lag(bucket) OVER before
        OR first_offset <= max(last_offset) OVER (before ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
        OR cut IS DISTINCT FROM lag(cut) OVER before OR unread IS DISTINCT FROM lag(unread) OVER before
        OR topic_id IS DISTINCT FROM lag(topic_id) OVER before,
        true) AS begins
    FROM placed WINDOW before AS (PARTITION BY {KEY} ORDER BY first_offset, last_offset)
), numbered AS (
    SELECT *, sum(begins::INT) OVER (before ROWS UNBOUNDED PRECEDING) AS run
    FROM compared WINDOW before AS (PARTITION BY {KEY} ORDER BY first_offset, last_offset)
), ranked AS (
    SELECT *, row_number() OVER (PARTITION BY {KEY}, run ORDER BY first_offset DESC, last_offset DESC) AS from_end
    FROM numbered
), merged AS (
    SELECT {KEY}, min(first_offset) AS first_offset, bool_or(is_tombstone) AS is_tombstone,
           arg_min({{t: first_commit_at, c: first_committed_offset}}, first_offset) AS head,
           list_reverse_sort(list_distinct(list_filter(flatten(list([{_points("")}]) FILTER (from_end <= 3)),
                                                       lambda point: point.o IS NOT NULL))) AS points,
           arg_max({{e: leader_epoch, l: committer_library, i: committer_id}}, last_offset) AS tail,
           any_value(topic_id) AS topic_id, sum(commits)::BIGINT AS commits
    FROM ranked GROUP BY {KEY}, run
), ended AS (
    SELECT *, points[1] AS last, points[2] AS before_last,
           CASE WHEN points[1].c = points[2].c THEN points[3] END AS third_last FROM merged
)
SELECT {KEY}, first_offset, is_tombstone, head.t AS first_commit_at, head.c AS first_committed_offset,
       third_last.o AS third_last_offset, third_last.t AS third_last_commit_at,
       third_last.c AS third_last_committed_offset,
       before_last.o AS before_last_offset, before_last.t AS before_last_commit_at,
       before_last.c AS before_last_committed_offset,
       last.o AS last_offset, last.t AS last_commit_at, last.c AS last_committed_offset, tail.e AS leader_epoch,
       tail.l AS committer_library, tail.i AS committer_id, topic_id, commits
FROM ended ORDER BY cluster, group_id, topic, "partition", first_offset
"""  # noqa: S608 - the names are constants


def merged(fragments: pa.Table, records: pa.Table, unread: pa.Table) -> pa.Table:
    """Return the merged rows of `offset_commits`, ordered by group.

    Args:
        fragments: rows of `offset_commits`.
        records: cluster, log_epoch, source_partition, group_id and source_offset of rows of `coordinator_records`. They
            must include all records of these groups that lie between the fragments, and may include others.
        unread: cluster, log_epoch, source_partition and source_offset of rows of `quarantine` for unreadable records of
            `__consumer_offsets`, which may belong to any group.
    """
    with duckdb.connect() as engine:
        engine.execute("SET TimeZone = 'UTC'")
        engine.register("fragments", fragments)
        engine.register("records", records)
        engine.register("unread", unread)
        found = engine.sql(MERGE).to_arrow_table()
    return found.select(list(OFFSET_COMMITS.names)).cast(schema_of(OFFSET_COMMITS))
