"""What is drawn over time follows from the rows, without gaps and without anything that the rows do not have."""

from __future__ import annotations

from itertools import pairwise

import pytest

from dashboards.urlstate import Window
from dashboards.views.timelines.lanes import delays, lanes
from dashboards.views.timelines.owners import ownership
from dashboards.views.timelines.states import states, with_unread_spans
from schemas.states import Evidence
from testing import sample

NOW = 1_800_000_000_000
HOUR = 3_600_000
WINDOW = Window(NOW - HOUR, NOW + 60_000, is_live=False)


def strip(rows, observed_until=NOW, window=WINDOW):
    return states(rows["generations"], rows["groups"][0], rows["group_events"], window, observed_until)


@pytest.mark.parametrize(
    "story",
    [sample.churny, sample.guessed, sample.cooperative, sample.static, sample.nightly, sample.stuck, sample.unknown],
)
def test_the_strip_covers_the_window_without_a_hole(story):
    segments = strip(story(NOW))
    assert (WINDOW.start, WINDOW.end) == (segments[0].earliest, segments[-1].latest)
    assert all(a.latest == b.earliest for a, b in pairwise(segments))


def test_what_no_record_tells_is_unknown_before_and_after():
    segments = strip(sample.churny(NOW))
    assert ("unknown", NOW - 52 * 60_000) == (segments[0].kind, segments[0].latest)
    assert ("unknown", NOW) == (segments[-1].kind, segments[-1].earliest)


def test_what_was_not_read_is_unknown_whatever_came_before_and_after():
    gap = {"from_at": NOW - 40 * 60_000, "to_at": NOW - 12 * 60_000, "gap_reason": "deleted before it was read"}
    segments = with_unread_spans(strip(sample.churny(NOW)), [gap], WINDOW)
    assert (WINDOW.start, WINDOW.end) == (segments[0].earliest, segments[-1].latest)
    assert all(a.latest == b.earliest for a, b in pairwise(segments))
    inside = [s for s in segments if s.latest > gap["from_at"] and s.earliest < gap["to_at"]]
    assert [("unknown", gap["from_at"], gap["to_at"], gap["gap_reason"])] == [
        (s.kind, s.start, s.end, s.proof) for s in inside
    ]


def test_a_group_whose_state_is_not_known_is_unknown_all_along():
    assert {"unknown"} == {s.kind for s in strip(sample.unknown(NOW))}


def test_an_eager_rebalance_is_stopped_then_assigning_then_working():
    rows = sample.churny(NOW)
    fifth = next(g for g in rows["generations"] if g["generation_id"] == 5)
    styles = [(s.kind, s.start, s.evidence) for s in strip(rows) if s.generation == 5]
    assert [
        ("stopped", fifth["prepared_at"], Evidence.OBSERVED),
        ("assigning", fifth["joined_at"], Evidence.OBSERVED),
        ("working", fifth["synced_at"], Evidence.OBSERVED),
    ] == styles


def test_a_row_that_folded_count_a_loop_is_stopped_until_the_last_of_it():
    rows = sample.churny(NOW)
    fifth = next(g for g in rows["generations"] if g["generation_id"] == 5)
    fifth |= {"folded_count": 500, "last_generation_id": 504, "last_completed_at": fifth["completed_at"] + 9_000}
    styles = [(s.kind, s.start) for s in strip(rows) if s.generation == 5]
    assert [("stopped", fifth["prepared_at"]), ("working", fifth["last_completed_at"])] == styles


def test_a_start_that_is_only_bounded_fades_in_over_its_bounds():
    rows = sample.guessed(NOW)
    second = next(g for g in rows["generations"] if g["generation_id"] == 2)
    stopped = next(s for s in strip(rows) if s.generation == 2 and s.kind == "stopped")
    assert (second["prepared_at_earliest"], second["joined_at"], Evidence.BOUNDED) == (
        stopped.earliest, stopped.start, stopped.evidence,
    )  # fmt: skip


def test_a_cooperative_rebalance_never_looks_stopped():
    assert "stopped" not in {s.kind for s in strip(sample.cooperative(NOW))}


def test_an_open_rebalance_lasts_until_the_newest_record():
    last = strip(sample.stuck(NOW))[-2]
    assert ("stopped", NOW - 90_000, NOW) == (last.kind, last.start, last.latest)


def test_an_empty_group_is_empty_until_somebody_comes():
    assert "empty" == strip(sample.nightly(NOW))[-2].kind


def test_nothing_is_drawn_after_a_group_was_deleted():
    rows = sample.nightly(NOW)
    gone = NOW - 60_000
    rows["group_events"].append(rows["group_events"][-1] | {"kind": "dead", "event_at": gone})
    rows["groups"][0]["state"] = "Dead"
    assert "empty" == strip(rows)[-2].kind
    assert gone == strip(rows)[-2].latest


