"""Parts of the analysis next to batches: some seconds each, in the time that batches leave, but always some time."""

from __future__ import annotations

import time

import pytest

from jobs.gold.analysis_thread import LEAST_SHARE, MOST, PART_S, QUICK, SLOW, Building, next_part_size, pause
from jobs.gold.analyze_part import Part, _waiting
from schemas.gold import GROUP_TABLES


@pytest.mark.parametrize(
    ("analysed", "took", "most"),
    [(50, PART_S, 50), (50, 2 * PART_S, 25), (50, PART_S / 2, 100), (50, 600.0, 1), (500, 1.0, MOST)],
)
def test_a_part_is_what_some_seconds_suffice_for(analysed, took, most) -> None:
    assert next_part_size(Part(analysed, 10), took) == most


def test_parts_go_through_the_groups_by_name_and_begin_again() -> None:
    before = {"left": [["c", "b", 5], ["c", "f", 6]], "after": ["c", "d"]}
    changes = [(("c", "a"), 7), (("c", "e"), 8), (("c", "f"), 4), (("c", "d"), 9)]
    scope = _waiting(before, changes)
    assert [("e", 8), ("f", 4), ("a", 7), ("b", 5), ("d", 9)] == [(group, at) for (_, group), at in scope.items()]
    assert [("c", "a"), ("c", "d"), ("c", "e"), ("c", "f")] == list(_waiting(None, changes))


@pytest.mark.parametrize(("busy", "share"), [(0.0, 1.0), (0.4, 0.6), (0.9, LEAST_SHARE), (1.0, LEAST_SHARE)])
def test_while_groups_wait_it_takes_the_time_that_batches_leave(busy, share) -> None:
    assert 15.0 / (15.0 + pause(15.0, busy)) == pytest.approx(share)


def test_every_table_of_gold_is_made_once() -> None:
    assert sorted(t.name for t in (*QUICK, *SLOW)) == sorted(t.name for t in GROUP_TABLES)


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
