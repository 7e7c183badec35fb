"""A lost Python worker is reported in one sentence, and the command is repeated; with workers of a real session."""

from __future__ import annotations

import argparse
import os
import signal
from concurrent.futures.process import BrokenProcessPool

import pytest
from pyspark.sql.streaming.query import StreamingQuery

from jobs.config.errors import LostWorkerError, UserError
from jobs.config.settings import Settings
from jobs.processes.spawned_pool import spawned_pool
from jobs.spark.lost_worker import REPEATED, lost_worker, repeated
from jobs.spark.streams import Streams
from tests.source.test_streams import Ended


def killing(batches):
    os.kill(os.getpid(), signal.SIGKILL)
    yield from batches


def unchanged(batches):
    yield from batches


def run(command, name="analyze", pauses_s=(0.0, 0.0)) -> int:
    return repeated(command, pauses_s)(Settings(), argparse.Namespace(command=name))


def test_a_command_whose_workers_are_killed_is_repeated_and_succeeds(spark, capsys) -> None:
    attempts = []

    def command(settings, args) -> int:
        attempts.append(1)
        work = killing if len(attempts) < 3 else unchanged
        return len(spark.range(4).mapInArrow(work, "id BIGINT").collect())

    assert 4 == run(command)
    told = capsys.readouterr().err.splitlines()
    assert [
        "regroup analyze: A Python worker of Spark ended before its work was done: this command is repeated in 0 s."
    ] * 2 == told


@pytest.mark.parametrize("name", [*REPEATED, "up", "ingest", "build"])
def test_workers_lost_again_and_again_are_one_sentence(name, capsys) -> None:
    attempts = []

    def command(settings, args) -> int:
        attempts.append(1)
        raise BrokenProcessPool("A process in the process pool was terminated abruptly")

    with pytest.raises(UserError, match="ended before its work was done, again and again: start this command again"):
        run(command, name)
    assert len(attempts) == (3 if name in REPEATED else 1)


def test_a_stream_that_lost_a_process_of_a_pool_is_started_again(spark, tmp_path) -> None:
    """The process is really killed, in a batch."""
    reported: list[Exception] = []

    def batch(rows, batch_id: int) -> None:
        if not reported:
            with spawned_pool(1) as pool:
                pool.submit(os._exit, 9).result()

    def begin() -> StreamingQuery:
        rows = spark.readStream.format("rate").load()
        checkpoint = str(tmp_path / "checkpoint")
        return rows.writeStream.foreachBatch(batch).option("checkpointLocation", checkpoint).trigger(once=True).start()

    Streams([begin], rests_s=(0.0,), on_failure=reported.append).wait()
    assert ["A worker process ended before its work was done"] == list(map(str, reported))


def test_other_failures_are_themselves() -> None:
    def command(settings, args) -> int:
        raise ValueError("Python worker of somebody else")

    with pytest.raises(ValueError, match="somebody else"):
        run(command)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Python worker failed to connect back.", "A Python worker of Spark did not start"),
        (
            "Timed out while waiting for the Python worker to connect back after 10000 ms",
            "A Python worker of Spark did not start",
        ),
        (
            "EOFException occurred while reading the port number from jobs.spark.worker_daemon's stdout.",
            "A Python worker of Spark did not start",
        ),
        (
            "Python worker exited unexpectedly (crashed). Consider setting",
            "A Python worker of Spark ended before its work was done",
        ),
        (
            "concurrent.futures.process.BrokenProcessPool: A process in the process pool was terminated abruptly",
            "A worker process ended before its work was done",
        ),
    ],
)
def test_each_text_of_a_failed_stream_is_a_sentence(text, sentence) -> None:
    found = lost_worker(Ended(text).exception())
    assert isinstance(found, LostWorkerError)
    assert sentence == str(found)
