"""The first build of silver from bronze, before a stream follows bronze: without Spark, which takes seconds to start.

A note in the checkpoint has the versions of the bronze tables that it read. The stream begins with these versions: it
builds their last commits again, which changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from jobs.spark.checkpoint import has_progress
from jobs.tables.disk.durability import write_whole
from jobs.tables.new_rows import NewRows
from jobs.tables.table_facts import TableVersion, has_commit, has_rows, table_id
from schemas.silver import REBALANCES
from schemas.tables import Table

Versions = dict[str, tuple[str, int]]
"""By table: its id and a version."""


def is_first(warehouse: Path, tables: Sequence[Table], checkpoint: Path) -> bool:
    """Return whether no build of these tables has finished, by a stream or without one.

    A first build that was ended has left no note, and no row in `rebalances`, which is written near its end.
    """

    def is_empty(table: Table) -> bool:
        return not has_rows(warehouse, table)

    if has_progress(checkpoint):
        return False
    return all(map(is_empty, tables)) or (is_empty(REBALANCES) and not _note(checkpoint).exists())


def stored_versions(warehouse: Path, tables: Sequence[Table]) -> Versions:
    """Return the present versions of tables."""
    found = (TableVersion.of(warehouse, table) for table in tables)
    return {each.table.name: (each.table_id, each.version) for each in found if each}


def all_rows(warehouse: Path, tables: Sequence[Table]) -> Mapping[Table, NewRows]:
    """Return all rows of tables as if they were new, without tables that have no rows."""
    found = {table: NewRows.stored(warehouse, table) for table in tables}
    return {table: rows for table, rows in found.items() if rows.files}


def write_note(checkpoint: Path, read: Versions) -> None:
    """Note the versions of a first build that is complete."""
    write_whole(_note(checkpoint), json.dumps(read))


def begin_after(warehouse: Path, table: Table, checkpoint: Path) -> int | None:
    """Return the version of the table with which a stream begins after a first build.

    None without a first build, and if the table was replaced or its log no longer has that version: then the stream
    begins with all rows.
    """
    try:
        known, version = json.loads(_note(checkpoint).read_text(encoding="utf-8"))[table.name]
    except (OSError, ValueError, KeyError):
        return None
    is_known = table_id(warehouse, table) == known and has_commit(warehouse, table, version)
    return int(version) if is_known else None


def _note(checkpoint: Path) -> Path:
    return checkpoint / "first-build.json"
