"""Appends rows to a Delta table exactly once: without Spark in local mode, else with Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from deltalake import Transaction

from jobs.tables.as_of import newest_of
from jobs.tables.delta_io import required
from jobs.tables.local_rewrite import commit
from jobs.tables.paths import TableName, table_path
from jobs.tables.transactions import is_local, retry_commit

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.readwriter import DataFrameWriter

    from jobs.tables.new_rows import NewRows
    from schemas.tables import Table


class Once(NamedTuple):
    """The id of a write that happens only once. Versions of one `app_id` must not decrease."""

    app_id: str
    version: int


def append(spark: SparkSession | None, warehouse: Path, new: NewRows, once: Once | None = None) -> None:
    """Append the rows to their table, unless `once` was already written. In local mode no session is needed."""
    path = table_path(warehouse, new.table)
    if is_local(path):
        retry_commit(path, lambda: _append(new, path, once))
    else:
        append_frame(required(spark).createDataFrame(new.few).coalesce(1), warehouse, new.table, once)


def append_frame(frame: DataFrame, warehouse: Path, table: Table, once: Once | None = None) -> None:
    """Append any number of rows with Spark, unless `once` was already written."""
    path = table_path(warehouse, table)
    written = frame.write.format("delta").mode("append")
    if once:
        written = written.option("txnAppId", once.app_id).option("txnVersion", once.version)
    retry_commit(path, lambda: _save(written, path), alone=True)


def overwrite_frame(rows: Callable[[], DataFrame], warehouse: Path, table: Table, where: str = "true") -> None:
    """Replace the rows of a table for which `where` is true, by default all, with Spark in one commit.

    `rows` is called again if another commit came first, so it must read the tables again at each call.
    """
    path = table_path(warehouse, table)

    def write() -> None:
        # With a true condition, because Delta drops a table's clustering in a plain overwrite.
        _save(rows().write.format("delta").mode("overwrite").option("replaceWhere", where), path)

    retry_commit(path, write, alone=True)


def replace_table(frame: DataFrame, warehouse: Path, table: Table, mark: str) -> None:
    """Replace a table, which may be missing, by the rows and the columns of the frame, with Spark in one commit.

    The commit has the user metadata `mark`. The new table is not clustered.
    """
    path = table_path(warehouse, table)
    written = frame.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    retry_commit(path, lambda: _save(written.option("userMetadata", mark), path), alone=True)


def _save(written: DataFrameWriter, path: str) -> None:
    if not isinstance(path, TableName):
        written.save(path)
    elif path.address is None:
        written.saveAsTable(path)
    else:
        # Within a batch of a stream, Spark does not find a table by the name of its path.
        written.save(path.address)


def overwrite(warehouse: Path, new: NewRows) -> None:
    """Replace all rows of their table in one commit, in local mode."""
    path = table_path(warehouse, new.table)
    retry_commit(path, lambda: _overwrite(new, path))


def _append(new: NewRows, path: str, once: Once | None) -> None:
    stored = newest_of(path)
    known = stored.transaction_version(once.app_id) if once else None
    if once is None or known is None or known < once.version:
        transactions = [Transaction(*once)] if once else None
        commit(path, stored, removed=(), added=(new.few,), files=new.files, transactions=transactions)


def _overwrite(new: NewRows, path: str) -> None:
    stored = newest_of(path)
    commit(path, stored, removed=stored.file_uris(), added=(new.few,), files=new.files)
