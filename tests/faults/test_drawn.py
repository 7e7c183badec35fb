"""Rounds of random faults, for the requested time: after each, the tables are those of an undisturbed run."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import nullcontext
from random import Random

import pytest

from jobs.lab.broker import Broker
from tests.faults.disk import Disk, unavailable
from tests.faults.drawn import FAULTS, ON_A_DISK, Round
from tests.faults.matrix import Trial
from tests.faults.process import finished
from tests.faults.tables import Content, content, difference
from tests.faults.test_broker import cluster_of
from tests.faults.test_build import compared
from tests.jobs.conftest import record, silver
from tests.maintain.conftest import silver_again

pytestmark = [pytest.mark.faults, pytest.mark.drawn]

MOST = 6
"""Highest number of faults in a round."""


@pytest.fixture(scope="module")
def reading(tmp_path_factory) -> Iterator[Broker]:
    """A broker that holds the recorded history."""
    overrides = {"log.cleaner.enable": "false", "log.retention.ms": -1}
    with Broker(tmp_path_factory.mktemp("drawn") / "broker", overrides=overrides) as broker:
        record(cluster_of(broker))
        yield broker


def numbers(config) -> Iterator[int]:
    """The rounds: as many as `--faults` says, or for as long as `--hours` says."""
    until, number = time.monotonic() + config.getoption("--hours") * 3_600, 0
    while number < config.getoption("--faults") if not config.getoption("--hours") else time.monotonic() < until:
        yield number
        number += 1


def test_rounds_of_drawn_faults_end_in_the_tables_of_a_quiet_run(
    matrix, tmp_path, reading, undisturbed, request
) -> None:
    seed = request.config.getoption("--drawn-from")
    has_disk = not unavailable()
    faults = FAULTS | ON_A_DISK if has_disk else FAULTS
    for number in numbers(request.config):
        order = Random(f"{seed} {number}")
        names = [order.choice(list(faults)) for _ in range(order.randint(1, MOST))]
        folder = tmp_path / str(number)
        with Disk(folder, tmp_path / "disk.img") if has_disk else nullcontext() as disk:
            played = Round(folder / "life" / "warehouse", disk, reading, cluster_of(reading), order)
            trials = [matrix(f"drawn: {name}", Trial()) for name in names]
            try:
                for name, trial in zip(names, trials, strict=True):
                    trial.is_hit = faults[name](played)
                judge(played, trials, undisturbed)
            except BaseException as error:
                error.add_note(f"--drawn-from {seed}, round {number}: {', '.join(names)}")
                raise
        shutil.rmtree(folder)


def judge(played: Round, trials: list[Trial], undisturbed: Content) -> None:
    took = finished("ingest", played.warehouse, played.cluster)
    finished("build", played.warehouse, played.cluster)
    finished("maintain", played.warehouse, played.cluster)
    bronze = difference(undisturbed, content(played.warehouse))
    built = compared(silver_again(played.warehouse), silver(played.warehouse))
    for trial in trials:
        trial.seconds, trial.found = took, bronze if built.is_identical else built
    assert bronze.is_identical, bronze
    assert built.is_identical, built
