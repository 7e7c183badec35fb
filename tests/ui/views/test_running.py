"""The number of running resources follows from owners and stops; what is not known is not drawn."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboards.figures.running import LEAST, running_bars, running_words
from dashboards.urlstate import Window
from dashboards.views.timelines.owners import Owned, ownership
from dashboards.views.timelines.running import PARTS, Running, running
from dashboards.views.timelines.segments import Segment
from schemas.states import Evidence, StallCause
from testing import sample

NOW = 1_800_000_000_000
WINDOW = Window(NOW - 3_600_000, NOW + 60_000, is_live=False)
SMALL = Window(0, PARTS, is_live=False)
"""A window in which no step is too short to be drawn."""


def of(rows, window=WINDOW, until=NOW, **more):
    owned = ownership(rows["generation_members"], rows["stalls"], window, until)
    return running(owned, rows["stalls"], window, until, **more)


def owner(index, *spans):
    held = [
        Segment(earliest=start, start=start, end=end, latest=end, kind="m", evidence=Evidence.OBSERVED)
        for start, end in spans
    ]
    return Owned(name="t", index=index, spans=held, stopped_ms=0)


def stall(index, stopped, back, *, cause=StallCause.MOVED, evidence=Evidence.OBSERVED):
    since, surely = stopped
    resumed, surely_resumed = back
    return {
        "name": "t", "index": index, "cause": cause, "evidence": evidence,
        "stopped_at_earliest": since, "stopped_at_latest": surely,
        "resumed_at_earliest": resumed, "resumed_at_latest": surely_resumed,
    }  # fmt: skip


def numbers(steps):
    return [(s.start, s.end, s.least, s.most, s.total) for s in steps]


def test_one_partition_without_an_owner_is_a_step_with_its_bounds():
    owned = [owner(0, (0, 600)), owner(1, (0, 100), (300, 600))]
    steps = running(owned, [stall(1, (100, 120), (280, 300))], SMALL, 600)
    assert [
        (0, 100, 2, 2, 2),
        (100, 120, 1, 2, 2),
        (120, 280, 1, 1, 2),
        (280, 300, 1, 2, 2),
        (300, 600, 2, 2, 2),
    ] == numbers(steps)
    assert ["observed", "bounded", "observed", "bounded", "observed"] == [s.evidence for s in steps]


def test_a_stop_that_a_model_estimated_is_inferred():
    steps = running(
        [owner(0, (0, 100), (300, 600))], [stall(0, (100, 100), (300, 300), evidence="inferred")], SMALL, 600
    )
    assert [(0, 100, "observed"), (100, 300, "inferred"), (300, 600, "observed")] == [
        (s.start, s.end, s.evidence) for s in steps
    ]


def test_a_partition_that_has_not_resumed_is_stopped_until_the_newest_record_and_not_after_it():
    steps = running([owner(0, (0, 600)), owner(1, (0, 100))], [stall(1, (100, 100), (None, None))], SMALL, 500)
    assert [(0, 100, 2, 2, 2), (100, 500, 1, 1, 2)] == numbers(steps)


def test_an_open_rebalance_may_have_stopped_everybody():
    steps = running([owner(0, (0, 200)), owner(1, (0, 200))], [], SMALL, 500, open_since=200)
    assert [(0, 200, 2, 2, 2), (200, 500, 0, 2, 2)] == numbers(steps)


def test_nothing_is_said_of_spans_that_were_not_read():
    steps = running([owner(0, (0, 600))], [], SMALL, 600, unread=[(100, 200), (150, 250), (590, 700)])
    assert [(0, 100, 1, 1, 1), (250, 590, 1, 1, 1)] == numbers(steps)


def test_nothing_is_said_while_the_group_surely_had_no_members():
    stopped = stall(0, (100, 150), (280, 300), cause=StallCause.NO_MEMBER)
    assert [(0, 100, 1, 1, 1), (100, 150, 0, 1, 1), (280, 300, 0, 1, 1), (300, 600, 1, 1, 1)] == numbers(
        running([owner(0, (0, 100), (300, 600))], [stopped], SMALL, 600)
    )


def test_a_stop_too_short_to_be_drawn_is_in_a_step_that_says_its_lowest_number():
    long = Window(0, PARTS * 1000, is_live=False)
    owned = [owner(0, (0, 600_000)), owner(1, (0, 1_000), (1_010, 600_000))]
    steps = running(owned, [stall(1, (1_000, 1_000), (1_010, 1_010))], long, 600_000)
    assert [(0, 1_000, 2, 2, 2), (1_000, 1_010, 1, 1, 2), (1_010, 600_000, 2, 2, 2)] == numbers(steps)
    many = [stall(1, (at, at), (at + 10, at + 10)) for at in range(1_000, 1_900, 20)]
    steps = running([owner(0, (0, 600_000)), owner(1, (0, 600_000))], many, long, 600_000)
    assert [(0, 1_000, 2, 2, 2), (1_000, 1_890, 1, 1, 2), (1_890, 600_000, 2, 2, 2)] == numbers(steps)


bounds = st.lists(st.integers(0, 600), min_size=4, max_size=4).map(sorted)
stops = st.lists(st.tuples(st.integers(0, 2), bounds), max_size=6)
holds = st.lists(st.lists(st.integers(0, 600), min_size=2, max_size=6, unique=True).map(sorted), min_size=1, max_size=3)


@given(holds, stops, st.lists(st.lists(st.integers(0, 600), min_size=2, max_size=2).map(sorted), max_size=4))
def test_each_step_has_the_numbers_of_its_instants(held, stopped, unread):
    owned = [owner(i, *zip(edges[::2], edges[1::2], strict=False)) for i, edges in enumerate(held)]
    stalls = [stall(i % len(held), (a, b), (c, d)) for i, (a, b, c, d) in stopped]
    found = {}
    for step in running(owned, stalls, SMALL, 600, unread=map(tuple, unread)):
        assert step.start < step.end
        found |= dict.fromkeys(range(step.start, step.end), (step.least, step.most, step.total))
    for at in range(600):
        states = []
        for i, each in enumerate(owned):
            mine = [s for s in stalls if s["index"] == i]
            sure = any(s["stopped_at_latest"] <= at < s["resumed_at_earliest"] for s in mine)
            perhaps = any(s["stopped_at_earliest"] <= at < s["resumed_at_latest"] for s in mine)
            runs = any(s.start <= at < s.end for s in each.spans)
            states += ["stopped" if sure else "perhaps" if perhaps else "runs"] if sure or perhaps or runs else []
        if any(start <= at < end for start, end in unread):
            states = []
        least, most = states.count("runs"), len(states) - states.count("stopped")
        assert found.get(at, (0, 0, 0)) == (least, most, len(states))


@pytest.mark.parametrize(
    "story", [sample.churny, sample.guessed, sample.cooperative, sample.static, sample.nightly, sample.stuck]
)
def test_every_story_has_steps_in_order_that_count_no_more_than_all(story):
    steps = of(story(NOW))
    assert steps
    assert all(0 <= s.least <= s.most <= s.total for s in steps)
    assert all(a.end <= b.start for a, b in pairwise(steps))
    assert steps[-1].end <= NOW


def test_one_stopped_partition_of_thousands_is_seen():
    step = Running(start=0, end=10, least=9_999, most=9_999, total=10_000, is_inferred=False)
    runs, perhaps, stopped = running_bars([step], "partition", "y2")
    assert ([1 - LEAST], [], [LEAST]) == (runs["width"], perhaps["width"], pytest.approx(stopped["width"]))
    assert "9999 of 10000" == running_words(step)
    assert "<b>9999 of 10000</b> partitions running" in stopped["customdata"][0][0]


def test_what_only_has_bounds_is_faded():
    step = Running(start=0, end=10, least=1, most=3, total=4, is_inferred=False)
    runs, perhaps, stopped = running_bars([step], "task", "y2")
    assert ([0.25], [0.5], [0.25]) == (runs["width"], perhaps["width"], stopped["width"])
    assert perhaps["marker"]["opacity"] < stopped["marker"]["opacity"]