def test_a_returning_member_goes_on_in_the_lane_of_its_client():
    rows = sample.churny(NOW)
    found = lanes(rows["generation_members"], rows["group_events"], WINDOW, NOW)
    assert sum(len(lane.memberships) for lane in found) == len({m["member_id"] for m in rows["generation_members"]})
    for lane in found:
        assert all(a.latest <= b.earliest for a, b in pairwise(lane.memberships))


def test_lanes_carry_hosts_where_members_of_one_client_id_ran_on_several():
    rows = sample.churny(NOW)["generation_members"]
    one = [row | {"client_host": "/10.0.4.11"} for row in rows]
    assert all(lane.title == lane.label for lane in lanes(one, [], WINDOW, NOW))
    same = [row | {"client_id": "billing"} for row in rows]
    found = lanes(same, [], WINDOW, NOW)
    hosts = {m["client_host"].removeprefix("/") for m in rows}
    assert len(hosts) > 1
    assert hosts == {lane.title.split(" ")[-1].partition("·")[0] for lane in found}
    assert len(found) == len({lane.title for lane in found})
    # Addresses of pages do not change when another host appears.
    assert all(" 10." not in lane.label for lane in found)
    static = lanes([row | {"group_instance_id": row["client_id"]} for row in same], [], WINDOW, NOW)
    assert all(lane.title == lane.label for lane in static)


def test_a_static_member_is_one_lane():
    rows = sample.static(NOW)
    found = lanes(rows["generation_members"], rows["group_events"], WINDOW, NOW)
    assert ["pricing-0", "pricing-1", "pricing-2"] == sorted(lane.label for lane in found)


def test_a_life_ends_when_the_log_says_and_is_bounded_where_none_does():
    rows = sample.churny(NOW)
    expelled = next(e for e in rows["group_events"] if e["kind"] == "session_expired")
    memberships = {
        m: s
        for lane in lanes(rows["generation_members"], rows["group_events"], WINDOW, NOW)
        for m, s in zip(lane.members, lane.memberships, strict=True)
    }
    assert (expelled["event_at"], expelled["event_at"]) == (
        memberships[expelled["member_id"]].end, memberships[expelled["member_id"]].latest,
    )  # fmt: skip
    rows = sample.guessed(NOW)
    left = next(e for e in rows["group_events"] if e["kind"] == "left")
    membership = next(
        s
        for lane in lanes(rows["generation_members"], rows["group_events"], WINDOW, NOW)
        for m, s in zip(lane.members, lane.memberships, strict=True)
        if m == left["member_id"]
    )
    assert membership.end < membership.latest == left["event_at"]


def test_every_partition_has_a_gap_exactly_where_it_stalled():
    rows = sample.churny(NOW)
    found = ownership(rows["generation_members"], rows["stalls"], WINDOW, NOW)
    assert list(range(12)) == [o.index for o in found]
    for o in found:
        for s in rows["stalls"]:
            if s["index"] == o.index:
                middle = (s["stopped_at_latest"] + s["resumed_at_earliest"]) // 2
                assert not any(span.start < middle < span.end for span in o.spans)
        assert all(a.end <= b.start for a, b in pairwise(o.spans))


def test_a_partition_that_a_cooperative_group_keeps_has_one_unbroken_owner():
    rows = sample.cooperative(NOW)
    found = ownership(rows["generation_members"], rows["stalls"], WINDOW, NOW)
    stalled = {s["index"] for s in rows["stalls"]}
    assert stalled
    assert all(1 == len(o.spans) for o in found if o.index not in stalled)


def test_nobody_owns_anything_while_the_group_is_empty():
    rows = sample.nightly(NOW)
    emptied = rows["generations"][-1]["joined_at"]
    for o in ownership(rows["generation_members"], rows["stalls"], WINDOW, NOW):
        assert o.spans[-1].latest <= emptied


def test_a_delay_lasts_until_it_is_over_or_an_assignment_without_one_comes_first():
    def member(generation, at, delay):
        return {"incarnation": 0, "generation_id": generation, "valid_from_at": at, "connect_delay_ms": delay}

    rows = [
        member(1, 0, 0), member(1, 0, None), member(2, 100, 50), member(2, 105, 50), member(3, 130, 20),
        member(4, 200, 300), member(5, 250, 0), member(6, 900, 40),
    ]  # fmt: skip
    assert [(2, 100, 130), (3, 130, 150), (4, 200, 250), (6, 900, 940)] == [
        (s.generation, s.start, s.end) for s in delays(rows)
    ]


def test_the_generation_before_the_window_is_in_force_at_its_start():
    rows = sample.churny(NOW)
    last = max(rows["generations"], key=lambda g: g["joined_at"])
    start = last["completed_at"] + 1_000
    window = Window(start, start + 5_000, is_live=False)
    (segment,) = states([last], None, [], window, NOW)
    assert (segment.kind, segment.start, segment.end) == ("working", window.start, window.end)
