"""A real browser walks the pages. `watched` fails on any console message, script, dialog or request to another host."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest

from dashboards.urlstate import State
from testing import sample
from testing.serving import serving
from tests.ui.conftest import Watched

PLOT = ".panel .main-svg"

HOSTILE = [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<svg onload=alert(1)>", "<svg/onload=alert`1`>",
    '"><script>alert(1)</script>', "'><img src=x onerror=alert(1)>", "</title><script>alert(1)</script>",
    "</script><script>alert(1)</script>", "<a href='javascript:alert(1)'>x</a>", '<a href="https://evil.example">x</a>',
    "<iframe src=javascript:alert(1)>", "<body onload=alert(1)>", "<details open ontoggle=alert(1)>", "<b>bold</b>",
    "<i>i</i><br>x", "<sup>1</sup>", '<span style="color:red">x</span>', "<!--", "<![CDATA[x]]>", "&lt;script&gt;",
    "&#60;img src=x onerror=alert(1)&#62;", "$x^2$", "$\\href{javascript:alert(1)}{click}$", "$$\\frac{1}{2}$$",
    "$\\unicode{x3c}$", "{{7*7}}", "${7*7}", "#{7*7}", "%{customdata[1]}", "%{x}", "javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>", "a/b/c", "../../etc/passwd", "a%2Fb", "%2F%2e%2e", "a?b=c&d=e", "a#b",
    "a&group=other", "a b  c", " leading and trailing ", "a\tb\nc", "[x](javascript:alert(1))", "**bold** `code`",
    "'; DROP TABLE groups; --", '" OR ""="', "группа-Δ-組-🦀", "\u202egnp.exe", "a\u0000b\u001b[31m", "=1+1",
    "x" * 600 + "<img src=x onerror=alert(1)>",
]  # fmt: skip

FOREIGN = """() => {
    const svg = new Set(['a', 'image', 'script', 'foreignObject', 'iframe']);
    const alien = [...document.querySelectorAll('#page *')].filter(e =>
        ['SCRIPT', 'IFRAME', 'IMG', 'OBJECT', 'EMBED', 'BASE', 'META', 'LINK', 'DETAILS'].includes(e.tagName)
            && !(e.tagName === 'DETAILS' && e.querySelector(':scope > summary'))
        || (e.namespaceURI.endsWith('svg') && svg.has(e.tagName)
            && !e.matches('.heatmaplayer image[*|href^="data:image/png;base64,"]'))
        || [...e.attributes].some(a => /^on/i.test(a.name)));
    const links = [...document.querySelectorAll('a')].map(a => a.href)
        .filter(h => h && new URL(h).origin !== location.origin);
    const maths = document.querySelectorAll('.MathJax, mjx-container, math').length;
    return { alien: alien.map(e => e.outerHTML.slice(0, 200)), links, maths, fired: window.__fired || 0 };
}"""
CLEAN = {"alien": [], "links": [], "maths": 0, "fired": 0}


def query(page):
    return {k: v[0] for k, v in parse_qs(urlsplit(page.url).query, keep_blank_values=True).items()}


def test_clicks_lead_from_the_fleet_to_a_group_to_a_rebalance_and_back(watched):
    page = watched.open("/?from=now-6h", PLOT)
    assert "Fleet" == page.inner_text("h1")
    page.click(".grid a:text-is('billing-worker')")
    page.wait_for_selector("h1:text-is('billing-worker')")
    assert {"cluster": "prod-eu", "group": "billing-worker", "from": "now-6h"} == query(page)
    page.wait_for_selector(PLOT)
    assert "8 rebalances" in page.inner_text(".panel .summary >> nth=0")
    page.click(".grid a:text-is('5')")
    page.wait_for_selector("h1:text-is('Rebalance to generation 5')")
    assert "12 of 12 partitions stopped" in page.inner_text(".sentence")
    assert "__consumer_offsets-7@1005" in page.inner_text(".facts >> nth=1"), "after the verdict"
    page.go_back()
    page.wait_for_selector("h1:text-is('billing-worker')")
    page.go_back()
    page.wait_for_selector("h1:text-is('Fleet')")
    assert {"from": "now-6h"} == query(page)


def test_a_click_into_a_figure_opens_what_it_shows(watched):
    page = watched.open("/?q=billing", PLOT)
    page.wait_for_selector(".heatmaplayer image")
    box = page.locator(".nsewdrag").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + box["height"] / 2)
    page.wait_for_selector(".hovertext")
    page.mouse.click(box["x"] + box["width"] * 0.6, box["y"] + box["height"] / 2)
    page.wait_for_selector("h1:text-is('billing-worker')")


CLICKS = [
    None,
    {},
    {"points": []},
    {"points": [{"customdata": ["x", "//evil"]}]},
    {"points": [{"customdata": ["x", ""]}]},
    {"points": [{"customdata": ["javascript:alert(1)"]}]},
    "x",
    {"points": [{"y": 0}]},
    {"points": [{"y": 9}]},
]


def test_a_click_leads_to_our_pages_only(watched):
    page = watched.open("/", PLOT)

    def target(click, links):
        return page.evaluate("([click, links]) => window.regroup.target(click, links)", [click, links])

    assert [None] * len(CLICKS) == [target(click, ["//evil"]) for click in CLICKS]
    assert "/group?group=a" == target({"points": [{"customdata": ["tip", "/group?group=a"]}]}, [])
    assert "/group?group=b" == target({"points": [{"y": 1, "customdata": "tip"}]}, ["/group?group=a", "/group?group=b"])


def test_the_range_is_in_the_address_and_back_undoes_it(watched):
    page = watched.open("/group?cluster=prod-eu&group=billing-worker", PLOT)
    assert "1 h" == page.inner_text(".ranges .on")
    page.click(".ranges >> text=all data")
    page.wait_for_selector(".ranges .on:text-is('all data')")
    assert "all" == query(page)["from"]
    page.go_back()
    page.wait_for_selector(".ranges .on:text-is('1 h')")


def test_a_deep_link_with_a_range_shows_that_range_alone(watched, now):
    start = now - 52 * 60_000 + 3 * 60_000
    page = watched.open(f"/group?cluster=prod-eu&group=billing-worker&from={start}&to={start + 20 * 60_000}", PLOT)
    page.wait_for_selector(".ag-row")
    assert ["4", "3"] == page.locator(".grid a").all_inner_texts()


def test_a_search_stays_in_the_address_and_can_be_cleared(watched):
    page = watched.open("/?from=now-6h", PLOT)
    page.keyboard.press("/")
    page.keyboard.type("no such group")
    page.keyboard.press("Enter")
    page.wait_for_selector(".empty.filtered")
    assert {"q": "no such group", "from": "now-6h"} == query(page)
    page.click("text=Clear the filter")
    page.wait_for_selector(PLOT)


def test_the_theme_follows_the_system_can_be_chosen_and_is_remembered(browser, address):
    seen = {}
    for scheme in ("light", "dark"):
        context = browser.new_context(color_scheme=scheme)
        watched = Watched(context.new_page(), address)
        for path in ("/", "/rebalance?cluster=prod-eu&group=billing-worker&generation=5"):
            page = watched.open(path, PLOT)
            seen[scheme] = page.evaluate("getComputedStyle(document.body).backgroundColor")
            tick = page.locator(".xtick text").first.evaluate("e => getComputedStyle(e).fill")
            assert tick == page.evaluate("getComputedStyle(document.querySelector('.summary')).color")
        other = "dark" if scheme == "light" else "light"
        while "Theme: " + other != page.inner_text("[data-key=t]"):
            page.click("[data-key=t]")
        chosen = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert seen[scheme] != chosen
        watched.open("/", PLOT)
        assert chosen == page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert [] == watched.wrong
        context.close()
    assert seen["light"] != seen["dark"]


def test_a_narrow_screen_scrolls_down_and_not_sideways(window, address):
    with window.page(address, (390, 844)) as watched:
        for path in ("/", "/group?cluster=prod-eu&group=billing-worker",
                     "/rebalance?cluster=prod-eu&group=billing-worker&generation=5"):  # fmt: skip
            page = watched.open(path, PLOT)
            assert 390 >= page.evaluate("document.documentElement.scrollWidth")


def test_a_page_fills_by_itself_when_tables_arrive(window, tmp_path, now):
    with serving(tmp_path / "later") as address, window.page(address) as watched:
        page = watched.open("/", ".empty.missing")
        sample.write(tmp_path / "later", sample.static(now))
        page.wait_for_selector(".ag-row >> text=pricing-static")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory, now):
    folder = tmp_path_factory.mktemp("hostile")
    sample.write(folder, sample.hostile(now, HOSTILE))
    with serving(folder) as address:
        yield address


def test_hostile_ids_stay_text_on_every_page(window, hostile):
    with window.page(hostile, (1200, 900)) as watched:
        watched.page.add_init_script("window.alert = () => { window.__fired = (window.__fired || 0) + 1; }")
        page = watched.open("/?from=all", PLOT)
        page.wait_for_selector(".ag-row")
        assert CLEAN == page.evaluate(FOREIGN)
        state = State(page="fleet", start="all")
        for text in HOSTILE:
            visit(page, state.href("group", cluster=sample.CLUSTER, group=text), "/group?")
            assert CLEAN == page.evaluate(FOREIGN), text
            assert "2 rebalances" in page.inner_text(".panel .summary >> nth=0"), text
            page.focus("#page figure")
            for _ in range(10):
                page.keyboard.press("ArrowRight")
            assert page.inner_text("#page figure .read").startswith("10 of "), text
            assert CLEAN == page.evaluate(FOREIGN), text
            visit(
                page,
                state.href("rebalance", cluster=sample.CLUSTER, group=text, incarnation=0, generation=2),
                "/rebalance?",
            )
            assert CLEAN == page.evaluate(FOREIGN), text
            assert "2 of 2 partitions stopped" in page.inner_text(".sentence"), text


def visit(page, href, path):
    """Go to another address as a link inside the page does, then wait for the figure of that address."""
    page.evaluate("document.getElementById('page').firstElementChild?.setAttribute('data-old', '1')")
    page.evaluate(
        "h => { history.pushState({}, '', h); dispatchEvent(new CustomEvent('_dashprivate_pushstate')) }", href
    )
    heading = "What happened" if path == "/group?" else "Anatomy"
    page.wait_for_function(
        "([h, n]) => document.querySelector('h2')?.textContent === h && document.querySelector('.panel .main-svg')"
        " && document.querySelectorAll('.crumbs').length === 1"
        " && [...document.querySelectorAll('.ranges a')].every(a => a.href.includes(n) || n === '')",
        arg=[heading, "" if path == "/rebalance?" else re.search(r"g(?:roup|id)=[^&]*", href)[0]],
    )
