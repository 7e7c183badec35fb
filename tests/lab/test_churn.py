"""The scripts: their actions depend on the seed alone, and the scheduler stops when it is told to."""

from __future__ import annotations

import threading
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from jobs.lab.churn import run_scripts
from jobs.lab.members import GroupPlan, RunningGroup
from jobs.lab.scenarios import CHURN, SCENARIOS

GROUPS = [group for scenario in SCENARIOS.values() for group in scenario.groups]
IDS = [plan.group_id for plan, _ in GROUPS]


class UnstartedGroup(RunningGroup):
    """A group that reports its actions instead of doing them."""

    def start(self, index: int, **_: object) -> None:
        self._report(index, "starts")

    def _order(self, index: int, order: str, meaning: str) -> None:
        self._report(index, meaning)

    def kill(self, index: int) -> None:
        self._report(index, "is killed")


def played(plan: GroupPlan, script, seed: int) -> list[str]:
    printed: list[str] = []
    group = UnstartedGroup(plan=plan, bootstrap_servers="", folder=Path(), say=printed.append)
    printed.extend(f"{seconds:.3f}" for seconds in islice(script(group, Random(seed)), 200))
    return printed


@pytest.mark.parametrize(("plan", "script"), GROUPS, ids=IDS)
def test_a_seed_always_gives_the_same_script(plan, script):
    assert played(plan, script, 1) == played(plan, script, 1)
    assert played(plan, script, 1) != played(plan, script, 2)


def test_the_default_scenario_has_every_kind_of_trouble():
    printed = {line.split(maxsplit=1)[-1] for plan, script in CHURN.groups for line in played(plan, script, 1)}
    assert {"starts", "closes cleanly", "is killed", "a rolling restart", "a crash loop"} <= printed
    assert any(line.startswith("does not poll for") for line in printed)


def test_a_script_that_ends_does_not_stop_the_others():
    stop = threading.Event()
    done = []

    def short():
        done.append("short")
        yield 0

    def long():
        yield from [0, 0, 0]
        done.append("long")
        stop.set()
        yield 60

    run_scripts([short(), long()], stop)
    assert ["short", "long"] == done
