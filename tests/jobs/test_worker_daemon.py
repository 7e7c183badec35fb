"""Spark's Python workers are forked with all needed modules loaded, and without pandas."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa

LOADED = ("pyspark.worker", "jobs.kafka.kafka_read", "pipelines.bronze_batch", "pipelines.silver.rows", "pandas")


def test_who_forks_them_has_what_they_need_and_no_thread_that_a_fork_would_break() -> None:
    code = (
        "import pathlib, sys; from jobs.spark import worker_daemon; worker_daemon.load(); "
        f"print(*(name for name in {LOADED} if name in sys.modules)); "
        "print(*(path.read_text().strip() for path in pathlib.Path('/proc/self/task').glob('[0-9]*/comm')))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    loaded, threads = map(str.split, done.stdout.splitlines())
    assert loaded == [*LOADED[:-1]]
    # jemalloc is notified of a fork, and continues without its background thread.
    assert len([name for name in threads if name != "jemalloc_bg_thd"]) == 1, threads


def test_tasks_find_it_loaded(spark) -> None:
    def loaded(batches):
        found = [name for name in LOADED if name in sys.modules]
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"name": found})

    rows = spark.range(1).mapInArrow(loaded, "name STRING").collect()
    assert [row.name for row in rows] == [*LOADED[:-1]]
