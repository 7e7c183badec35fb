"""Gold of a few groups, made without Spark.

Within `up`, a worker process makes it, because replaying a busy group takes seconds of a core.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from jobs.gold.gold_inputs import Files, silver_of
from jobs.processes.worker_process import NICER, WorkerProcess
from pipelines.gold.groups import Group, Known, gold_of_few
from pipelines.gold.rows import AnalysisConfig
from schemas.gold import GROUP_TABLES
from schemas.tables import Table


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
