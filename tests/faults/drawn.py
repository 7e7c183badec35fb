"""Faults drawn at random: what happens to a job, at a known point or at any time."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from jobs.config.clusters import Cluster
from jobs.lab.broker import Broker
from tests.faults.disk import Disk
from tests.faults.points import BUILDING, INGEST, MAINTAIN, done, killed
from tests.faults.process import Job

RECORDS_A_BATCH = 500
"""Small enough that a round has more batches than faults."""
LONGEST_S = 15.0
"""Longest time that a job runs before a fault at a random time."""
JOBS = ("ingest", "build", "maintain")


@dataclass(frozen=True)
class Round:
    """One warehouse in which faults happen, its disk if it has one of its own, and the broker that it reads."""

    warehouse: Path
    disk: Disk | None
    broker: Broker
    cluster: Cluster
    order: Random

    @property
    def slow(self) -> Cluster:
        return replace(self.cluster, max_offsets_per_trigger=RECORDS_A_BATCH)

    def job(self, command: str) -> Job:
        return Job(command, self.warehouse, self.slow)

    def any_time(self, job: Job) -> bool:
        """Wait for a random time; return whether the job still runs."""
        until = time.monotonic() + self.order.uniform(0.2, LONGEST_S)
        return not job.until(lambda: time.monotonic() >= until) or job.process.poll() is None

    def further_batch(self, job: Job) -> None:
        """Wait for one more batch of `ingest`, or the end of the job."""
        before = done(self.warehouse)
        job.until(lambda: done(self.warehouse) > before)


Fault = Callable[[Round], bool]
"""A fault in a round. Returns whether the job ran when it happened."""


def at_a_point(round_: Round) -> bool:
    """A job is killed at one of its known points."""
    command, points = round_.order.choice([("ingest", INGEST), ("build", BUILDING), ("maintain", MAINTAIN)])
    point = points[round_.order.choice(list(points))]
    return killed(command, round_.warehouse, round_.slow, point, after=0, in_steps=command == "build")


def at_any_time(round_: Round) -> bool:
    """A job is killed at any time, from its start on."""
    job = round_.job(round_.order.choice(JOBS))
    runs = round_.any_time(job)
    job.kill()
    return runs


def a_part(round_: Round) -> bool:
    """The Python workers or the JVM of `ingest` are killed between two batches, and the job one batch later."""
    job = round_.job("ingest")
    round_.further_batch(job)
    hit = job.kill_those(round_.order.choice((b"jobs.spark.worker_daemon", b"org.apache.spark")))
    round_.further_batch(job)
    job.kill()
    return hit > 0


def frozen(round_: Round) -> bool:
    """A job is stopped as a whole for some seconds, goes on, and is killed."""
    job = round_.job("ingest")
    runs = round_.any_time(job)
    if runs:
        os.killpg(job.process.pid, signal.SIGSTOP)
        time.sleep(round_.order.uniform(1, 12))
        os.killpg(job.process.pid, signal.SIGCONT)
    round_.further_batch(job)
    job.kill()
    return runs


def without_broker(round_: Round) -> bool:
    """The broker is killed while `ingest` runs, and starts again; then the job is killed, if it still runs."""
    job = round_.job("ingest")
    runs = round_.any_time(job)
    round_.broker.kill()
    time.sleep(round_.order.uniform(0, 5))
    round_.broker.start()
    round_.further_batch(job)
    job.kill()
    return runs


def two_copies(round_: Round) -> bool:
    """A job is started while it runs: one of the two refuses."""
    jobs = [round_.job("ingest") for _ in range(2)]
    refused = jobs[0].until(lambda: any(job.process.poll() == 2 for job in jobs))
    for job in jobs:
        job.kill()
    return refused


def without_progress(round_: Round) -> bool:
    """The progress of the stream is lost after a kill."""
    runs = at_any_time(round_)
    shutil.rmtree(round_.warehouse / "_checkpoints" / "ingest", ignore_errors=True)
    return runs


def without_power(round_: Round) -> bool:
    """The machine loses power while a job runs."""
    assert round_.disk is not None
    runs = at_any_time(round_)
    round_.disk.cut()
    return runs


FAULTS: dict[str, Fault] = {
    "killed at a point": at_a_point,
    "killed at any time": at_any_time,
    "a part killed": a_part,
    "frozen": frozen,
    "broker killed": without_broker,
    "two copies": two_copies,
    "progress of the stream lost": without_progress,
}
ON_A_DISK: dict[str, Fault] = {"power lost": without_power}
"""Those that take a disk of the warehouse's own."""
