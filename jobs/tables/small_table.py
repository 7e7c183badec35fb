"""Small tables, made and written without Spark: a second of its commits would be a second of every page's delay.

They are not clustered, which deltalake could not write.
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
"""A table that is only appended to has a file for each time; beyond so many they are made into one."""

TRIES = 4
KEPT_HOURS = 1
"""Files that were made into one stay for so long: somebody may be reading them."""


def append(warehouse: Path, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add rows, instants as milliseconds, in one commit, whoever else adds some at the same time; the table is made if
    need be.

    Raises:
        UserError: it was written by a newer Regroup.
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
            # Somebody else made the table just now; if not, the last try says what is wrong.
            if not left:
                raise
    if len(DeltaTable(path).file_uris()) > MOST_FILES:
        # One at a time: of two who compact the same files deltalake lets both win, and every row is there twice.
        with table_lock(path, alone=True), suppress(DeltaError):
            written = DeltaTable(path)
            written.optimize.compact()
            written.vacuum(KEPT_HOURS, dry_run=False, enforce_retention_duration=False)
