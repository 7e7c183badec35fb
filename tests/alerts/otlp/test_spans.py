"""Spans of rebalances: stable ids, within their root, whatever the rows say."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.alerting.otlp.encoding import trace_request
from pipelines.telemetry.cause_spans import deploy_link, deploy_span, storm_link, storm_span
from pipelines.telemetry.rebalance_spans import MOST_MEMBERS, rebalance_spans, rebalance_trace_id
from pipelines.telemetry.span import span_id, trace_id
from schemas.gold import DEPLOYS, STORMS
from schemas.silver import GENERATION_MEMBERS, GENERATIONS
from testing.alerts.rows import NOW, row

TIMES = st.integers(NOW - 100_000, NOW + 100_000)
MAYBE = st.none() | TIMES
NAMES = st.text(max_size=40) | st.sampled_from(["", "/", "\ud800", "a\x00b", "<!channel>", "x" * 5_000])


@st.composite
def rebalances(draw):
    joined = draw(TIMES)
    earliest, latest = sorted([draw(TIMES), draw(TIMES)])
    found = row(
        GENERATIONS,
        cluster=draw(NAMES),
        group_id=draw(NAMES),
        incarnation=draw(st.integers(0, 3)),
        generation_id=draw(st.integers(0, 2**31 - 1)),
        joined_at=joined,
        prepared_at=draw(MAYBE),
        prepared_at_earliest=earliest,
        prepared_at_latest=latest,
        synced_at=draw(MAYBE),
        completed_at=draw(TIMES),
        last_completed_at=draw(MAYBE),
        member_count=draw(st.integers(0, 5)),
        evidence="bounded",
    )
    members = [
        row(GENERATION_MEMBERS, member_id=f"m{n}", client_id=draw(NAMES), is_leader=n == 0, rejoined_at_latest=draw(MAYBE),
            reconciled_at=draw(MAYBE))
        for n in range(draw(st.integers(0, 4)))
    ]  # fmt: skip
    resumed = draw(
        st.none()
        | st.fixed_dictionaries(
            {"stops": st.just(2), "stopped_ms": st.just(5), "resumed_at_earliest": MAYBE, "resumed_at_latest": MAYBE}
        )
    )
    return found, members, resumed


@settings(deadline=None, max_examples=150)
@given(rebalances())
def test_spans_lie_within_their_root_and_keep_their_ids(drawn):
    found, members, resumed = drawn
    spans = rebalance_spans(found, members, resumed)
    root = spans[0]
    assert all(span.start_ns <= span.end_ns for span in spans)
    assert all(root.start_ns <= span.start_ns and span.end_ns <= root.end_ns for span in spans)
    assert {span.parent_id for span in spans[1:]} == {root.span_id}
    assert root.parent_id is None
    assert len({span.span_id for span in spans}) == len(spans)
    assert {span.trace_id for span in spans} == {root.trace_id}
    assert [s.span_id for s in spans] == [s.span_id for s in rebalance_spans(found, members, resumed)]
    # A late log line changes the start, and no id.
    later = found | {"prepared_at": NOW, "trigger_reason": "late"}
    assert [s.span_id for s in spans][:1] == [rebalance_spans(later, members, resumed)[0].span_id]
    assert trace_request(spans, {})


@given(st.lists(st.text(), min_size=1, max_size=3), st.lists(st.text(), min_size=1, max_size=3))
def test_other_names_have_other_ids(one, other):
    assert (one == other) == (trace_id(*one) == trace_id(*other)) == (span_id(*one) == span_id(*other))


def test_the_next_generation_is_another_trace():
    first = row(GENERATIONS, group_id="g", incarnation=0, generation_id=1, joined_at=NOW)
    assert rebalance_trace_id(first) != rebalance_trace_id(first | {"generation_id": 2})
    assert rebalance_trace_id(first) != rebalance_trace_id(first | {"joined_at": NOW + 1})


def test_a_huge_group_has_a_bounded_trace_that_says_so():
    found = row(
        GENERATIONS, group_id="g", incarnation=0, generation_id=1, joined_at=NOW, prepared_at_earliest=NOW,
        prepared_at_latest=NOW, completed_at=NOW, member_count=1_000, evidence="observed",
    )  # fmt: skip
    members = [row(GENERATION_MEMBERS, member_id=f"{n:04}", is_leader=False) for n in range(1_000)]
    spans = rebalance_spans(found, members)
    assert sum(span.name == "member" for span in spans) == MOST_MEMBERS
    assert spans[0].attributes["regroup.members.without_span"] == 1_000 - MOST_MEMBERS


def test_deploys_and_storms_have_the_ids_that_rebalances_link_to():
    deploy = row(DEPLOYS, group_id="g", started_at=NOW, text="v2", evidence="observed")
    span = deploy_span(deploy)
    assert deploy_link(deploy) == (span.trace_id, span.span_id)
    storm = row(STORMS, storm_id="s", started_at=NOW, ended_at=NOW + 5, group_ids=["g"], evidence="bounded")
    span = storm_span(storm)
    assert storm_link(storm) == (span.trace_id, span.span_id)
    assert span.end_ns - span.start_ns == 5_000_000
