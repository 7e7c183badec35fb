"""The new files of `coverage` give the same reading progress as the whole table; and only one process notifies."""

from __future__ import annotations

import subprocess
import sys
from random import Random

import pytest
from deltalake import DeltaTable

from jobs.alerting.coverage_reader import CoverageReader, Reached
from jobs.config.errors import UserError
from jobs.processes.process_lock import acquire
from jobs.tables.paths import table_path
from schemas.bronze import COVERAGE
from testing.alerts.rows import CLUSTER, MINUTE, NOW, coverage, write


def test_what_new_files_tell_is_what_all_of_them_tell(warehouse) -> None:
    chance, step_by_step = Random(7), CoverageReader()
    step_by_step.refresh(warehouse)
    assert step_by_step.clusters() == set(), "there is no table yet"
    for turn in range(6):
        rows = [
            coverage(
                upto=chance.randrange(1_000),
                at=NOW + chance.randrange(MINUTE),
                partition=chance.randrange(3),
                log_epoch=chance.randrange(2),
                is_gap=chance.random() < 0.3,
                source=chance.choice(["__consumer_offsets", "poll"]),
            )
            for _ in range(8)
        ]
        write(warehouse, COVERAGE, rows, mode="append")
        if turn == 3:
            DeltaTable(table_path(warehouse, COVERAGE)).optimize.compact()
        step_by_step.refresh(warehouse)
    at_once = CoverageReader()
    at_once.refresh(warehouse)
    assert step_by_step.of_offsets(CLUSTER) == at_once.of_offsets(CLUSTER)
    assert step_by_step.polled_until(CLUSTER) == at_once.polled_until(CLUSTER)


def test_a_recreated_topic_begins_anew_and_a_gap_was_not_read(warehouse) -> None:
    covered = CoverageReader()
    write(warehouse, COVERAGE, [coverage(upto=500, at=NOW)])
    covered.refresh(warehouse)
    lost = coverage(upto=20, at=NOW + MINUTE, log_epoch=1, from_offset=10, is_gap=True)
    write(warehouse, COVERAGE, [coverage(upto=10, at=NOW + 1, log_epoch=1), lost], mode="append")
    covered.refresh(warehouse)
    assert covered.of_offsets(CLUSTER) == {0: Reached(log_epoch=1, upto=20, newest_ms=NOW + 1)}


def test_another_warehouse_in_its_place_is_read_from_the_start(warehouse) -> None:
    covered = CoverageReader()
    write(warehouse, COVERAGE, [coverage(upto=500, at=NOW)])
    covered.refresh(warehouse)
    write(warehouse, COVERAGE, [coverage(upto=7, at=NOW)], mode="overwrite")
    covered.refresh(warehouse)
    assert covered.of_offsets(CLUSTER)[0].upto == 7


def test_a_second_process_is_refused_until_the_first_has_ended(warehouse) -> None:
    holding = f"from pathlib import Path; from jobs.processes.process_lock import acquire; file = acquire(Path({str(warehouse)!r}), 'notify'); "
    command = [sys.executable, "-c", holding + "print('held', flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "held\n"
        with pytest.raises(UserError, match=f"Process {first.pid} already does the work of `notify`"):
            acquire(warehouse, "notify")
        first.kill()
    acquire(warehouse, "notify").close()
