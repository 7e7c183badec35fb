"""Rows to append as data files of their own, so that a table has the many small files of a stream."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from jobs.tables.disk.data_file import write
from jobs.tables.new_rows import NewRows
from jobs.tables.paths import table_path
from schemas.tables import Table


def in_files(warehouse: Path, table: Table, parts: Sequence[pa.Table]) -> NewRows:
    """Return rows to append, in one file for each part."""
    folder = Path(table_path(warehouse, table))
    files = tuple(write(folder, part) for part in parts if part.num_rows)
    return NewRows(table=table, few=parts[0].slice(0, 0), files=files, folder=str(folder))
