"""No control of any page leads to another host, and no figure can be sent to one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dashboards.urlstate import PATHS
from dashboards.views.theme import CONFIG
from tests.ui.browser.test_browser import PLOT
from tests.ui.conftest import Watched

GROUP = "cluster=prod-eu&group=billing-worker"
PAGES = {
    "fleet": "/?from=now-6h",
    "group": f"/group?{GROUP}",
    "rebalance": f"/rebalance?{GROUP}&generation=5",
    "causes": "/causes?from=now-6h",
    "storms": "/storms?from=now-6h",
    "storm": "/storms?storm=together",
    "deploys": "/deploys?from=now-6h",
    "reassignments": "/reassignments?from=now-6h",
    "advice": "/advice",
    "health": "/health",
}
ALONE = ("/login", "/runbooks", "/healthz")
DRAWN = ("fleet", "causes", "group", "rebalance", "storms", "storm", "advice")

WATCH = """() => {
    window.__left = [];
    const foreign = url => url && new URL(url, location.href).origin !== location.origin
        && !/^(blob|data):/.test(String(url));
    window.open = url => { window.__left.push('open ' + url); return null; };
    addEventListener('submit', e => foreign(e.target.action) && window.__left.push('form ' + e.target.action), true);
    navigator.sendBeacon = url => { window.__left.push('beacon ' + url); return false; };
    const posted = window.postMessage;
    window.postMessage = (...told) => {
        if (told.some(each => /^https?:/.test(each) && foreign(each))) window.__left.push('post ' + told);
        return posted.apply(window, told);
    };
}"""
LEADING = """() => {
    const out = [];
    for (const e of document.querySelectorAll('*')) {
        for (const name of ['href', 'xlink:href', 'action', 'formaction', 'src', 'srcset', 'data', 'ping', 'poster']) {
            const value = e.getAttribute(name);
            if (value && !value.startsWith('#') && new URL(value, location.href).origin !== location.origin
                && !/^(data|blob):/.test(value)) out.push(e.tagName + ' ' + name + '=' + value);
        }
        if (e.tagName === 'META' && /refresh/i.test(e.httpEquiv)) out.push('META refresh');
    }
    return out;
}"""
CONTROLS = "button, summary, [role=button], input, select, .modebar-btn, [data-key]"


@pytest.fixture(params=PAGES)
def opened(request, watched: Watched):
    watched.page.add_init_script(f"({WATCH})()")
    page = watched.open(PAGES[request.param])
    if request.param in DRAWN:
        page.wait_for_selector(PLOT)
        page.wait_for_selector(".modebar-btn", state="attached")
    return request.param, page


def test_every_page_of_the_application_is_gone_over() -> None:
    assert set(PATHS) == {path.partition("?")[0] for path in PAGES.values()}


def test_no_link_form_or_source_names_another_host_folded_out_or_not(opened) -> None:
    _, page = opened
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    assert [] == page.evaluate(LEADING)


def test_no_control_leads_to_another_host(opened) -> None:
    name, page = opened
    path, beside = page.url, page.context.pages
    pressed = 0
    for at in range(page.locator(CONTROLS).count()):
        control = page.locator(CONTROLS).nth(at)
        if control.count() == 0:
            continue
        control.evaluate("e => e.dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true}))")
        pressed += 1
        assert [] == page.evaluate("window.__left || []"), (name, at)
        assert [] == page.evaluate(LEADING), (name, at)
        if page.url != path:
            assert page.url.startswith(path[: path.index("/", 8) + 1])
            page.goto(path)
            page.wait_for_selector("#page .head")
    assert beside == page.context.pages
    assert pressed > 5


@pytest.mark.parametrize("path", ALONE)
def test_pages_without_the_application_lead_nowhere_either(watched, path) -> None:
    page = watched.page
    page.goto(watched.address + path)
    assert [] == page.evaluate(LEADING)


def test_no_figure_offers_to_send_itself_anywhere(opened) -> None:
    name, page = opened
    titles = page.locator(".modebar-btn").evaluate_all("all => all.map(e => e.dataset.title || e.ariaLabel || '')")
    assert (name in DRAWN) is bool(titles)
    assert not [each for each in titles if re.search(r"share|cloud|studio|plotly|edit", each, re.IGNORECASE)]
    drawn = page.evaluate(
        "[...document.querySelectorAll('.js-plotly-plot')].map(e => [e._context.plotlyServerURL, e._context.showSendToCloud,"
        " e._context.showEditInChartStudio || false, e._context.showLink || false, e._context.displaylogo])"
    )
    assert [["", False, False, False, False]] * len(drawn) == drawn


def test_a_figure_that_is_drawn_without_any_option_has_nowhere_to_go_either(watched) -> None:
    page = watched.open(PAGES["fleet"], PLOT)
    context = page.evaluate(
        "(async () => { const e = document.createElement('div'); document.body.append(e);"
        " await Plotly.newPlot(e, [{y: [1]}]); return [e._context.plotlyServerURL, e._context.showSendToCloud,"
        " (window.PLOTLYENV || {}).BASE_URL || '']; })()"
    )
    assert ["", False, ""] == context


def test_figures_are_drawn_at_one_place_with_these_options() -> None:
    folder = Path(__file__).parents[3] / "dashboards"
    drawing = [file.name for file in folder.rglob("*.py") if "dcc.Graph(" in file.read_text()]
    assert ["components.py"] == drawing
    assert ("", False) == (CONFIG["plotlyServerURL"], CONFIG["showSendToCloud"])
