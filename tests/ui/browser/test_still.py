"""The static parts of a page (assets/static.js) and its scripts: they are small, and untrusted text never becomes
markup.
"""

from __future__ import annotations

from pathlib import Path

import plotly.offline
import pytest
from playwright.sync_api import Route

import dashboards
from tests.ui.browser.test_browser import PLOT

REBALANCE = "/rebalance?cluster=prod-eu&group=billing-worker&generation=5"
PLOTLY = Path(dashboards.__file__).parent / "assets" / "plotly" / "plotly-cartesian.min.js"
SENT = """
    performance.getEntriesByType("resource").filter(e => e.name.includes("plotly") && e.transferSize > 300).length
"""
FILLED = """([old, next]) => {
    const place = document.createElement("div");
    regroup.fill(place, null, old);
    const first = place.firstChild;
    regroup.fill(place, old, next);
    return [place.innerHTML, first === place.firstChild];
}"""


def node(kind: str, children=None, **props):
    return {"type": kind, "namespace": "dash_html_components", "props": {"children": children, **props}}


@pytest.fixture
def fleet(reader):
    return reader.open("/?from=all", PLOT)


def test_plotlys_part_that_is_served_is_of_the_version_that_makes_the_figures() -> None:
    assert f"v{plotly.offline.get_plotlyjs_version()}" in PLOTLY.read_text(encoding="utf-8")[:200]


def test_no_other_plotly_is_loaded(reader) -> None:
    asked = set()
    reader.page.on("request", lambda request: asked.add(request.url))
    page = reader.open("/?from=all", PLOT)
    assert 1 == sum("plotly" in url and url.endswith(".js") for url in asked)
    # A preloaded script that is already in the window's cache may be requested twice. It is sent at most once.
    assert page.evaluate(SENT) <= 1


def test_a_page_that_is_ready_before_plotly_waits_for_it(reader) -> None:
    held = []
    page = reader.page

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/*plotly*.js", hold)
    page.goto(f"{reader.address}/?from=all", wait_until="commit")
    page.wait_for_selector("#page .panel")
    # By the second frame, a figure has requested Plotly, or waits for it.
    page.evaluate("() => new Promise(shown => requestAnimationFrame(() => requestAnimationFrame(shown)))")
    for route in held:
        route.continue_()
    page.wait_for_selector(PLOT)
    assert {"plotly-cartesian.min.js"} == {route.request.url.rsplit("/", 1)[-1] for route in held}


def test_the_code_of_figures_is_loaded_once_and_before_there_is_a_page(reader) -> None:
    page = reader.open("/?from=all", PLOT)
    asked = page.evaluate(
        "() => performance.getEntriesByType('resource').map(e => e.name.split('/').pop().split('?')[0])"
    )
    assert 1 == asked.count("async-graph.js")
    assert asked.index("async-graph.js") < asked.index("_dash-layout")


def test_what_is_larger_is_sent_small(reader) -> None:
    sizes = {}
    reader.page.on("response", lambda got: sizes.update({got.url: got.headers.get("content-encoding")}))
    reader.open("/?from=all", PLOT)
    large = [how for url, how in sizes.items() if "plotly" in url or "dash_ag_grid" in url or "update" in url]
    assert len(large) > 3
    assert None not in large


def test_a_table_is_no_hundred_components_of_react(reader) -> None:
    page = reader.open(REBALANCE, PLOT)
    inside = "element => Object.keys(element).some(name => name.startsWith('__react'))"
    cells = page.locator("#page table td")
    assert cells.count() > 20
    assert not any(cell.evaluate(inside) for cell in cells.all())


def test_a_link_of_a_still_part_is_followed_without_a_new_page_and_back_again(reader) -> None:
    page = reader.open(REBALANCE, PLOT)
    page.evaluate("window.before = true")
    link = page.locator("#page [data-static] a[href^='/group']").first
    href = link.get_attribute("href")
    link.click()
    page.wait_for_selector("h2:text-is('Generations')")
    assert page.url.endswith(href)
    assert page.evaluate("window.before")
    page.go_back()
    page.wait_for_selector("h2:text-is('Anatomy')")


def test_a_link_that_is_opened_beside_stays_the_browsers(reader) -> None:
    page = reader.open(REBALANCE, PLOT)
    here = page.url
    with page.context.expect_page() as beside:
        page.locator("#page [data-static] a[href^='/group']").first.click(modifiers=["Control"])
    beside.value.close()
    assert here == page.url


def test_only_what_is_new_is_built_anew(fleet) -> None:
    old = node("Ul", [node("Li", "one"), node("Li", "two", className="on")], title="a")
    new = node("Ul", [node("Li", "one"), node("Li", ["two", node("Strong", "!")]), node("Li", 3)], title="b")
    html, is_same = fleet.evaluate(FILLED, [old, new])
    assert '<ul title="b"><li>one</li><li>two<strong>!</strong></li><li>3</li></ul>' == html.replace(' class=""', "")
    assert is_same


@pytest.mark.parametrize(
    "props",
    [
        {"href": "javascript:alert(1)"},
        {"href": "//elsewhere.example/"},
        {"href": "/\\elsewhere.example/"},
        {"href": "https://elsewhere.example/"},
        {"onclick": "alert(1)"},
        {"onMouseOver": "alert(1)"},
    ],
)
def test_neither_scripts_nor_other_sites_get_into_a_still_part(fleet, props) -> None:
    link = {"type": "Link", "namespace": "dash_core_components", "props": {"children": "<b>x</b>", **props}}
    html, _ = fleet.evaluate(FILLED, [node("Li"), link])
    assert "<a>&lt;b&gt;x&lt;/b&gt;</a>" == html


def test_rows_that_were_sent_as_bare_cells_become_a_tables_elements(fleet) -> None:
    link = {"type": "Link", "namespace": "dash_core_components", "props": {"children": "b", "href": "/group"}}
    table = node("Table", [node("Thead"), node("Tbody", **{"data-rows": [["a", -7000], [link, None]]})])
    html = fleet.evaluate(
        """table => {
            const place = document.createElement("div");
            regroup.fill(place, null, regroup.unfolded(table));
            return place.innerHTML;
        }""",
        table,
    )
    rows = '<tr><td>a</td><td class="number" data-value="-7000">\N{MINUS SIGN}7,000</td></tr><tr><td><a href="/group">b</a></td><td></td></tr>'
    assert f"<table><thead></thead><tbody>{rows}</tbody></table>" == html.replace(' class=""', "")


def test_a_long_number_stays_in_its_tile(reader) -> None:
    page = reader.open("/health", ".tile .value")
    page.set_viewport_size({"width": 1280, "height": 900})
    wide = """value => {
        value.textContent = "5,000,000,000";
        return value.scrollWidth > value.clientWidth;
    }"""
    assert not any(value.evaluate(wide) for value in page.locator(".tile .value").all())


def test_parts_that_do_more_than_show_are_left_to_dash(fleet) -> None:
    count = "node => regroup.staticSize(node)"
    graph = {"type": "Graph", "namespace": "dash_core_components", "props": {}}
    assert 2 == fleet.evaluate(count, node("P", [node("Span", "a"), "b", None]))
    assert fleet.evaluate(count, node("P", [graph])) is None
    assert fleet.evaluate(count, node("P", "a", id="x")) is None
    assert fleet.evaluate(count, node("Script", "alert(1)")) is None
