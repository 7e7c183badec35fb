"""The fleet's table asks for its rows a block at a time; order and filters are the server's, whatever is asked."""

from __future__ import annotations

import pytest

from dashboards.pages.fleet import BLOCK_ROWS, HEATMAP_ROWS, block, render
from dashboards.queries.store import ORDERS, Store
from dashboards.urlstate import parse
from testing import sample
from testing.serving import serving

MANY = 130


@pytest.fixture(scope="module")
def crowded(tmp_path_factory, now):
    """A warehouse of `MANY` groups in which nothing happened, and the groups of the sample."""
    folder = tmp_path_factory.mktemp("crowded")
    quiet = sample.nightly(now)["groups"][0]
    rows = sample.everyday(now)
    rows["groups"] += [quiet | {"group_id": f"quiet-{n:03d}", "state": "Stable"} for n in range(MANY)]
    sample.write(folder, rows)
    return folder


@pytest.fixture
def store(crowded, lake):
    return Store(lake(crowded))


def asked(store, now, search="?from=now-1h", **request):
    return block(store, parse("/", search), request, now)


def test_scrolling_reaches_every_group_once(store, now):
    known = asked(store, now)["rowCount"]
    names = [
        row["group"] for first in range(0, known, BLOCK_ROWS) for row in asked(store, now, startRow=first)["rowData"]
    ]
    assert known == MANY + len(sample.everyday(now)["groups"]) == len(names) == len(set(names))
    assert ["payments-loader", "billing-worker"] == names[:2]


@pytest.mark.parametrize("column", ORDERS)
def test_every_column_sorts_all_groups_and_not_only_those_loaded(store, now, column):
    def values(way):
        rows = []
        for first in (0, BLOCK_ROWS):
            sort = [{"colId": column, "sort": way}]
            rows += asked(store, now, startRow=first, sortModel=sort)["rowData"]
        return [row[{"state": "kafka_state"}.get(column, column)] for row in rows]

    for way, is_reversed in (("asc", False), ("desc", True)):
        described = [value for value in values(way) if value is not None]
        assert sorted(described, reverse=is_reversed) == described


def test_filters_are_the_servers(store, now):
    def names(**model):
        return {row["group"] for row in asked(store, now, filterModel=model)["rowData"]}

    assert {"quiet-007"} == names(group={"filterType": "text", "type": "contains", "filter": "ET-007"})
    lost = names(lost={"filterType": "number", "type": "greaterThanOrEqual", "filter": 1})
    assert "billing-worker" in lost
    assert not any(name.startswith("quiet") for name in lost)
    assert set() == names(rebalances={"filterType": "number", "type": "greaterThanOrEqual", "filter": 10_000})
    assert set() == names(lost={"filterType": "number", "type": "greaterThanOrEqual", "filter": 20_000_000})


@pytest.mark.parametrize(
    "request_",
    [
        None, [], "x", {"startRow": -1}, {"startRow": "1"}, {"startRow": 10**12}, {"sortModel": [{"colId": "1; DROP TABLE groups"}]},
        {"sortModel": {}}, {"sortModel": ["lost"]}, {"filterModel": []}, {"filterModel": {"group": 5}},
        {"filterModel": {"group": {"filter": {"a": 1}}}}, {"filterModel": {"lost": {"filter": "NaN"}}},
        {"filterModel": {"lost": {"filter": float("inf")}}}, {"filterModel": {"lost": {"filter": True}}},
        {"sortModel": [{"colId": ["lost"]}]}, {"sortModel": [{"colId": "lost", "sort": {}}]}, {"startRow": True},
    ],
)  # fmt: skip
def test_what_is_no_request_of_a_grid_is_answered_all_the_same(store, now, request_):
    found = block(store, parse("/", "?from=now-1h"), request_, now)
    assert len(found["rowData"]) > 1
    assert found["rowCount"] == asked(store, now)["rowCount"]


def test_the_heatmap_leads_on_to_the_groups_after_the_worst(store, now):
    def links(search):
        text = str(render(store, parse("/", search), now))
        return "Next 30" in text, "Previous 30" in text

    assert (True, False) == links("?from=now-1h")
    assert (True, True) == links(f"?from=now-1h&skip={HEATMAP_ROWS}")
    assert (False, True) == links(f"?from=now-1h&skip={HEATMAP_ROWS * 4}")
    assert (True, False) == links("?from=now-1h&skip=2000000000")


def test_a_browser_sorts_and_follows_without_loading_everything(crowded, window):
    with serving(crowded) as address, window.page(address) as watched:
        page = watched.open("/?from=now-1h", "#page .ag-row [href]")
        first = page.locator(".ag-row[row-index='0'] a").inner_text()
        assert "payments-loader" == first
        page.locator(".ag-header-cell[col-id='group'] .ag-header-cell-label").click()
        page.wait_for_selector(".ag-row[row-index='0'] a:text-is('billing-worker')")
        assert page.locator(".ag-row a").count() < 60
        page.locator(".ag-row[row-index='0'] a").click()
        page.wait_for_url("**/group?*billing-worker*")
