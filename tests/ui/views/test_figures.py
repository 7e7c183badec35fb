"""Figures are functions of rows: small, escaped, and honest about what is known."""

from __future__ import annotations

import json
import re
from itertools import pairwise

import pytest
from plotly.utils import PlotlyJSONEncoder

from dashboards.figures.bars import FADE, pieces
from dashboards.figures.group import group_figure
from dashboards.figures.heatmap import BINS, heatmap, level, lost_level
from dashboards.figures.waterfall import waterfall
from dashboards.lake.lake import Rows
from dashboards.queries.store import Rebalance
from dashboards.urlstate import Window
from dashboards.views import sentences
from dashboards.views.timelines.lanes import lanes
from dashboards.views.timelines.owners import ownership
from dashboards.views.timelines.segments import Segment
from dashboards.views.timelines.states import states
from testing import sample

NOW = 1_800_000_000_000
WINDOW = Window(NOW - 3_600_000, NOW, is_live=False)
HOSTILE = "<img src=x onerror=alert(1)>$\\href{javascript:alert(1)}{x}$&amp;<a href='//evil'>"


def drawn_group(rows, window=WINDOW):
    owned = ownership(rows["generation_members"], rows["stalls"], window, NOW)
    lived = lanes(rows["generation_members"], rows["group_events"], window, NOW)
    strip = states(rows["generations"], rows["groups"][0], rows["group_events"], window, NOW)
    return group_figure(strip, rows["generations"], lived, owned, rows["group_events"], window, {})


def rebalance_of(rows, number):
    def at(n):
        return next((g for g in rows["generations"] if g["generation_id"] == n), None)

    return Rebalance(
        generation=at(number),
        previous=at(number - 1),
        following=at(number + 1),
        members=[m for m in rows["generation_members"] if m["generation_id"] == number],
        previous_members=[m for m in rows["generation_members"] if m["generation_id"] == number - 1],
        stalls=Rows([s for s in rows["stalls"] if s["generation_id"] == number], is_capped=False),
        events=[e for e in rows["group_events"] if e["generation_id"] == number],
        episode=None,
    )


def test_a_members_lane_has_the_colour_of_what_it_owns():
    data = drawn_group(sample.churny(NOW)).figure["data"]
    (lanes,), (owners,) = ([t for t in data if t["type"] == "bar" and t["width"] == height] for height in (0.3, 0.84))
    of_owner = {
        tip[0].split("<br>")[1]: c for tip, c in zip(owners["customdata"], owners["marker"]["color"], strict=True)
    }
    seen = set()
    for tip, colour in zip(lanes["customdata"], lanes["marker"]["color"], strict=True):
        member = tip[0].split("<b>")[1].split("</b>")[0]
        (label,) = [name for name in of_owner if member.startswith(name.replace("·", "-"))]
        assert colour == of_owner[label]
        seen.add(label)
    assert seen == set(of_owner)


