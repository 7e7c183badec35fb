"""One warehouse in which each job is killed at each of its points: the tables are those of an undisturbed run.

One life takes minutes where a warehouse for each kill would take many, and what a kill leaves meets all the others.
"""

from __future__ import annotations

import os
import random
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from jobs.tables.paths import table_path
from schemas.bronze import COVERAGE
from schemas.silver import GENERATIONS
from testing.warehouses import volume
from tests.faults.matrix import Trial
from tests.faults.points import BEGINNING, BUILDING, INGEST, MAINTAIN, grows, killed, parts
from tests.faults.process import finished
from tests.faults.tables import Content, Difference, content, difference
from tests.faults.test_build import compared
from tests.jobs.conftest import silver
from tests.maintain.conftest import silver_again

pytestmark = pytest.mark.faults

RECORDS_A_BATCH = 1_000
FILES = 12
"""More files than `maintain` leaves uncompacted."""
ORPHANS = 3_000
"""Number of files that no version refers to: enough that the job can be killed between two of them."""
ROUNDS = 3
VACUUM = "maintain: some of the old files removed"
DAY_S = 86_400


def test_a_life_with_a_kill_at_every_point_ends_in_the_same_tables(
    matrix, warehouse, recorded, undisturbed, number
) -> None:
    order = random.Random(number)
    points = [*BEGINNING, *INGEST, *BUILDING, *MAINTAIN, VACUUM]
    trials = {name: matrix(f"kill -9: {name}", Trial()) for name in points}
    cluster = replace(recorded, max_offsets_per_trigger=RECORDS_A_BATCH)

    for name, point in BEGINNING.items():
        trials[name].is_hit = killed("ingest", warehouse, cluster, point, after=0)
    builds = shuffled(BUILDING, order)
    for at, name in enumerate(shuffled(INGEST, order)):
        trials[name].is_hit = killed("ingest", warehouse, cluster, INGEST[name])
        if at % 2 and builds:
            build = builds.pop()
            trials[build].is_hit = killed("build", warehouse, cluster, BUILDING[build], in_steps=True)
    tell(trials, (*BEGINNING, *INGEST), finished("ingest", warehouse, cluster), bronze(undisturbed, warehouse))
    took = finished("build", warehouse, cluster)
    quiet = silver_again(warehouse)
    tell(trials, BUILDING, took, compared(quiet, silver(warehouse)))

    scatter(warehouse)
    for name, point in MAINTAIN.items():
        trials[name].is_hit = killed("maintain", warehouse, cluster, point)
        assert bronze(undisturbed, warehouse).is_identical
    leave(warehouse)
    removed = grows(lambda here: -parts(here, COVERAGE), lambda here: any(orphans(here)))
    trials[VACUUM].is_hit = killed("maintain", warehouse, cluster, removed)
    took = finished("maintain", warehouse, cluster)
    assert not orphans(warehouse)
    found = bronze(undisturbed, warehouse)
    assert compared(quiet, silver(warehouse)).is_identical
    tell(trials, (*MAINTAIN, VACUUM), took, found)


def test_a_life_on_a_volume_with_kills_ends_in_the_same_tables(
    matrix, warehouse, recorded, undisturbed, number
) -> None:
    """Without hard links and locks: Spark writes every table, and leases take the place of locks."""
    within, order = (sys.executable, volume.__file__), random.Random(number)
    trials = {name: matrix(f"kill -9 on a volume: {name}", Trial()) for name in (*BEGINNING, *INGEST, *BUILDING)}
    cluster = replace(recorded, max_offsets_per_trigger=RECORDS_A_BATCH)

    for name, point in BEGINNING.items():
        trials[name].is_hit = killed("ingest", warehouse, cluster, point, after=0, within=within)
    builds = shuffled(BUILDING, order)
    for at, name in enumerate(shuffled(INGEST, order)):
        trials[name].is_hit = killed("ingest", warehouse, cluster, INGEST[name], within=within)
        if at % 2 and builds:
            build = builds.pop()
            trials[build].is_hit = killed("build", warehouse, cluster, BUILDING[build], in_steps=True, within=within)
    took = finished("ingest", warehouse, cluster, within=within)
    tell(trials, (*BEGINNING, *INGEST), took, bronze(undisturbed, warehouse))
    took = finished("build", warehouse, cluster, within=within)
    tell(trials, BUILDING, took, compared(silver_again(warehouse), silver(warehouse)))


def test_builds_killed_in_a_row_end_in_the_same_silver(matrix, warehouse, recorded, number) -> None:
    cluster = replace(recorded, max_offsets_per_trigger=RECORDS_A_BATCH)
    kills: list[Trial] = []
    for name in shuffled(BUILDING, random.Random(number)) * ROUNDS:
        killed("ingest", warehouse, cluster, INGEST["commits file written"])
        kills.append(matrix(f"kill -9: {name}", Trial()))
        kills[-1].is_hit = killed("build", warehouse, cluster, BUILDING[name], in_steps=True)
    finished("ingest", warehouse, cluster)
    took = finished("build", warehouse, cluster)
    found = compared(silver_again(warehouse), silver(warehouse))
    for trial in kills:
        trial.seconds, trial.found = took, found
    assert found.is_identical, found


def shuffled(points: dict, order: random.Random) -> list[str]:
    return order.sample(list(points), len(points))


def bronze(undisturbed: Content, warehouse: Path) -> Difference:
    return difference(undisturbed, content(warehouse))


def tell(trials: dict[str, Trial], names, seconds: float, found: Difference) -> None:
    for name in names:
        trials[name].seconds, trials[name].found = seconds, found
    assert found.is_identical, found


def scatter(warehouse: Path) -> None:
    """Split a silver table into as many files as a dozen batches would write."""
    path = table_path(warehouse, GENERATIONS)
    rows = DeltaTable(path).to_pyarrow_table()
    DeltaTable(path).delete()
    for number in range(FILES):
        write_deltalake(path, rows.take(list(range(number, rows.num_rows, FILES))), mode="append")


def leave(warehouse: Path) -> None:
    """Write files as of writers that were killed before their commit, days ago."""
    old = time.time() - 3 * DAY_S
    for number in range(ORPHANS):
        file = Path(table_path(warehouse, COVERAGE)) / f"part-orphan-{number}.parquet"
        file.write_bytes(b"half of a file")
        os.utime(file, (old, old))


def orphans(warehouse: Path) -> list[Path]:
    return list(Path(table_path(warehouse, COVERAGE)).glob("part-orphan-*"))
