"""The figures are plain dictionaries; Plotly's own classes check here that each property exists and has a valid value."""

from __future__ import annotations

import json

import plotly.graph_objects as go
import pytest
from plotly.utils import PlotlyJSONEncoder

from dashboards.app import page
from dashboards.figures.flags import flagged
from dashboards.figures.lag import lag_figure
from dashboards.figures.progress import progress_figure
from dashboards.lake.lake import LocalLake
from dashboards.queries.lag import Behind
from dashboards.queries.store import Store
from dashboards.urlstate import Window
from tests.ui.pages.test_hostile import parts

GROUP = "cluster=prod-eu&group=billing-worker"
HOUR = Window(0, 3_600_000, is_live=False)
PAGES = {
    ("/", "?from=all"): 1,
    ("/group", f"?{GROUP}&from=now-1h"): 1,
    ("/rebalance", f"?{GROUP}&generation=5"): 1,
    ("/causes", "?from=all"): 1,
    ("/storms", "?from=now-1h"): 1,
    ("/storms", "?storm=together"): 1,
    ("/storms", "?storm=alone"): 1,
}
"""The least number of figures of a page, by its path and search."""


def assert_valid(figure: dict) -> None:
    """Assert that Plotly's classes accept the figure and leave nothing out."""
    plain = json.loads(json.dumps(figure, cls=PlotlyJSONEncoder))
    found = json.loads(go.Figure(plain).to_json())
    assert len(plain["data"]) == len(found["data"])
    for ours, theirs in zip(plain["data"], found["data"], strict=True):
        assert ours.keys() == theirs.keys()


@pytest.mark.parametrize(("path", "search"), PAGES)
def test_the_figures_of_a_page_are_valid(warehouse, now, path, search) -> None:
    made, _, _ = page(Store(LocalLake(warehouse)), path, search, None, now)
    sent = json.loads(json.dumps(made, cls=PlotlyJSONEncoder))
    figures = [part["props"]["figure"] for part in parts(sent) if part["type"] == "Graph"]
    assert len(figures) >= PAGES[path, search]
    for figure in figures:
        assert_valid(figure)


def test_the_figure_of_a_lag_is_valid() -> None:
    found = [Behind(at=at, least=at // 1_000, most=at // 500, known=2, of=3) for at in (0, 15_000, 600_000)]
    assert_valid(lag_figure(found, HOUR))


def test_the_figure_of_reassignments_is_valid_with_marks() -> None:
    move = {"cluster": "prod-eu", "topic": "orders", "partition": 0, "started_at": 0}
    figure, moves = progress_figure([move | {"observed_at": at, "progress": at / 2_000} for at in (0, 1_000)], HOUR)
    mark = {"kind": "deploy", "text": "v2", "marked_at": 500, "marked_by": None, "group_ids": [], "cluster": "prod-eu"}
    flagged(figure, [mark], first=HOUR.start, last=HOUR.end)
    assert (1, 1) == (moves, len(figure["layout"]["shapes"]))
    assert_valid(figure)


@pytest.mark.parametrize("figure", [
    {"data": [{"type": "bar", "colour": "red"}], "layout": {}},
    {"data": [{"type": "scatter", "mode": "dots"}], "layout": {}},
    {"data": [], "layout": {"barmode": "onto"}},
])  # fmt: skip
def test_an_invalid_one_is_refused(figure) -> None:
    with pytest.raises(ValueError, match=r"[Ii]nvalid"):
        assert_valid(figure)
