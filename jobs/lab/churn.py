"""What happens to the lab's groups: one script per group, and the scheduler that runs the scripts concurrently.

A script is a generator. It acts on its group and yields the seconds to wait before its next step.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from random import Random

    from jobs.lab.members import RunningGroup

    Script = Callable[[RunningGroup, Random], Iterator[float]]


HOST_PAUSE_S = 80.0
"""By this time, the members count as established, not as processes that failed soon after their start."""


def staggered_joins(group: RunningGroup, rng: Random) -> Iterator[float]:
    """Start the members one after another."""
    for index in range(group.plan.members):
        group.start(index)
        yield rng.uniform(1, 4)


def joined_until(group: RunningGroup, rng: Random, end_s: float) -> Iterator[float]:
    """Start the members one after another, then wait until `end_s` seconds have passed since the first start."""
    at = 0.0
    for pause in staggered_joins(group, rng):
        at += pause
        yield pause
    yield end_s - at


def restart(group: RunningGroup, index: int, away_s: float, **changes: Any) -> Iterator[float]:
    """Close the member cleanly, wait `away_s` seconds, and start it with `changes` to its plan."""
    group.leave(index)
    while group.is_running(index):
        yield 0.2
    yield away_s
    group.start(index, **changes)


def deploys(group: RunningGroup, rng: Random) -> Iterator[float]:
    """Restart single members; every third time, restart all members in turn."""
    yield from staggered_joins(group, rng)
    for round_no in itertools.count(1):
        yield rng.uniform(12, 30)
        if round_no % 3:
            yield from restart(group, rng.randrange(group.plan.members), rng.uniform(2, 8))
        else:
            group.say(f"{group.plan.group_id}: a rolling restart")
            for index in range(group.plan.members):
                yield from restart(group, index, rng.uniform(1, 3))
                yield rng.uniform(4, 8)


def static_bounces(group: RunningGroup, rng: Random) -> Iterator[float]:
    """Restart static members, usually within their session timeout and sometimes more slowly."""
    yield from staggered_joins(group, rng)
    session_s = group.plan.session_timeout_ms / 1000
    while True:
        yield rng.uniform(15, 35)
        is_slow = rng.random() < 0.25
        away_s = session_s * (rng.uniform(1.3, 1.8) if is_slow else rng.uniform(0.1, 0.4))
        yield from restart(group, rng.randrange(group.plan.members), away_s)


def crashes(group: RunningGroup, rng: Random) -> Iterator[float]:
    """Kill members and start them before or after their session ends; every third time in a crash loop."""
    yield from staggered_joins(group, rng)
    for round_no in itertools.count(1):
        yield rng.uniform(15, 35)
        index = rng.randrange(group.plan.members)
        if round_no % 3 == 0:
            group.say(f"{group.plan.group_id}: a crash loop")
        for _ in range(1 if round_no % 3 else 4):
            group.kill(index)
            yield rng.uniform(0.5, 9)
            group.start(index)
            yield rng.uniform(1, 3)


def slow_polls(group: RunningGroup, rng: Random) -> Iterator[float]:
    """Make one member exceed max.poll.interval.ms repeatedly."""
    yield from staggered_joins(group, rng)
    interval_s = group.plan.max_poll_interval_ms / 1000
    while True:
        yield rng.uniform(15, 30)
        seconds = interval_s + rng.uniform(1, 5)
        group.block(0, seconds)
        yield seconds


def one_deploy(group: RunningGroup, rng: Random) -> Iterator[float]:
    """Do a rolling restart and soon afterwards another one, the rollback; then nothing more."""
    yield from staggered_joins(group, rng)
    for _ in range(2):
        yield rng.uniform(15, 20)
        group.say(f"{group.plan.group_id}: a rolling restart")
        for index in range(group.plan.members):
            yield from restart(group, index, rng.uniform(1, 3))
            yield rng.uniform(4, 8)


def crash_loop(group: RunningGroup, rng: Random) -> Iterator[float]:
    """Kill one member soon after each start, eight times; then nothing more."""
    yield from staggered_joins(group, rng)
    yield rng.uniform(15, 20)
    group.say(f"{group.plan.group_id}: a crash loop")
    for _ in range(8):
        yield from crash(group, 1, rng.uniform(2, 8))
        yield rng.uniform(4, 8)


def host_pause(group: RunningGroup, rng: Random) -> Iterator[float]:
    """Some time after the start, freeze all members together for longer than their sessions; then nothing more."""
    yield from joined_until(group, rng, HOST_PAUSE_S)
    for index in range(group.plan.members):
        group.freeze(index)
    yield group.plan.session_timeout_ms / 1000 * 1.5
    for index in range(group.plan.members):
        group.thaw(index)


def poll_loop(group: RunningGroup, rng: Random) -> Iterator[float]:
    """Make one member exceed max.poll.interval.ms six times in a row; then nothing more."""
    yield from staggered_joins(group, rng)
    yield rng.uniform(15, 20)
    for _ in range(6):
        seconds = group.plan.max_poll_interval_ms / 1000 + rng.uniform(1, 3)
        group.block(0, seconds)
        yield seconds + rng.uniform(5, 10)


def comings_and_goings(group: RunningGroup, rng: Random) -> Iterator[float]:
    """Alternate: one member leaves and returns; the next is killed and returns after its session ended."""
    yield from staggered_joins(group, rng)
    for round_no in itertools.count():
        yield rng.uniform(9, 14)
        index = round_no % group.plan.members
        if round_no % 2:
            yield from crash(group, index, group.plan.session_timeout_ms / 1000 * rng.uniform(1.4, 1.8))
        else:
            yield from restart(group, index, rng.uniform(4, 8))


def leaves_kills_and_blocks(group: RunningGroup, rng: Random) -> Iterator[float]:
    """In turn: a member leaves and returns, one is killed and returns after its session, one blocks for longer."""
    yield from staggered_joins(group, rng)
    session_s = group.plan.session_timeout_ms / 1000
    for round_no in itertools.count():
        yield rng.uniform(9, 14)
        index = round_no % group.plan.members
        match round_no % 3:
            case 0:
                yield from restart(group, index, rng.uniform(4, 8))
            case 1:
                yield from crash(group, index, session_s * rng.uniform(1.4, 1.8))
            case _:
                seconds = session_s * 1.5 + rng.uniform(1, 3)
                group.block(index, seconds)
                yield seconds


def crash(group: RunningGroup, index: int, away_s: float) -> Iterator[float]:
    """Kill the member, wait `away_s` seconds, and start it."""
    group.kill(index)
    yield away_s
    group.start(index)


def worker_losses(group: RunningGroup, rng: Random) -> Iterator[float]:
    """For Connect, alternate: stop a worker that returns within the delay, then kill one that returns after it.

    The first worker, the leader, is the last in turn, because a new leader assigns at once the work that the old one
    had delayed.
    """
    yield from staggered_joins(group, rng)
    for round_no in itertools.count():
        yield rng.uniform(16, 20)
        index = (round_no + 1) % group.plan.members
        if round_no % 2:
            yield from crash(group, index, rng.uniform(26, 30))
        else:
            yield from restart(group, index, rng.uniform(1, 2))


def migration(group: RunningGroup, rng: Random) -> Iterator[float]:
    """Move the members to the consumer protocol with a rolling restart, and back with the next one."""
    yield from staggered_joins(group, rng)
    for group_protocol in itertools.cycle(("consumer", "classic")):
        yield rng.uniform(8, 12)
        group.say(f"{group.plan.group_id}: a rolling restart to the {group_protocol} protocol")
        for index in range(group.plan.members):
            yield from restart(group, index, rng.uniform(0.5, 1.5), group_protocol=group_protocol)
            yield rng.uniform(3, 5)


def new_setting(away_s: float, **changes: Any) -> Script:
    """Return a script that restarts members six times, gives all of them new settings in a rolling restart, and again
    restarts members six times. Each restarted member is away for `away_s` seconds, give or take a tenth.
    """

    def script(group: RunningGroup, rng: Random) -> Iterator[float]:
        yield from staggered_joins(group, rng)
        for settings in ({}, changes):
            yield rng.uniform(8, 10)
            if settings:
                group.say(f"{group.plan.group_id}: a rolling restart with new settings")
                for index in range(group.plan.members):
                    yield from restart(group, index, 1.0, **settings)
                    yield rng.uniform(5, 6)
            for round_no in range(6):
                yield rng.uniform(8, 10)
                index = round_no % group.plan.members
                yield from restart(group, index, away_s * rng.uniform(0.9, 1.1), **settings)

    return script


def run_scripts(scripts: Sequence[Iterator[float]], stop: threading.Event) -> None:
    """Run all scripts in this thread, each step when it is due, until `stop` is set."""
    due = [(time.monotonic(), number, script) for number, script in enumerate(scripts)]
    while due:
        at, number, script = due[0]
        if stop.wait(max(0.0, at - time.monotonic())):
            return
        try:
            heapq.heapreplace(due, (at + next(script), number, script))
        except StopIteration:
            heapq.heappop(due)
