"""Each action of a reader changes the address, so that a link shows the same page and Back undoes the action."""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import cycle
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import TimeoutError  # noqa: A004 - Playwright's own name

from dashboards.text import instant
from testing.waiting import wait_until
from tests.ui.browser.test_browser import PLOT, query

GROUP = "/group?cluster=prod-eu&group=billing-worker"
HOUR = 3_600_000


def until_shown(page, **expected):
    """Wait until the page shows what the address says."""
    page.wait_for_function(
        "e => Object.entries(e).every(([k, v]) => document.querySelector('.moves')?.dataset[k] === String(v))",
        arg=expected,
    )


def drag(page, first, last):
    """Drag over the first figure, from one share of its width to another."""
    box = page.locator(".nsewdrag").first.bounding_box()
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * first, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * (first + last) / 2, y, steps=3)
    page.mouse.move(box["x"] + box["width"] * last, y, steps=3)
    page.mouse.up()


def until_drawn(page):
    """Wait until the first figure shows the page's range and stays where it is."""
    page.wait_for_function(
        """() => {
            const graph = document.querySelector('.js-plotly-plot'), range = document.querySelector('.moves')?.dataset;
            const shown = graph?._fullLayout?.xaxis?._rl;
            if (!shown || Math.abs(shown[0] - range.start) > 1 || Math.abs(shown[1] - range.end) > 1) return false;
            const top = graph.getBoundingClientRect().top, before = window.__top;
            window.__top = top;
            return top === before;
        }"""
    )


def double_click(page, leads_to):
    """Double-click the first figure and wait for `leads_to`; a failure names the clicks that the page received."""
    page.evaluate(
        """() => {
            window.__clicks = [];
            document.addEventListener('mousedown', e => window.__clicks.push([
                e.detail, e.target.className.baseVal ?? e.target.className, !!e.target.closest('.js-plotly-plot'),
                JSON.stringify(history.state)]), true);
        }"""
    )
    box = page.locator(".nsewdrag").first.bounding_box()
    page.mouse.dblclick(box["x"] + 5, box["y"] + 8)
    try:
        page.wait_for_selector(leads_to)
    except TimeoutError as error:
        raise AssertionError(f"{page.url} after {page.evaluate('window.__clicks')} at {box}") from error


def zoomed(watched):
    """A group's page over an hour, after a drag over its first figure."""
    page = watched.open(GROUP + "&from=now-1h", PLOT)
    drag(page, 0.2, 0.6)
    page.wait_for_url(re.compile(r"from=\d+"))
    until_shown(page, start=query(page)["from"])
    until_drawn(page)
    return page


def span(page):
    described = page.locator(".moves")
    return int(described.get_attribute("data-start")), int(described.get_attribute("data-end"))


def test_a_typed_range_is_the_address_and_is_read_on_the_zones_clocks(reader, now):
    page = reader.open(GROUP + "&from=now-6h&tz=Asia/Kolkata", PLOT)
    page.keyboard.press("r")
    assert "Time range" == page.inner_text("dialog h2")
    page.fill("dialog [name=from]", "2026-07-01T15:30:05")
    page.fill("dialog [name=to]", "2026-07-01T15:30:30")
    page.click("dialog >> text=Show")
    until_shown(page, start=1_782_900_005_000, end=1_782_900_030_000)
    assert "2026-07-01 15:30:05.000\N{EN DASH}15:30:30.000 Asia/Kolkata" == page.inner_text(".when")
    assert "2026-07-01T15:30:05" == query(page)["from"]
    page.go_back()
    page.wait_for_selector(".ranges .on:text-is('6 h')")


def test_a_range_that_ends_before_it_begins_cannot_be_sent(reader):
    page = reader.open(GROUP, PLOT)
    page.click(".when")
    page.fill("dialog [name=from]", "2026-07-01T15:30:00")
    page.fill("dialog [name=to]", "2026-07-01T15:29:00")
    page.click("dialog >> text=Show")
    assert page.evaluate("document.querySelector('dialog :invalid') !== null")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    assert "when" == page.evaluate("document.activeElement.className")


