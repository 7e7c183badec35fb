"""What took long rests, so that it takes a fifth of the time at most."""

from __future__ import annotations

import pytest

from jobs.pace import SHARE, Pace


def test_it_takes_its_share_of_the_time_and_no_more() -> None:
    now, spent = 0.0, 0.0

    def act() -> None:
        nonlocal now, spent
        now, spent = now + 1.5, spent + 1.5

    pace, done = Pace(clock=lambda: now), []
    for _ in range(1_000):
        done.append(pace.let(act))
        now += 1.0
    assert done[0]
    assert spent / now == pytest.approx(SHARE, rel=0.1)


def test_what_takes_no_time_is_done_every_time() -> None:
    pace = Pace(clock=lambda: 7.0)
    assert all(pace.let(lambda: None) for _ in range(3))
