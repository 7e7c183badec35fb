"""The same history gives the same silver tables, however it was read and however often reading was interrupted."""

from __future__ import annotations

import os
import random
import time
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import jobs.build
import jobs.silver.inputs
import jobs.silver.silver_tasks
from jobs.build import rebuild_all
from jobs.config.clusters import Cluster
from jobs.config.settings import Settings
from jobs.ingest import start
from jobs.replay import Capture, CaptureRecords, replay, split
from jobs.silver.inputs import SilverInputs
from jobs.silver.silver_tasks import silver_by_tasks
from jobs.spark.session_provider import Provider
from jobs.tables.create_tables import create_tables
from jobs.tables.paths import table_path
from jobs.tables.transactions import is_local
from pipelines.decoding.record_decoding import is_offset_commit
from schemas.bronze import BRONZE
from schemas.silver import SILVER
from testing.recordings import CAPTURES
from testing.waiting import wait_until
from testing.warehouses.volume import refuse_in
from tests.faults.points import done
from tests.faults.process import LONGEST_S, Job
from tests.jobs.conftest import CLUSTER, NAME, built, differing, rebuilt, replayed, silver


def test_a_replay_in_shuffled_batches_gives_the_tables_of_one_batch(spark, expected, warehouse) -> None:
    assert differing(expected, replayed(spark, warehouse, batches=3, seed=5)) == {}
    assert differing(expected, rebuilt(spark, warehouse)) == {}, "silver again from bronze"


def test_spark_in_a_folder_without_hard_links_gives_the_tables_of_a_local_folder(
    spark, expected, warehouse, monkeypatch
) -> None:
    refuse_in(monkeypatch)
    assert differing(expected, replayed(spark, warehouse, batches=2, seed=7)) == {}
    assert not any(is_local(table_path(warehouse, table)) for table in (*BRONZE, *SILVER))
    assert differing(expected, rebuilt(spark, warehouse)) == {}, "silver again from bronze"


def test_batches_whose_silver_tasks_write_as_files_give_the_same_tables(
    spark, expected, warehouse, monkeypatch
) -> None:
    monkeypatch.setattr(jobs.silver.inputs, "FEW_ROWS", 0)
    monkeypatch.setattr(jobs.silver.silver_tasks, "LEAST", 1)
    monkeypatch.setattr(jobs.silver.silver_tasks, "provider", lambda: Provider.CONTEXT)
    monkeypatch.setattr(jobs.build, "silver_by_tasks", partial(silver_by_tasks, few_bytes=0))
    assert differing(expected, replayed(spark, warehouse, batches=3, seed=6)) == {}


@pytest.mark.parametrize("name", [NAME, "rolling_restart"])
def test_batches_of_commits_alone_change_what_a_rebuild_would(spark, warehouse, name) -> None:
    """The longest stretch of commits, in two batches: the first ends stops, the second only continues."""
    capture, settings = Capture(CAPTURES / name), Settings(warehouse=warehouse)
    create_tables(spark, warehouse, (*BRONZE, *SILVER))
    records = [r for batch in split(capture, ["offsets"], 200, None) for r in batch.records]
    cuts = [n for n, r in enumerate(records) if r.key is None or not is_offset_commit(r.key)]
    start, end = max(pairwise(cuts), key=lambda pair: pair[1] - pair[0])
    middle = (start + 1 + end) // 2
    for part in (records[: start + 1], records[start + 1 : middle], records[middle:end]):
        replay(spark, settings, CLUSTER, capture.meta, CaptureRecords(records=sorted(part, key=lambda r: r[:2])))
    found = silver(warehouse)
    assert differing(rebuilt(spark, warehouse), found) == {}


def test_consumer_groups_go_on_from_where_they_were_at_rest(spark, warehouse, monkeypatch) -> None:
    capture, settings = Capture(CAPTURES / "rolling_restart"), Settings(warehouse=warehouse, quiet_ms=1_000)
    create_tables(spark, warehouse, (*BRONZE, *SILVER))
    gone_on, restarts = [], SilverInputs.restarts

    def counted(standing: SilverInputs) -> pa.Table:
        points = restarts(standing)
        gone_on.append(pc.sum(pc.is_valid(points["base_state"])).as_py() or 0)
        return points

    monkeypatch.setattr(SilverInputs, "restarts", counted)
    for batch in split(capture, ("offsets", "log"), 15, None):
        replay(spark, settings, CLUSTER, capture.meta, batch)
    found = silver(warehouse)
    assert sum(gone_on) > 5
    rebuild_all(spark, settings)
    assert differing(silver(warehouse), found) == {}


def test_the_live_path_gives_the_tables_of_a_replay(spark, expected, recorded, warehouse) -> None:
    settings = Settings(warehouse=warehouse, clusters=(recorded,))
    create_tables(spark, warehouse, SILVER)
    start(spark, settings, once=True, on_batch=built(spark, settings)).wait()
    assert differing(expected, silver(warehouse)) == {}


def test_kill_9_at_random_moments_changes_no_row(spark, expected, recorded, warehouse) -> None:
    """`up` is killed while it starts, reads and writes; then the rest is read without interruption."""
    seed = int(os.environ.get("REGROUP_SEED", time.time_ns() % 1_000_000))
    chance = random.Random(seed)
    for _ in range(3):
        kill_up(replace(recorded, max_offsets_per_trigger=2_000), warehouse, chance)
    settings = Settings(warehouse=warehouse, clusters=(recorded,))
    create_tables(spark, warehouse, SILVER)
    start(spark, settings, once=True, on_batch=built(spark, settings)).wait()
    assert differing(expected, silver(warehouse)) == {}, f"repeat with REGROUP_SEED={seed}"


ALMOST_ALL = 5
"""Number of batches after which little of the recorded history is left to write."""


def kill_up(cluster: Cluster, warehouse: Path, chance: random.Random) -> None:
    """Start `up`, wait until it has written a drawn number of files, and kill it within the next second.

    A machine that is slow to start is killed at the same moments as a quick one.
    """
    until = written(warehouse) + chance.randint(0, 40)
    up = Job("up", warehouse, cluster, more=("--port", "0"), is_following=True)
    wait_until(
        lambda: written(warehouse) >= until or done(warehouse) >= ALMOST_ALL or up.process.poll() is not None, LONGEST_S
    )
    time.sleep(chance.uniform(0, 1))
    is_running = up.process.poll() is None
    up.kill()
    assert is_running, up.tail()


def written(warehouse: Path) -> int:
    """Number of commits, without those that create a table, and of the files of the streams' progress."""
    commits = [log for log in warehouse.glob("*/_delta_log/*.json") if log.stem.strip("0")]
    return len(commits) + sum(1 for _ in (warehouse / "_checkpoints").glob("**/[0-9]*"))
