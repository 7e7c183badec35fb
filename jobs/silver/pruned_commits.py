"""Removes commits between two records of a group that cannot affect silver.

Batches of a few seconds leave one run per commit, and a run costs Python ten times as much as DuckDB needs to remove
it.
"""

from __future__ import annotations

import pyarrow as pa

from jobs.tables.engine import connect, quoted

LAST = 3
"""Rows kept at the end of a segment. `pipelines.silver.history.Segment` needs three commits, and each run has one."""

RESOURCE = quoted(("cluster", "group_id", "log_epoch", "topic", "partition", "topic_id"))

PRUNED = f"""
WITH placed AS (
    SELECT runs.*, records.source_offset AS after_offset
    FROM runs ASOF LEFT JOIN records
        ON runs.cluster = records.cluster AND runs.group_id = records.group_id AND runs.log_epoch = records.log_epoch
        AND runs.first_offset >= records.source_offset
    WHERE NOT runs.is_tombstone
)
SELECT {{columns}} FROM (
    SELECT *,
        row_number() OVER (PARTITION BY {RESOURCE}, after_offset ORDER BY first_offset) AS nth,
        row_number() OVER (PARTITION BY {RESOURCE}, after_offset ORDER BY first_offset DESC) AS nth_last
    FROM placed
) WHERE nth = 1 OR nth_last <= {LAST}
"""  # noqa: S608 - our own names


def pruned_commits(runs: pa.Table, records: pa.Table) -> pa.Table:
    """Return the rows of `offset_commits` that can affect silver.

    For each topic partition, these are the first commit and the last ones between two records of the group. `records`
    are all rows of `coordinator_records` of the same groups and time.
    """
    with connect() as engine:
        engine.register("runs", runs)
        engine.register("records", records.select(["cluster", "group_id", "log_epoch", "source_offset"]))
        return engine.sql(PRUNED.format(columns=quoted(runs.column_names))).to_arrow_table().cast(runs.schema)
