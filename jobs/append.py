"""Rows appended to a Delta table exactly once: a few without Spark on a machine of one's own, else by Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import DeltaTable, Transaction

from jobs.conflicts import insist, is_local, turn
from jobs.local_rewrite import commit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SMALL = 100_000
"""Up to so many rows are appended as one file."""


def append(frame: DataFrame, path: str, *, app_id: str, version: int, rows: int | None = None) -> None:
    """Append once: a repeated (app_id, version) writes nothing. Versions of one app_id must not decrease.

    With `rows`, so many as are in the frame, few of them become one file, on a machine of one's own without Spark.
    """
    is_small = rows is not None and rows <= SMALL
    if is_small and is_local(path):
        few = frame.toArrow()
        insist(path, lambda: _append_few(few, path, app_id, version))
        return
    written = (frame.coalesce(1) if is_small else frame).write.format("delta").mode("append")
    with turn(path, by_spark=True):
        written.option("txnAppId", app_id).option("txnVersion", version).save(path)


def _append_few(rows: pa.Table, path: str, app_id: str, version: int) -> None:
    stored = DeltaTable(path)
    known = stored.transaction_version(app_id)
    if known is None or known < version:
        commit(path, stored, removed=(), added=(rows,), transactions=[Transaction(app_id, version)])
