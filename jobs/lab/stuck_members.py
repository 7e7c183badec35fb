"""Scripts of groups that wait: for a member that does not poll, that hangs, or that lacks the configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.lab.churn import crash, joined_until, restart, staggered_joins
from jobs.lab.incidents import HANG_S
from jobs.lab.other_members import JavaPlan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from jobs.lab.members import RunningGroup

WAIT_S = 150.0
"""How long the others wait. A rebalance that is open for a minute is a pattern."""

ABSENT_S = 200.0
"""How long a hanging member is away: longer than its session and two minutes."""


def blocked_member(group: RunningGroup, rng: Random) -> Iterator[float]:
    """Block the poll loop of one member; meanwhile another member restarts, and both wait for the first."""
    yield from staggered_joins(group, rng)
    while True:
        yield rng.uniform(15, 20)
        group.block(0, WAIT_S)
        yield 1
        yield from restart(group, 1, rng.uniform(1, 2))
        yield WAIT_S


def frozen_member(group: RunningGroup, rng: Random) -> Iterator[float]:
    """Freeze one member, whose session is long; meanwhile another member restarts, and both wait for the first."""
    yield from staggered_joins(group, rng)
    while True:
        yield rng.uniform(15, 20)
        group.freeze(0)
        yield 1
        yield from restart(group, 1, rng.uniform(1, 2))
        yield WAIT_S
        group.thaw(0)


def silent_leader(group: RunningGroup, rng: Random) -> Iterator[float]:
    """Freeze a member that has asked to join, and close the other: the frozen one leads, and never sends an assignment.

    With a long session, heartbeats are rare, so the first member does not notice the other for a while.
    """
    group.start(1)
    yield rng.uniform(6, 8)
    group.start(0)
    yield rng.uniform(4, 5)
    group.freeze(0)
    yield 1
    group.leave(1)
    yield WAIT_S
    group.thaw(0)
    yield rng.uniform(15, 20)
    group.start(1)


def hanging_member(group: RunningGroup, rng: Random) -> Iterator[float]:
    """Freeze one member just before its coordinator fails, so that it does not look for the new one for minutes."""
    yield from joined_until(group, rng, HANG_S)
    group.freeze(0)
    yield ABSENT_S
    group.thaw(0)


def leader_without_configuration(group: RunningGroup, rng: Random) -> Iterator[float]:
    """Start Connect workers, then stop them all and start one first that reads another configuration topic.

    It leads the group, and has not read as far as the others, so it assigns nothing. After some minutes it is killed.
    """
    yield from staggered_joins(group, rng)
    yield rng.uniform(25, 30)
    for index in range(group.plan.members):
        group.leave(index)
    while any(group.is_running(index) for index in range(group.plan.members)):
        yield 0.5
    assert isinstance(group.plan, JavaPlan)
    group.say(f"{group.plan.client_id(0)} comes back with another config.storage.topic")
    other = {"config.storage.topic": "{group_id}-other-configs", "lab.connectors": ""}
    group.start(0, settings={**group.plan.settings, **other})
    yield rng.uniform(12, 15)
    for index in range(1, group.plan.members):
        group.start(index)
    yield rng.uniform(100, 110)
    yield from crash(group, 0, rng.uniform(5, 8))
