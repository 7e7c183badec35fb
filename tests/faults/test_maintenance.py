"""`maintain` and `erase` killed while they write: every table can be read, and ends as in an undisturbed run."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random

import pytest

from jobs.config.clusters import Cluster
from jobs.maintain import existing_tables
from jobs.tables.create_tables import create_tables
from jobs.tables.paths import table_path
from schemas.bronze import BRONZE
from schemas.operations import OPERATIONS
from schemas.silver import GENERATIONS
from testing.warehouses.volume import refuse_in
from tests.faults.matrix import Trial
from tests.faults.process import Job
from tests.faults.tables import Difference, content
from tests.jobs.conftest import differing
from tests.maintain.conftest import FILLED, arrow, batches, contents, make, rebuilt, rows

pytestmark = pytest.mark.faults

CLUSTER = Cluster(name="kafka", bootstrap_servers="127.0.0.1:1")
"""Neither job asks a broker."""
BATCHES = 12
"""Files of each table: more than `maintain` leaves uncompacted."""
KILLS = 3
"""Kills in a row, before the job may end."""
LATER_S = 0.2
"""Longest time in seconds from a new file to the kill."""
CLUSTERED = (*FILLED, GENERATIONS)

Rows = Mapping[str, list[str]]


def stored(warehouse: Path) -> Rows:
    """Return every row of every table, independent of the order in its files."""
    tables = [table for table in existing_tables(warehouse) if table not in OPERATIONS]
    return {table.name: sorted(map(repr, rows(warehouse, table))) for table in tables}


def written(warehouse: Path) -> int:
    """Return the number of files of tables and of their logs that exist or existed."""
    return sum(len(list((warehouse / t.name).rglob("*.*"))) for t in existing_tables(warehouse) if t not in OPERATIONS)


class Killing:
    """A job and the warehouse it starts with: its result undisturbed, and the most files that it adds."""

    def __init__(self, command: str, base: Path, folder: Path, more: tuple[str, ...] = ()) -> None:
        self._command, self.base, self._more = command, base, more
        warehouse = folder / "quiet" / "warehouse"
        shutil.copytree(base, warehouse)
        before, most = written(warehouse), 0
        job = self.job(warehouse)

        def counted() -> bool:
            nonlocal most
            most = max(most, written(warehouse) - before)
            return False

        job.until(counted)
        assert 0 == job.end(), job.tail()
        self.most, self.quiet = most, stored(warehouse)

    def job(self, warehouse: Path) -> Job:
        return Job(self._command, warehouse, CLUSTER, more=self._more)

    def tried(self, trials: Sequence[Trial], warehouse: Path, order: Random, judge: Callable[[Path], object]) -> None:
        """Kill the job while it writes, once for each trial, after a random file; then let it end."""
        shutil.copytree(self.base, warehouse)
        for trial in trials:
            # Early ones are likelier, because a job that is started again has less left to do.
            after = written(warehouse) + 1 + int(self.most * order.random() ** 2)
            job = self.job(warehouse)
            trial.is_hit = job.until(lambda after=after: written(warehouse) >= after)
            time.sleep(order.uniform(0, LATER_S))
            job.kill()
            judge(warehouse)
        began = time.monotonic()
        job = self.job(warehouse)
        assert 0 == job.end(), job.tail()
        found = compared(self.quiet, stored(warehouse))
        for trial in trials:
            trial.seconds, trial.found = time.monotonic() - began, found


def compared(expected: Rows, found: Rows) -> Difference:
    names = expected.keys() | found.keys()
    sides = differing(*({name: side.get(name, []) for name in names} for side in (expected, found)))
    changed = [row for side in sides.values() for row in side]
    lost, more = (sum(row.startswith(sign) for row in changed) for sign in "-+")
    return Difference(lost=lost, duplicated=more, is_identical=not changed)


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    """Tables that this process's library writes, each in many files."""
    warehouse = tmp_path_factory.mktemp("base") / "warehouse"
    make(None, warehouse, batches(BATCHES))
    return warehouse


@pytest.fixture(scope="module")
def clustered(tmp_path_factory, spark) -> Path:
    """Tables that only Spark writes, each in many files, which OPTIMIZE puts together."""
    warehouse = tmp_path_factory.mktemp("clustered") / "warehouse"
    with pytest.MonkeyPatch.context() as patched:
        refuse_in(patched)
        create_tables(spark, warehouse, tuple(dict.fromkeys((*BRONZE, *CLUSTERED))))
    bronze = batches(BATCHES)
    for table in CLUSTERED:
        of_batches = [batch[table.name] for batch in bronze] if table in FILLED else [rebuilt(bronze)[table.name]]
        frame = spark.createDataFrame(arrow(table, [row for each in of_batches for row in each]))
        frame.repartition(BATCHES).write.format("delta").mode("append").save(table_path(warehouse, table))
    return warehouse


@pytest.fixture(scope="module")
def compaction(base, tmp_path_factory) -> Killing:
    return Killing("maintain", base, tmp_path_factory.mktemp("compaction"))


@pytest.fixture(scope="module")
def optimizing(clustered, tmp_path_factory) -> Killing:
    return Killing("maintain", clustered, tmp_path_factory.mktemp("optimizing"))


@pytest.fixture(scope="module")
def erasure(base, tmp_path_factory) -> tuple[Killing, str]:
    group = max(rows(base, GENERATIONS), key=lambda row: row["member_count"])["group_id"]
    more = ("--cluster", CLUSTER.name, "--group", group, "--now")
    return Killing("erase", base, tmp_path_factory.mktemp("erasure"), more), group


@pytest.mark.parametrize("how", ["compaction", "OPTIMIZE"])
def test_maintenance_killed_while_it_writes_changes_no_row(matrix, warehouse, request, how, number) -> None:
    killing: Killing = request.getfixturevalue("compaction" if how == "compaction" else "optimizing")
    known = content(killing.base)

    def judge(here: Path) -> None:
        assert known == content(here)

    trials = [matrix(f"kill -9 within maintain: {how}", Trial()) for _ in range(KILLS)]
    killing.tried(trials, warehouse, Random(f"{how} {number}"), judge)
    assert trials[-1].found.is_identical, trials[-1].found


def test_an_erasure_killed_while_it_writes_leaves_no_name_and_every_other_row(
    matrix, warehouse, erasure, number
) -> None:
    killing, group = erasure
    trials = [matrix("kill -9 within erase", Trial()) for _ in range(KILLS)]
    killing.tried(trials, warehouse, Random(f"erase {number}"), stored)
    assert [] == [name for name, text in contents(warehouse) if group in text]
    assert trials[-1].found.is_identical, trials[-1].found


def test_a_killed_process_of_compaction_is_started_again(matrix, warehouse, base, compaction, number) -> None:
    trial = matrix("maintain: its worker process killed", Trial())
    shutil.copytree(base, warehouse)
    job = Job("maintain", warehouse, CLUSTER)
    job.until(lambda: trial.is_hit or _killed(job, trial))
    assert 0 == job.end(), job.tail()
    trial.found = compared(compaction.quiet, stored(warehouse))
    assert trial.found.is_identical, trial.found
    assert not job.traces()


def _killed(job: Job, trial: Trial) -> bool:
    trial.is_hit = job.kill_those(b"jobs.processes.worker_process") > 0
    return trial.is_hit
