"""New data appears by itself and disturbs no reader, and missing data is reported."""

from __future__ import annotations

import time

import pytest

from testing import sample
from testing.serving import serving
from tests.ui.browser.test_browser import PLOT
from tests.ui.conftest import Watched

# Playwright releases held requests when the route is removed.
ASKED = "**/_dash-update-component*"
GROUP = "/group?cluster=prod-eu&group=pricing-static&from=all"


@pytest.fixture
def live(browser, tmp_path, now):
    """A page over a warehouse that grows, and a function that adds rows."""
    sample.write(tmp_path, sample.static(now))
    with serving(tmp_path) as address:
        context = browser.new_context(viewport={"width": 1440, "height": 500})
        watched = Watched(context.new_page(), address)
        yield watched, lambda: sample.write(tmp_path, sample.nightly(now))
        assert [] == watched.wrong
        context.close()


def test_a_paused_page_waits_and_says_since_when(live):
    watched, grow = live
    watched.page.clock.install()
    page = watched.open("/?from=all", PLOT)
    # The row appears first, its content later.
    page.wait_for_selector("[col-id=group] a")
    page.keyboard.press("p")
    assert page.inner_text("#paused").startswith("paused at ")
    assert page.is_hidden("#freshness")
    assert "Resume" == page.inner_text("[data-key=p]")
    # A tick may have been on its way.
    page.clock.run_for(1_000)
    page.wait_for_load_state("networkidle")
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    grow()
    page.clock.run_for(12_000)
    page.wait_for_load_state("networkidle")
    assert [] == asked
    assert 1 == page.locator("[col-id=group] a").count()
    page.click("[data-key=p]")
    page.wait_for_function("() => document.querySelectorAll('[col-id=group] a').length === 2")
    assert "" == page.inner_text("#paused")
    assert page.is_visible("#freshness")


def test_new_data_leaves_the_reader_where_he_is(live):
    watched, grow = live
    page = watched.open("/?from=all", PLOT)
    page.wait_for_selector(".ag-row")
    page.click("summary:text-is('Show as table')")
    page.click(".ag-header-cell-text:text-is('Group')")
    page.click(".ag-header-cell-text:text-is('Group')")
    page.focus(".grid a")
    page.evaluate("window.scrollTo(0, 180)")
    before = page.evaluate("window.scrollY")
    assert before > 100
    grow()
    page.wait_for_function("() => document.querySelectorAll('[col-id=group] a').length === 2")
    assert page.evaluate("document.querySelector('details').open")
    assert "pricing-static" == page.evaluate("document.activeElement.textContent")
    assert abs(before - page.evaluate("window.scrollY")) < 80
    names = page.locator("[col-id=group] a").all_inner_texts()
    order = page.locator(".ag-row [col-id=group]").evaluate_all(
        "cells => cells.sort((a, b) => a.closest('.ag-row').rowIndex - b.closest('.ag-row').rowIndex)"
        ".map(cell => [Number(cell.closest('.ag-row').getAttribute('row-index')), cell.textContent])"
    )
    assert sorted(names, reverse=True) == [name for _, name in sorted(order)]


def test_new_data_keeps_tables_open_and_links_in_focus_on_every_page(live):
    watched, grow = live
    page = watched.open(GROUP, PLOT)
    page.click("summary:text-is('Show as table')")
    page.focus(".crumbs a")
    with page.expect_response(lambda response: len(response.body()) > 5_000):
        grow()
    page.wait_for_timeout(500)
    assert page.evaluate("[...document.querySelectorAll('details')].some(each => each.open)")
    assert "Fleet" == page.evaluate("document.activeElement.textContent")


@pytest.fixture
def unanswered(browser, address):
    """A page with its own clock, which gets no more responses."""
    context = browser.new_context()
    page = context.new_page()
    page.clock.install()
    page.goto(address + "/")
    page.wait_for_selector("#page .head")
    page.route(ASKED, lambda _: None)
    yield page
    context.close()


def test_an_answer_that_does_not_come_is_shown(unanswered):
    assert unanswered.is_hidden("#silent")
    unanswered.clock.run_for(30_000)
    unanswered.wait_for_selector("#silent:text-matches('No response for [0-9]+ s')")
    assert unanswered.is_hidden("#freshness")
    unanswered.unroute(ASKED)


def test_a_slow_page_says_that_it_loads_and_offers_a_way_out(unanswered):
    unanswered.click(".place >> text=Health")
    unanswered.wait_for_selector("#freshness[data-dash-is-loading]", state="attached")
    unanswered.clock.run_for(1_600)
    assert "Loading the page…" == unanswered.inner_text("#loading")
    unanswered.clock.run_for(5_000)
    assert ["Try again", "Back"] == unanswered.locator("#loading button").all_inner_texts()
    unanswered.unroute(ASKED)
    unanswered.wait_for_selector("h1:text-is('Health of Regroup')")
    unanswered.wait_for_function("() => document.getElementById('loading').textContent === ''")


@pytest.mark.parametrize(
    "path",
    [
        "/?from=all",
        "/group?cluster=prod-eu&group=billing-worker&from=all",
        "/rebalance?cluster=prod-eu&group=billing-worker&generation=3",
    ],
)
def test_a_page_that_was_brought_up_to_date_is_the_page_that_opens_anew(window, tmp_path, now, path):
    rows = sample.churny(now)
    early = {
        table: [row for row in found if table == "groups" or (row.get("generation_id") or 0) <= 3]
        for table, found in rows.items()
    }
    sample.write(tmp_path, early)
    with serving(tmp_path) as address, window.page(address) as watched:
        page = watched.open(path, PLOT)
        page.evaluate("() => { document.querySelector('.panel').kept = true; }")
        sample.write(tmp_path, rows, mode="overwrite")
        page.wait_for_timeout(1_500)  # the pages look for new versions of the tables once a second
        with window.page(address) as fresh:
            expected = shape(fresh.open(path, PLOT))
        deadline = time.monotonic() + 120
        while shape(page) != expected and time.monotonic() < deadline:
            page.wait_for_timeout(500)
        assert expected == shape(page)
        assert page.evaluate("() => document.querySelector('.panel').kept")


def shape(page):
    """Return all words of the page, except those about how long ago something was, and all shapes of its figures."""
    page.wait_for_timeout(500)
    return page.evaluate(
        "() => [window.regroup.tables(), [...document.querySelectorAll('#page h1, #page h2, #page .summary, #page .sentence, #page td, #page dd,"
        " #page .steps, #page .when')].map(each => each.textContent),"
        " [...document.querySelectorAll('.js-plotly-plot')].map(each => each.data.map(trace => (trace.x || []).length)),"
        " [...document.querySelectorAll('.js-plotly-plot')].map(each => each._fullLayout.xaxis.range)]"
    )
