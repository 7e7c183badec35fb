"""The input of a part of the analysis, read without Spark: silver of its groups, and gold that it may replace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from duckdb import DuckDBPyConnection

from dashboards.lake.lake import milliseconds
from jobs.tables.changed_rows import TableSnapshot
from jobs.tables.engine import connect, quoted, show, show_files
from pipelines.gold.groups import INPUTS, TIMES, Group, cut_ms
from pipelines.gold.rows import AnalysisConfig
from schemas.gold import ADVICE, DEPLOYS, DIAGNOSES, GROUP_HEALTH, PATTERNS, SETTING_CHANGES, VERDICTS
from schemas.silver import GENERATIONS
from schemas.tables import Table
from schemas.thresholds import DAY_MS

TIME_COLUMNS = {
    GROUP_HEALTH.name: "hour_at",
    ADVICE.name: "as_of",
    SETTING_CHANGES.name: "as_of",
    DIAGNOSES.name: "as_of",
    VERDICTS.name: "joined_at",
    DEPLOYS.name: "started_at",
    PATTERNS.name: "as_of",
}
"""The timestamp column that assigns a gold row to a day."""

EARLIER_MS = {DEPLOYS.name: DAY_MS}
"""By table: how long before a change the rows that it affects may begin. In other tables, a change affects only rows of
its day and later ones."""

Files = Mapping[str, Sequence[str]]
"""Files of certain versions of tables, by table name."""


def files_of(snapshots: Mapping[str, TableSnapshot]) -> Files:
    return {name: snapshot.paths for name, snapshot in snapshots.items()}


def silver_of(files: Files, scope: Mapping[Group, int], config: AnalysisConfig) -> dict[str, pa.Table]:
    """Return the rows of `INPUTS` by name that `groups.gold_of_few` needs, from these files, with timestamps in ms."""
    with connect() as engine:
        for table in INPUTS:
            show_files(engine, table.name, table, files[table.name])
        _register_starts(engine, {group: cut_ms(since, config) for group, since in scope.items()})
        engine.execute(
            "CREATE TEMP TABLE starts AS SELECT cluster, group_id, "  # noqa: S608 - our own names
            "coalesce(max(epoch_ms(joined_at)) FILTER (WHERE epoch_ms(joined_at) < since_ms), since_ms) AS from_ms "
            f"FROM since LEFT JOIN {GENERATIONS.name} USING (cluster, group_id) GROUP BY cluster, group_id, since_ms"
        )
        ((least,),) = engine.sql("SELECT to_timestamp(min(from_ms) / 1000) FROM starts").fetchall()
        return {
            table.name: milliseconds(
                engine.sql(
                    # The limit on the column itself lets DuckDB skip files.
                    f"SELECT {quoted(table.names)} FROM {table.name} JOIN starts USING (cluster, group_id) "  # noqa: S608
                    f"WHERE epoch_ms({TIMES[table.name]}) >= from_ms AND {TIMES[table.name]} >= $least",
                    params={"least": least},
                ).to_arrow_table()
            )
            for table in INPUTS
        }


def gold_stored(warehouse: Path, scope: Mapping[Group, int], tables: Sequence[Table]) -> dict[Table, pa.Table]:
    """Return the rows of these gold tables from the day on at which each group's analysis starts."""
    found = {}
    with connect() as engine:
        for table in tables:
            earlier = EARLIER_MS.get(table.name, 0)
            starts = {group: (since - earlier) // DAY_MS * DAY_MS for group, since in scope.items()}
            _register_starts(engine, starts)
            show(engine, "stored", warehouse, table, groups=starts_of(scope))
            found[table] = engine.sql(
                f"SELECT {quoted(table.names)} FROM stored JOIN since USING (cluster, group_id) "  # noqa: S608
                f"WHERE epoch_ms({TIME_COLUMNS[table.name]}) >= since_ms"
            ).to_arrow_table()
    return found


def _register_starts(engine: DuckDBPyConnection, since: Mapping[Group, int]) -> None:
    """Register a timestamp for each group as the view `since`."""
    engine.register("since", starts_of(since))


def starts_of(since: Mapping[Group, int]) -> pa.Table:
    """Return a timestamp in ms for each group, as rows of cluster, group_id and since_ms."""
    rows = [{"cluster": cluster, "group_id": group, "since_ms": at} for (cluster, group), at in since.items()]
    kind = pa.schema([("cluster", pa.string()), ("group_id", pa.string()), ("since_ms", pa.int64())])
    return pa.Table.from_pylist(rows, kind)
