"""Small tables, made and written without Spark: a second of its commits would be a second of every page's delay.

They are not clustered, which deltalake could not write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, Field, Schema, write_deltalake
from deltalake.exceptions import DeltaError

from jobs.conflicts import turn
from jobs.delta_io import LOCAL_PROPERTIES, PROPERTIES, missing_columns, refuse_newer, table_path
from jobs.full_disk import refuse_full
from pipelines.arrow_types import row_type, stored
from schemas.tables import SCHEMA_VERSION, VERSION_PROPERTY, Table, schema_version

MOST_FILES = 100
"""A table that is only appended to has a file for each time; beyond so many they are made into one."""

TRIES = 4
KEPT_HOURS = 1
"""Files that were made into one stay for so long: somebody may be reading them."""


def create(warehouse: Path, table: Table) -> None:
    """Make the table unless it is there; one of an earlier Regroup gets the columns it lacks.

    Raises:
        UserError: it was written by a newer Regroup.
    """
    path = table_path(warehouse, table)
    fields = Schema.from_arrow(pa.schema(list(row_type(table)))).fields
    told = [
        Field(field.name, field.type, nullable=column.name not in table.key, metadata={"comment": column.comment})
        for field, column in zip(fields, table.columns, strict=True)
    ]
    if DeltaTable.is_deltatable(path):
        refuse_newer(path)
        _bring_up_to_date(DeltaTable(path), table, told)
        return
    DeltaTable.create(
        path,
        Schema(told),
        mode="ignore",
        description=table.comment,
        configuration=PROPERTIES | LOCAL_PROPERTIES,
        raise_if_key_not_exists=False,
    )


def _bring_up_to_date(stored: DeltaTable, table: Table, fields: Sequence[Field]) -> None:
    missing = {column.name for column in missing_columns(stored, table)}
    if missing:
        stored.alter.add_columns([field for field in fields if field.name in missing])
    if schema_version(stored.metadata().configuration) < SCHEMA_VERSION:
        stored.alter.set_table_properties({VERSION_PROPERTY: str(SCHEMA_VERSION)}, raise_if_not_exists=False)


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
        with turn(path, alone=True), suppress(DeltaError):
            written = DeltaTable(path)
            written.optimize.compact()
            written.vacuum(KEPT_HOURS, dry_run=False, enforce_retention_duration=False)
