"""The same history gives the same silver tables, whichever way it came in and however often it was interrupted."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import jobs.build
import jobs.silver.inputs
import jobs.silver.silver_tasks
from jobs.build import rebuild_all
from jobs.config.settings import Settings
from jobs.ingest import start
from jobs.replay import Capture, CaptureRecords, replay, split
from jobs.silver.inputs import SilverInputs
from jobs.silver.silver_tasks import silver_by_tasks
from jobs.tables.create_tables import create_tables
from pipelines.decoding.record_decoding import is_offset_commit
from schemas.bronze import BRONZE
from schemas.silver import SILVER
from testing.recordings import CAPTURES
from tests.jobs.conftest import CLUSTER, NAME, built, differing, rebuilt, replayed, silver


def test_a_replay_in_shuffled_batches_gives_the_tables_of_one_batch(spark, expected, warehouse) -> None:
    assert differing(expected, replayed(spark, warehouse, batches=3, seed=5)) == {}
    assert differing(expected, rebuilt(spark, warehouse)) == {}, "silver again from bronze"


def test_batches_whose_silver_tasks_write_as_files_give_the_same_tables(
    spark, expected, warehouse, monkeypatch
) -> None:
    monkeypatch.setattr(jobs.silver.inputs, "FEW_ROWS", 0)
    monkeypatch.setattr(jobs.silver.silver_tasks, "LEAST", 1)
    monkeypatch.setattr(jobs.build, "silver_by_tasks", partial(silver_by_tasks, few_bytes=0))
    assert differing(expected, replayed(spark, warehouse, batches=3, seed=6)) == {}


@pytest.mark.parametrize("name", [NAME, "rolling_restart"])
def test_batches_of_commits_alone_change_what_a_rebuild_would(spark, warehouse, name) -> None:
    """The longest stretch of commits, in two batches: the first ends stops, the second only goes on."""
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
    """`up` is killed while it starts, reads and writes, then what is left is read in peace."""
    seed = int(os.environ.get("REGROUP_SEED", time.time_ns() % 1_000_000))
    chance = random.Random(seed)
    for _ in range(3):
        kill_up(recorded.bootstrap_servers, warehouse, after_s=chance.uniform(12, 32))
    settings = Settings(warehouse=warehouse, clusters=(recorded,))
    create_tables(spark, warehouse, SILVER)
    start(spark, settings, once=True, on_batch=built(spark, settings)).wait()
    assert differing(expected, silver(warehouse)) == {}, f"repeat with REGROUP_SEED={seed}"


def kill_up(bootstrap_servers: str, warehouse, after_s: float) -> None:
    command = [sys.executable, "-m", "jobs.cli", "up", "--bootstrap-servers", bootstrap_servers, "--port", "0"]
    up = subprocess.Popen(
        [*command, "--cluster", "kafka", "--warehouse", str(warehouse), "--trigger-seconds", "1"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with suppress(subprocess.TimeoutExpired):
        up.wait(after_s)
    # Spark's JVM and workers are in its group: as when the machine loses power.
    os.killpg(up.pid, signal.SIGKILL)
    up.wait()
