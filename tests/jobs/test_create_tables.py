"""A table that a killed process had begun to make is made by the next one."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from jobs.delta_io import UNFINISHED_S, create_tables, read, table_path
from jobs.small_table import create
from schemas.bronze import COVERAGE
from schemas.operations import JOB_RUNS


def begun(path: str, *, seconds_ago: float) -> Path:
    """As Delta leaves it before the first commit has its name."""
    log = Path(path) / "_delta_log"
    (log / "_staged_commits").mkdir(parents=True)
    half = log / ".00000000000000000000.json.3f1c.tmp"
    half.write_text("{")
    at = time.time() - seconds_ago
    for each in (half, log / "_staged_commits", log):
        os.utime(each, (at, at))
    return log


def test_a_table_that_was_begun_and_left_is_made(spark, warehouse) -> None:
    log = begun(table_path(warehouse, COVERAGE), seconds_ago=UNFINISHED_S)
    create_tables(spark, warehouse, [COVERAGE])
    assert 0 == read(spark, warehouse, COVERAGE).count()
    assert not list(log.glob("*.tmp"))


def test_a_table_that_somebody_makes_just_now_is_waited_for(spark, warehouse, tmp_path) -> None:
    create_tables(spark, tmp_path / "other", [COVERAGE])
    theirs = Path(table_path(tmp_path / "other", COVERAGE)) / "_delta_log" / f"{0:020}.json"
    log = begun(table_path(warehouse, COVERAGE), seconds_ago=0)
    making = threading.Timer(1, theirs.rename, [log / theirs.name])
    making.start()
    create_tables(spark, warehouse, [COVERAGE])
    assert 0 == read(spark, warehouse, COVERAGE).count()
    assert list(log.glob("*.tmp")), "nothing of theirs was deleted"


def test_a_small_table_that_was_begun_and_left_is_made(warehouse) -> None:
    begun(table_path(warehouse, JOB_RUNS), seconds_ago=0)
    create(warehouse, JOB_RUNS)
    assert (Path(table_path(warehouse, JOB_RUNS)) / "_delta_log" / f"{0:020}.json").is_file()
