"""A trace has the times of the tables, and slices that viewers can draw: in one thread they nest or follow each other."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboards.answers.traces.bounds import bounded_slice
from dashboards.answers.traces.group_trace import group_trace
from dashboards.answers.traces.trace_events import Slice, TraceSection, Track, trace_events
from dashboards.lake.lake import LocalLake
from dashboards.queries.store import Store
from dashboards.urlstate import State, Window
from dashboards.views.group_timeline import GroupTimeline, group_timeline
from testing import sample

Events = list[dict[str, Any]]


def assert_nested(events: Events) -> None:
    """Each slice ends before the next of its thread begins, or contains it."""
    open_slices: dict[tuple[int, int], list[int]] = defaultdict(list)
    for event in (e for e in events if e["ph"] == "X"):
        stack, end = open_slices[event["pid"], event["tid"]], event["ts"] + event["dur"]
        while stack and stack[-1] <= event["ts"]:
            stack.pop()
        assert event["dur"] >= 0
        assert not stack or end <= stack[-1], event
        stack.append(end)


spans = st.tuples(st.integers(0, 50), st.integers(0, 20), st.integers(0, 20), st.integers(0, 20)).map(
    lambda s: bounded_slice("x", (s[0], s[0] + s[1]), (s[0] + s[2], s[0] + s[2] + s[3]), {})
)


@given(st.lists(st.lists(spans, max_size=12), max_size=4))
def test_slices_of_a_thread_nest_whatever_overlaps(tracks: list[list[Slice]]) -> None:
    events = trace_events([TraceSection(name="s", tracks=[Track(name="t", slices=slices) for slices in tracks])])
    assert_nested(events)
    assert sum(1 + (s.inner is not None) for slices in tracks for s in slices) == sum(e["ph"] == "X" for e in events)
    timed = [e["ts"] for e in events if e["ph"] != "M"]
    assert timed == sorted(timed)
    tids = [e["tid"] for e in events if e["name"] == "thread_name"]
    assert len(tids) == len(set(tids))


@pytest.fixture(scope="module")
def timelines(clusters) -> list[GroupTimeline]:
    """All groups of recorded clusters, each in the range of everything known."""
    store = Store(LocalLake(clusters))
    groups = store.fleet(Window(0, 2**42, is_live=False)).rows
    found = [
        group_timeline(store, State(page="group", cluster=g["cluster"], group=g["group_id"], start="all"), 2**42)
        for g in groups
    ]
    assert all(found)
    return [each for each in found if each is not None]


def slices_named(trace: dict[str, Any], name: str) -> Events:
    return [e for e in trace["traceEvents"] if e["ph"] == "X" and e["name"] == name]


def test_all_events_of_recorded_groups_nest_and_lie_in_the_range(timelines) -> None:
    drawn = 0
    for timeline in timelines:
        events = group_trace(timeline)["traceEvents"]
        assert_nested(events)
        view = timeline.view
        for event in (e for e in events if e["ph"] != "M"):
            assert view.start * 1000 <= event["ts"] <= event["ts"] + event.get("dur", 0) <= view.end * 1000, event
            drawn += 1
    assert drawn > 1_000


def test_stops_have_the_bounds_of_the_table(timelines) -> None:
    met = 0
    for timeline in timelines:
        trace = group_trace(timeline)
        outer = {(e["ts"], e["ts"] + e["dur"]) for e in slices_named(trace, "stopped")}
        inner = {(e["ts"], e["ts"] + e["dur"]) for e in slices_named(trace, "stopped, certainly")}
        for stall in timeline.rows.stalls.rows:
            if stall["cause"] == "no_member" or stall["resumed_at_latest"] is None:
                continue
            met += 1
            assert (stall["stopped_at_earliest"] * 1000, stall["resumed_at_latest"] * 1000) in outer
            certain = stall["stopped_at_latest"], stall["resumed_at_earliest"]
            if certain[0] < certain[1] and certain != (stall["stopped_at_earliest"], stall["resumed_at_latest"]):
                assert (certain[0] * 1000, certain[1] * 1000) in inner
    assert met > 50


def test_no_owner_is_drawn_while_a_resource_is_certainly_stopped(timelines) -> None:
    for timeline in timelines:
        trace = group_trace(timeline)
        rows = {(e["pid"], e["tid"]): e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
        owned: dict[str, list[tuple[int, int]]] = defaultdict(list)
        stopped: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for event in (e for e in trace["traceEvents"] if e["ph"] == "X" and e["pid"] == 3):
            of = owned if "since" in event["args"] else stopped if event["name"] == "stopped, certainly" else None
            if of is not None:
                of[rows[3, event["tid"]]].append((event["ts"], event["ts"] + event["dur"]))
        for name, spans_of in stopped.items():
            for first, last in spans_of:
                assert not [o for o in owned[name] if o[0] < last and first < o[1]], name


def test_the_counter_is_the_number_of_certain_stops(timelines) -> None:
    (timeline,) = [t for t in timelines if t.found["group_id"] == "orders-eager"] or timelines[:1]
    steps = [(e["ts"] // 1000, e["args"]["value"]) for e in group_trace(timeline)["traceEvents"] if e["ph"] == "C"]
    assert (0, 0) == (steps[0][1], steps[-1][1])
    for (at, number), (until, _) in pairwise(steps):
        middle = (at + until) / 2
        certain = [
            s
            for s in timeline.rows.stalls.rows
            if s["cause"] != "no_member" and s["stopped_at_latest"] <= middle < (s["resumed_at_earliest"] or until)
        ]
        assert number == len(certain)


def test_what_is_not_known_is_said(tmp_path, now) -> None:
    sample.write(tmp_path, sample.everyday(now))
    store = Store(LocalLake(tmp_path))
    state = State(page="group", cluster=sample.CLUSTER, group="billing-worker", start="now-6h")
    timeline = group_timeline(store, state, now + 3_600_000)
    assert timeline is not None
    trace = group_trace(timeline)
    assert any(text.startswith("Nothing is known after ") for text in trace["otherData"].values())
    last = slices_named(trace, "not observed")[-1]
    assert last["ts"] + last["dur"] == timeline.view.end * 1000
    assert json.loads(json.dumps(trace)) == trace


def test_an_unknown_group_has_no_timeline(clusters) -> None:
    assert group_timeline(Store(LocalLake(clusters)), State(page="group", cluster="churn", group="nobody"), 0) is None
