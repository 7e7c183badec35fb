"""Gold made without Spark.

Within `up`, a worker process makes it, because replaying a busy group takes seconds of a core. `analyze` makes that of
many groups in several processes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from jobs.gold.gold_inputs import Files, silver_of
from jobs.processes.spawned_pool import spawned_pool
from jobs.processes.worker_process import NICER, WorkerProcess
from jobs.tables.engine import disable_file_cache, use_one_thread
from pipelines.gold.groups import Group, Known, gold_of_few
from pipelines.gold.rows import AnalysisConfig
from schemas.gold import GROUP_TABLES
from schemas.tables import Table

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor
    from types import TracebackType

FEW_GROUPS = 50
"""Number of groups whose gold one process makes in about the time in which others start."""

SHARES = 4
"""Shares of the groups for each process. Several, so that a process that finishes early takes another one."""


class Replaying(WorkerProcess):
    """A worker process that makes gold."""

    def __init__(self, *, nicer: int = NICER) -> None:
        super().__init__(replayed, nicer=nicer)

    def gold(
        self,
        files: Files,
        scope: Mapping[Group, int],
        known: Known,
        config: AnalysisConfig,
        tables: Sequence[Table] = GROUP_TABLES,
    ) -> dict[Table, pa.Table]:
        """Return the result of `gold_of_few` for the silver in these files.

        Raises:
            WorkerProcessError, LostWorkerError: as in `ask`.
        """
        return dict(zip(tables, self.ask(files, scope, known, config, tables), strict=True))


class ReplayingPool:
    """Processes that make gold at the same time. They start when there are more than `FEW_GROUPS` groups."""

    def __init__(self, processes: int) -> None:
        self._processes = processes
        self._open = ExitStack()
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, raised, trace)

    def gold(
        self,
        files: Files,
        scope: Mapping[Group, int],
        known: Known,
        config: AnalysisConfig,
        tables: Sequence[Table] = GROUP_TABLES,
    ) -> dict[Table, pa.Table]:
        """Return the result of `gold_of_few` for the silver in these files.

        Raises:
            BrokenProcessPool: a process was ended.
        """
        if len(scope) <= FEW_GROUPS or self._processes == 1:
            return gold_here(files, scope, known, config, tables)
        if self._pool is None:
            self._pool = self._open.enter_context(spawned_pool(self._processes))
        groups, size = list(scope), -(-len(scope) // (self._processes * SHARES))
        shares = [{group: scope[group] for group in groups[at : at + size]} for at in range(0, len(groups), size)]
        parts = list(self._pool.map(partial(_share, files, known, config, tables), shares))
        return {table: pa.concat_tables([part[at] for part in parts]) for at, table in enumerate(tables)}


def gold_here(
    files: Files,
    scope: Mapping[Group, int],
    known: Known,
    config: AnalysisConfig,
    tables: Sequence[Table] = GROUP_TABLES,
) -> dict[Table, pa.Table]:
    """Return the result of `gold_of_few` for the silver in these files, made in this process."""
    return gold_of_few(silver_of(files, scope, config), scope, known, config, tables)


def replayed(
    files: Files,
    scope: Mapping[Group, int],
    known: Known,
    config: AnalysisConfig,
    tables: Sequence[Table],
) -> list[pa.Table]:
    """Return the result of `gold_of_few` in the order of `tables`."""
    found = gold_here(files, scope, known, config, tables)
    return [found[table] for table in tables]


def _share(
    files: Files, known: Known, config: AnalysisConfig, tables: Sequence[Table], scope: Mapping[Group, int]
) -> list[pa.Table]:
    disable_file_cache()
    use_one_thread()
    return replayed(files, scope, known, config, tables)