def fleet_figure(rows):
    width = -(-WINDOW.width // BINS)
    cells = [
        {"cluster": g["cluster"], "group_id": g["group_id"], "bin": (g["joined_at"] - WINDOW.start) // width, "rebalances": 1, "lost": None}
        for g in rows["generations"]
    ]  # fmt: skip
    return heatmap(
        rows["groups"], cells, WINDOW, dict.fromkeys({g["cluster"] for g in rows["groups"]}, NOW), by_loss=True
    )


def segments(figure):
    return sum(len(t["x"]) for t in figure["data"] if t["type"] == "bar")


def sent(figure):
    return json.dumps(figure, cls=PlotlyJSONEncoder)


@pytest.mark.parametrize("draw", [
    lambda rows: drawn_group(rows).figure, lambda rows: waterfall(rebalance_of(rows, 2)), fleet_figure,
])  # fmt: skip
def test_no_markup_of_a_foreign_name_reaches_a_figure(draw):
    text = json.dumps(json.loads(sent(draw(sample.hostile(NOW, [HOSTILE])))), ensure_ascii=False)
    tags = set(re.findall(r"<[^>]*>", text))
    assert {"<b>", "</b>", "<br>"} >= {t for t in tags if t != "<extra></extra>"} - {"<extra>", "</extra>"}
    assert "$" not in text


def test_a_figure_of_twelve_partitions_has_few_traces_and_little_json():
    figure = drawn_group(sample.churny(NOW)).figure
    assert len(figure["data"]) <= 12
    assert len(sent(figure)) <= 150_000


def test_a_group_of_thousands_of_partitions_stays_within_the_budget_and_says_what_is_left_out():
    rows = sample.churny(NOW)
    big = sample.History("big", partitions=3000)
    t, members = NOW - 3_000_000, [big.member(f"c-{i}") for i in range(200)]
    for i in range(6):
        big.rebalance(t + i * 400_000, members[: 195 + i], "member_joined", wait=5000)
    rows = big.end(NOW, first_seen=t)
    drawn = drawn_group(rows)
    assert drawn.resources < 3000
    assert drawn.lanes < 200
    assert segments(drawn.figure) <= 2_600
    assert len(sent(drawn.figure)) <= 500_000
    assert len(sent(waterfall(rebalance_of(rows, 3)))) <= 500_000


def test_a_heatmap_cell_is_blank_where_nothing_was_observed():
    figure = fleet_figure(sample.merge({}, sample.static(NOW), sample.unknown(NOW)))
    seen, not_known = figure["data"][0]["z"]
    assert (None, 0) == (seen[0], seen[-1])
    assert 1 == max(v for v in seen if v is not None)
    assert {None} == set(not_known)


@pytest.mark.parametrize(("rebalances", "expected"), [(0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (8, 4), (900, 4)])
def test_a_cell_takes_the_shade_of_the_level_it_reaches(rebalances, expected):
    assert expected == level(rebalances)


@pytest.mark.parametrize(
    ("rebalances", "lost", "expected"),
    [(0, 0.0, 0), (1, None, 1), (1, 0.0, 1), (1, 0.9, 1), (2, 1, 2), (2, 99, 3), (1, 1e6, 4)],
)
def test_a_cell_takes_the_shade_of_its_loss_and_no_rebalance_looks_quiet(rebalances, lost, expected):
    assert expected == lost_level(rebalances, lost)


def test_a_bounded_edge_fades_over_its_whole_span_and_a_stated_one_is_sharp():
    found = pieces(Segment(earliest=0, start=100, end=200, latest=300, kind="stopped", evidence="bounded"))
    assert (0, 300) == (found[0][0], found[-1][1])
    assert [*FADE, 1.0, *reversed(FADE)] == [o for _, _, o in found]
    assert all(a[1] == b[0] for a, b in pairwise(found))
    assert [(5, 9, 1.0)] == pieces(Segment(earliest=5, start=5, end=9, latest=9, kind="x", evidence="observed"))


def test_every_partition_that_stopped_is_a_row_of_the_waterfall():
    figure = waterfall(rebalance_of(sample.churny(NOW), 5))
    labels = figure["layout"]["yaxis"]["ticktext"]
    assert [f"orders-{i}" for i in range(12)] == [label for label in labels if label.startswith("orders")]
    assert ("prepare", "assign", "stable") == tuple(x for x in labels if x in ("prepare", "assign", "stable"))


def test_a_rebalance_is_reported_in_one_sentence():
    printed = sentences.rebalance(rebalance_of(sample.churny(NOW), 5))
    assert re.fullmatch(
        r"billing-3·\w{4} is gone \(session expired\); everyone waited 23\.8 s for billing-1·\w{4}; it took 24 s; "
        r"12 of 12 partitions stopped; ≈ 559 \(90 %: 558\N{EN DASH}560\) partition-seconds lost\.",
        printed,
    )


def test_what_is_only_inferred_is_called_probable():
    printed = sentences.rebalance(rebalance_of(sample.guessed(NOW), 3))
    assert printed.startswith("probably a member left; it took 40 ms\N{EN DASH}15 s; 6 of 6 partitions stopped")


def test_an_emptied_group_loses_nothing():
    printed = sentences.rebalance(rebalance_of(sample.nightly(NOW), 2))
    assert printed.endswith("the last member left, so no loss is counted.")


def test_every_trigger_can_be_named():
    assert set(sentences.Trigger) == set(sentences.TRIGGERS)


def test_what_a_static_member_cost_later_is_not_laid_on_the_rebalance_before():
    rows = sample.static(NOW)
    g = rows["generations"][0]
    back = sample.churny(NOW)["stalls"][0] | {
        "generation_id": 1, "stopped_by_offset": g["source_offset"] + 5, "cause": "static_restart", "name": "prices",
        "stopped_ms_min": 2000, "stopped_ms": 2000, "stopped_ms_max": 2000,
    }  # fmt: skip
    rows["stalls"].append(back)
    found = rebalance_of(rows, 1)
    assert ([], [back]) == (found.stopped, found.restarted)
    printed = sentences.rebalance(found)
    assert "no partition-seconds lost; later, static members that came back: 2.0 partition-seconds lost." in printed
    assert not [label for label in waterfall(found)["layout"]["yaxis"]["ticktext"] if label.startswith("prices")]
