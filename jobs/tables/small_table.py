"""Small tables, created and written without Spark, because a second for Spark's commit would delay every page.

They are not clustered, because deltalake cannot write clustered tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from jobs.tables.create_tables import create
from jobs.tables.delta_io import table_path
from jobs.tables.full_disk import refuse_full
from jobs.tables.transactions import table_lock
from pipelines.arrow_types import stored
from schemas.tables import Table

MOST_FILES = 100
"""Number of files above which the table is compacted. Each append adds one file."""

TRIES = 4
KEPT_HOURS = 1
"""Hours that compacted files are kept, because readers may still use them."""


def append(warehouse: Path, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Append rows, with timestamps in ms, in one commit. Create the table if it is missing. Others may append
    meanwhile.

    Raises:
        UserError: a newer version of Regroup wrote the table.
        OSError: the disk is full.
    """
    refuse_full(warehouse)
    path, new = table_path(warehouse, table), stored(rows, table)
    for left in reversed(range(TRIES)):
        try:
            create(warehouse, table)
            write_deltalake(path, new, mode="append")
            break
        except DeltaError:
            # Another process may have just created the table. Otherwise the last try raises the error.
            if not left:
                raise
    if len(DeltaTable(path).file_uris()) > MOST_FILES:
        # Only one at a time, because deltalake lets two compactions of the same files succeed and then duplicates their
        # rows.
        with table_lock(path, alone=True), suppress(DeltaError):
            written = DeltaTable(path)
            written.optimize.compact()
            written.vacuum(KEPT_HOURS, dry_run=False, enforce_retention_duration=False)
