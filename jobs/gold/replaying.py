"""Gold of a few groups made beside the process that asks: to read and replay what a lively group did takes seconds of a
core.
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
    """Asked for gold."""

    def __init__(self, *, nicer: int = NICER) -> None:
        super().__init__(replayed, nicer=nicer)

    def gold(
        self,
        files: Files,
        scope: Mapping[Group, int],
        known: Known,
        terms: AnalysisConfig,
        tables: Sequence[Table] = GROUP_TABLES,
    ) -> dict[Table, pa.Table]:
        """What `gold_of_few` returns for the silver in these files.

        Raises:
            BesideError: as `ask` does.
        """
        return dict(zip(tables, self.ask(files, scope, known, terms, tables), strict=True))


def replayed(
    files: Files,
    scope: Mapping[Group, int],
    known: Known,
    terms: AnalysisConfig,
    tables: Sequence[Table],
) -> list[pa.Table]:
    """What `gold_of_few` returns, in the order of `tables`."""
    found = gold_of_few(silver_of(files, scope, terms), scope, known, terms, tables)
    return [found[table] for table in tables]
