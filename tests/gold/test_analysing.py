"""Parts of the analysis beside batches: some seconds each, in the time that batches leave, and never none at all."""

from __future__ import annotations

import time

import pytest

from jobs.analysing import LEAST, LEAST_SHARE, MOST, PART_S, Building, following
from jobs.analyze import Part


@pytest.mark.parametrize(
    ("analysed", "took", "most"),
    [(50, PART_S, 50), (50, 2 * PART_S, 25), (50, PART_S / 2, 100), (50, 600.0, LEAST), (500, 1.0, MOST)],
)
def test_a_part_is_what_some_seconds_suffice_for(analysed, took, most) -> None:
    assert following(Part(analysed, 10), took, 0.5, 60.0)[0] == most


@pytest.mark.parametrize(("busy", "share"), [(0.0, 1.0), (0.4, 0.6), (0.9, LEAST_SHARE), (1.0, LEAST_SHARE)])
def test_while_groups_wait_it_takes_the_time_that_batches_leave(busy, share) -> None:
    _, rest = following(Part(50, 10), 15.0, busy, 60.0)
    assert 15.0 / (15.0 + rest) == pytest.approx(share)


@pytest.mark.parametrize(("analysed", "took"), [(0, 0.1), (3, 2.0)])
def test_where_none_waits_it_comes_back_when_it_is_due(analysed, took) -> None:
    assert following(Part(analysed, 0), took, 1.0, 60.0)[1] == 60.0


def test_after_a_long_last_part_it_rests_as_long_as_after_others() -> None:
    assert following(Part(50, 0), 40.0, 1.0, 60.0) == following(Part(50, 10), 40.0, 1.0, 60.0)


def test_who_builds_is_alone_and_is_timed() -> None:
    building = Building()
    with building:
        assert not building._lock.acquire(blocking=False)
        began = time.monotonic()
        while time.monotonic() == began:
            pass
    assert building.seconds > 0
    with building:
        pass
