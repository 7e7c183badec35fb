"""A table is opened once for as long as it does not change, and the newest version is always returned."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from jobs.tables.as_of import as_of, opened, versions
from jobs.tables.create_tables import create
from jobs.tables.paths import table_path
from jobs.tables.tables import FolderTables
from schemas.operations import JOB_RUNS
from tests.whole_rows import whole

RUN = whole({"job": "poll", "run_id": "1", "told_at": 0, "started_at": 0, "outcome": "running"}, JOB_RUNS)


def add(warehouse) -> None:
    FolderTables(warehouse).append(JOB_RUNS, [RUN])


def test_it_is_opened_once_until_somebody_writes(warehouse) -> None:
    create(warehouse, JOB_RUNS)
    first = opened(warehouse, JOB_RUNS)
    assert first is opened(warehouse, JOB_RUNS)
    add(warehouse)
    assert 1 == opened(warehouse, JOB_RUNS).version()
    assert 0 == first.version()


def test_a_commit_within_the_same_tick_of_the_clock_is_seen(warehouse) -> None:
    create(warehouse, JOB_RUNS)
    log = Path(table_path(warehouse, JOB_RUNS), "_delta_log")
    tick = log.stat().st_mtime_ns
    opened(warehouse, JOB_RUNS)
    add(warehouse)
    os.utime(log, ns=(tick, tick))
    assert 1 == opened(warehouse, JOB_RUNS).version()


def test_commits_whose_log_is_cleaned_up_are_seen(warehouse) -> None:
    create(warehouse, JOB_RUNS)
    opened(warehouse, JOB_RUNS)
    for _ in range(3):
        add(warehouse)
    DeltaTable(table_path(warehouse, JOB_RUNS)).create_checkpoint()
    for number in range(3):
        Path(table_path(warehouse, JOB_RUNS), "_delta_log", f"{number:020}.json").unlink()
    assert 3 == opened(warehouse, JOB_RUNS).version()


def test_another_table_of_the_same_name_is_another_one(warehouse) -> None:
    create(warehouse, JOB_RUNS)
    add(warehouse)
    assert 1 == opened(warehouse, JOB_RUNS).version()
    shutil.rmtree(table_path(warehouse, JOB_RUNS))
    with pytest.raises(TableNotFoundError):
        opened(warehouse, JOB_RUNS)
    create(warehouse, JOB_RUNS)
    assert 0 == opened(warehouse, JOB_RUNS).version()


def test_an_older_version_is_opened_where_it_is_named(warehouse) -> None:
    create(warehouse, JOB_RUNS)
    seen = versions(warehouse, [JOB_RUNS])
    add(warehouse)
    with as_of(seen):
        assert 0 == opened(warehouse, JOB_RUNS).version()
    assert 1 == opened(warehouse, JOB_RUNS).version()


def test_a_version_that_was_named_is_never_taken_for_the_newest(warehouse) -> None:
    create(warehouse, JOB_RUNS)
    seen = versions(warehouse, [JOB_RUNS])
    for _ in range(3):
        add(warehouse)
    path = table_path(warehouse, JOB_RUNS)
    DeltaTable(path).create_checkpoint()
    Path(path, "_delta_log", f"{1:020}.json").unlink()
    with as_of(seen):
        assert 0 == opened(warehouse, JOB_RUNS).version()
    assert 3 == opened(warehouse, JOB_RUNS).version()
