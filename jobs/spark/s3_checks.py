"""The checks before a command writes tables in S3: the store answers, and no other process writes there.

Open-source Delta cannot commit safely from two processes to S3. Its `S3SingleDriverLogStore` checks whether a commit
exists and then writes it, so of two simultaneous commits the second overwrites the first without an error. Within one
JVM it has a lock.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from dashboards.lake.address import ObjectStore
from dashboards.lake.store_files import LIMITS
from jobs.config.errors import UserError
from jobs.config.places import place_of
from jobs.processes.process_lock import holding, lock_file
from jobs.spark.s3 import is_in_s3
from jobs.spark.s3_failure import failure
from jobs.spark.session_provider import provider
from jobs.tables.delta_io import checkpoint_path
from schemas.operations import JOB_RUNS


def refuse_unreachable(there: str) -> None:
    """Check that the store answers a local session. This takes one request without Spark, and 20 seconds at most.

    Sessions that are provided may have other credentials than the environment, so they are not checked.

    Raises:
        UserError: the address is not valid, or the store cannot be read with the credentials of the environment.
    """
    if provider() is not None or not is_in_s3(there):
        return
    store = place_of(there)
    assert isinstance(store, ObjectStore)
    try:
        DeltaTable(store.url(JOB_RUNS.name), storage_options=LIMITS)
    except (DeltaError, OSError) as error:
        # A table that is missing, or cannot be read, is left to the job.
        if found := failure(f"The tables in {there}", error):
            raise found from None


@contextmanager
def only_writer(there: str, warehouse: Path) -> Iterator[None]:
    """Reserve the tables in S3 for this process. A session that is provided may have a log store for several writers.

    Raises:
        UserError: another process writes them.
    """
    if provider() is not None or not is_in_s3(there):
        yield
        return
    path = checkpoint_path(warehouse, "s3") / "held"
    try:
        held = lock_file(path, f"{os.getpid()}\n")
    except BlockingIOError:
        raise UserError(
            f"{holding(path)} writes the tables in {there}, where only one process may write at a time: let it end, or "
            "stop it, and run jobs one after the other, with --once."
        ) from None
    try:
        yield
    finally:
        held.close()