def test_the_zone_of_all_times_is_one_click_and_stays_in_the_address(reader):
    page = reader.open("/?from=now-6h", PLOT)
    page.wait_for_selector("[data-key=u]:text-is('UTC')")
    page.click("[data-key=u]")
    page.wait_for_selector(".when >> text=Europe/Berlin")
    assert {"from": "now-6h", "tz": "Europe/Berlin"} == query(page)
    assert "Europe/Berlin" == page.inner_text("[data-key=u]")
    assert "Last change (Europe/Berlin)" in page.locator(".ag-header-cell-text").all_inner_texts()
    page.click(".grid a[href*='Berlin']:text-is('billing-worker')")
    page.wait_for_selector("h1:text-is('billing-worker')")
    assert "Europe/Berlin" == query(page)["tz"]
    page.wait_for_selector(".ag-header-cell-text:text-is('Joined (Europe/Berlin)')")
    page.keyboard.press("g")
    page.keyboard.press("h")
    page.wait_for_selector("h1:text-is('Health of Regroup')")
    assert "Europe/Berlin" == query(page)["tz"]
    page.keyboard.press("u")
    page.wait_for_selector("[data-key=u]:text-is('UTC')")
    assert "tz" not in query(page)


def test_a_drag_over_a_figure_is_the_range_and_back_undoes_it(watched):
    page = watched.open(GROUP + "&from=now-1h", PLOT)
    start, end = span(page)
    drag(page, 0.25, 0.5)
    page.wait_for_url(re.compile(r"from=\d+&to=\d+"))
    asked = query(page)
    until_shown(page, start=asked["from"], end=asked["to"])
    assert abs(int(asked["from"]) - (start + HOUR // 4)) < 60_000
    assert abs(int(asked["to"]) - (end - HOUR // 2)) < 60_000
    shown = page.evaluate("document.querySelector('.js-plotly-plot')._fullLayout.xaxis._rl")
    assert [int(asked["from"]), int(asked["to"])] == [round(x) for x in shown]
    page.go_back()
    page.wait_for_selector(".ranges .on:text-is('1 h')")
    assert "now-1h" == query(page)["from"]


def test_a_double_click_leads_back_to_what_was_shown_before_and_then_to_everything(watched):
    page = zoomed(watched)
    double_click(page, ".ranges .on:text-is('1 h')")
    until_drawn(page)
    double_click(page, ".ranges .on:text-is('all data')")


def test_a_double_click_on_a_rebalance_undoes_the_zoom_and_does_not_open_it(watched):
    page = zoomed(watched)
    bar = page.locator(".barlayer .point path").first.bounding_box()
    middle = bar["x"] + bar["width"] / 2, bar["y"] + bar["height"] / 2
    page.mouse.move(*middle)
    page.wait_for_selector(".hovertext")
    for click_count in (1, 2):
        page.mouse.down(click_count=click_count)
        page.mouse.up(click_count=click_count)
        # The time between two clicks of a person.
        page.wait_for_timeout(100)
    page.wait_for_selector(".ranges .on:text-is('1 h')")
    # Longer than the time that a click waits for a second one.
    page.wait_for_timeout(1_000)
    assert "/group" == urlsplit(page.url).path
    assert "now-1h" == query(page)["from"]


def test_a_drag_over_a_rebalance_shows_a_part_of_it_and_links_keep_the_range(watched, now):
    page = watched.open("/rebalance?cluster=prod-eu&group=billing-worker&generation=5&from=now-6h", PLOT)
    whole = span(page)
    drag(page, 0.3, 0.6)
    page.wait_for_url(re.compile(r"zoom=\d+-\d+"))
    first, last = query(page)["zoom"].split("-")
    until_shown(page, start=first, end=last)
    assert whole[0] < int(first) < int(last) < whole[1]
    assert "from=now-6h" in page.locator(".crumbs a").last.get_attribute("href")
    assert "zoom" not in page.locator(".crumbs a").last.get_attribute("href")
    for _ in range(3):
        page.keyboard.press("s")
    until_shown(page, start=whole[0], end=whole[1])
    assert "zoom" not in query(page)


def test_the_slider_moves_the_instant_and_its_line_in_the_figures(watched, now):
    page = watched.open(f"{GROUP}&from=now-1h&at={now - HOUR // 2}", PLOT)
    title = page.locator("section:has(#instant) h2")
    before = title.inner_text()
    page.focus("#instant")
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "before => document.querySelector('section:has(#instant) h2').textContent !== before", arg=before
    )
    shown = query(page)
    assert now - HOUR // 2 < int(shown["at"]) < int(shown["to"])
    assert f"At {instant(int(shown['at']))} UTC" == title.inner_text()
    assert "instant" == page.evaluate("document.activeElement.id")
    assert page.locator(".crosshair").first.is_visible()
    assert shown["at"] == page.locator(".crosshair").first.get_attribute("data-at")
    page.go_back()
    page.wait_for_function(
        "before => document.querySelector('section:has(#instant) h2').textContent === before", arg=before
    )


def test_the_pointers_instant_is_reported_on_every_figure_of_the_page(watched):
    page = watched.open(GROUP + "&from=now-1h", PLOT)
    box = page.locator(".nsewdrag").first.bounding_box()
    start, end = span(page)
    lines = page.locator(".crosshair:not([hidden])")

    def is_on_every_figure() -> bool:
        """Figures that are drawn later get the line when the pointer moves again."""
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 9)
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 10)
        return page.locator(".panel figure").count() == lines.count()

    wait_until(is_on_every_figure)
    at = int(lines.first.get_attribute("data-at"))
    assert abs(at - (start + end) // 2) < 10_000
    assert f"{instant(at)[:19]} UTC" == lines.first.inner_text()
    page.mouse.move(5, 5)
    wait_until(lambda: 0 == lines.count())


def test_keys_zoom_and_pan_and_hold_still_while_somebody_types(watched):
    page = watched.open(GROUP + "&from=now-1h", PLOT)
    page.mouse.move(3, 3)
    page.keyboard.press("w")
    page.wait_for_url(re.compile(r"from=\d+"))
    asked = query(page)
    assert HOUR // 2 == int(asked["to"]) - int(asked["from"])
    until_shown(page, start=asked["from"], end=asked["to"])
    page.keyboard.press("d")
    page.wait_for_function("f => !location.search.includes(f)", arg=asked["from"])
    assert HOUR // 8 == int(query(page)["from"]) - int(asked["from"])
    here = page.url
    page.keyboard.press("/")
    page.keyboard.type("wasd gh ?t")
    assert here == page.url
    assert 0 == page.locator("dialog").count()
    assert "wasd gh ?t" == page.input_value("input[type=search]")


def test_every_key_has_a_control_that_can_be_seen(watched):
    seen = set()
    page = watched.open("/?from=now-6h", PLOT)
    keys = {each["key"] for each in page.evaluate("window.regroup.keys")}
    for path in ("/?from=now-6h", GROUP):
        page = watched.open(path, PLOT)
        for key in keys:
            control = page.locator(f'[data-key="{key}"]')
            if control.count() and control.first.is_visible():
                seen.add(key)
    assert keys == seen


def test_the_help_lists_every_key_and_gives_the_focus_back(watched):
    page = watched.open("/", PLOT)
    page.focus(".ranges a >> nth=1")
    page.keyboard.press("?")
    keys = page.evaluate("window.regroup.keys.map(each => each.does)")
    described = page.inner_text("dialog")
    assert all(does in described for does in keys)
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    assert "6 h" != page.evaluate("document.activeElement.textContent")
    assert "1 h" == page.evaluate("document.activeElement.textContent")


@pytest.mark.parametrize(
    ("keys", "heading"),
    [("gs", "Storms"), ("ga", "Advice"), ("gr", "Reassignments"), ("gh", "Health of Regroup"), ("ghgf", "Fleet")],
)
def test_two_keys_lead_to_a_page(watched, keys, heading):
    page = watched.open("/", PLOT)

    def is_there() -> bool:
        """If this process pauses between two keys, they are not one command."""
        for key in keys:
            page.keyboard.press(key)
        with suppress(TimeoutError):
            return page.wait_for_selector(f"h1:text-is('{heading}')", timeout=10_000) is not None
        return False

    wait_until(is_there)


def test_rebalances_are_walked_through_by_keys(watched):
    page = watched.open(GROUP + "&from=now-6h", PLOT)
    page.wait_for_selector(".ag-row")
    page.keyboard.press(",")
    page.wait_for_selector(".ag-cell:focus a")
    newest = int(page.inner_text(".ag-cell:focus a"))
    page.keyboard.press(",")
    page.wait_for_selector(f".ag-cell:focus a:text-is('{newest - 1}')")
    page.keyboard.press("Enter")
    page.wait_for_selector(f"h1:text-is('Rebalance to generation {newest - 1}')")
    page.keyboard.press(".")
    page.wait_for_selector(f"h1:text-is('Rebalance to generation {newest}')")
    page.keyboard.press(",")
    page.wait_for_selector(f"h1:text-is('Rebalance to generation {newest - 1}')")


def test_focus_shows_what_was_pointed_at_with_some_time_around_it(watched):
    page = watched.open(GROUP + "&from=now-6h", PLOT)
    whole = span(page)
    box = page.locator(".nsewdrag").first.bounding_box()
    steps = cycle(range(1, 40))

    def points_at_something() -> bool:
        page.mouse.move(box["x"] + box["width"] * (1 - next(steps) / 400), box["y"] + box["height"] * 0.75)
        return page.locator(".hovertext").count() > 0

    wait_until(points_at_something)
    described = page.evaluate("[regroup.focus.start, regroup.focus.end]")
    page.keyboard.press("f")
    page.wait_for_url(re.compile(r"from=\d+"))
    first, last = int(query(page)["from"]), int(query(page)["to"])
    assert whole[0] < first < described[0] <= described[1] < last
    assert last - first < (whole[1] - whole[0]) / 4


def test_a_pinned_member_stands_first_and_the_address_says_so(watched):
    page = watched.open(GROUP + "&from=now-6h", PLOT)
    labels = "document.querySelector('.js-plotly-plot')._fullLayout.yaxis3.ticktext"
    before = page.evaluate(labels)
    page.click("summary:text-is('Show as table')")
    page.locator("a:text-is('Pin')").last.click()
    page.wait_for_url(re.compile(r"lanes="))
    page.wait_for_selector("a:text-is('Unpin')")
    page.wait_for_function(f"told => {labels}[0] !== told", arg=before[0])
    after = page.evaluate(labels)
    assert sorted(before) == sorted(after)
    page.click(".ranges a:text-is('24 h')")
    page.wait_for_url(re.compile(r"now-24h.*lanes="))
    page.locator("a:text-is('Unpin')").first.click()
    page.wait_for_url(lambda url: "lanes" not in url)


SHOWN = """style => {
    const graphs = [...document.querySelectorAll('.js-plotly-plot')];
    const of = graphs.flatMap(g => (g.data || []).filter(t => t.meta?.style === style));
    return of.length ? of.every(t => t.visible !== false) : null;
}"""


def until(page, style, is_shown):
    page.wait_for_function(f"([style, wanted]) => ({SHOWN})(style) === wanted", arg=[style, is_shown])


def test_a_click_on_the_legend_hides_a_style_until_the_next_one(reader):
    page = reader.open(GROUP + "&from=all", PLOT)
    until(page, "stopped", is_shown=True)
    button = page.locator(".legend button[data-style=stopped]")
    button.click()
    until(page, "stopped", is_shown=False)
    assert "false" == button.get_attribute("aria-pressed")
    assert page.evaluate(SHOWN, "working")
    # Another range draws all traces anew.
    page.click(".ranges >> text='6 h'")
    page.wait_for_url(re.compile("from=now-6h"))
    page.wait_for_selector(".ranges .on:text-is('6 h')")
    until(page, "stopped", is_shown=False)
    button.press("Enter")
    until(page, "stopped", is_shown=True)
    assert "true" == button.get_attribute("aria-pressed")
