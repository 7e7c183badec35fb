"""From the fleet to a document of an incident in two clicks; it reads in both themes, and prints on white."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page

from testing import sample
from tests.ui.conftest import SIZE, Watched

PHONE = (390, 844)
PAINTED = """() => [...document.querySelectorAll('body, body *')]
    .map(e => getComputedStyle(e).backgroundColor).filter(c => c !== 'rgba(0, 0, 0, 0)')"""
INK = "() => [getComputedStyle(document.body).color, getComputedStyle(document.querySelector('svg')).fill]"
WIDER = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


def opened(page: Page, selector: str, watched: Watched) -> Page:
    """The document that the link opens, in a window of its own."""
    with page.context.expect_page() as made:
        page.locator(selector).first.click()
    document = made.value
    document.wait_for_selector("h1")
    document.on("console", lambda m: m.type in ("error", "warning") and watched.wrong.append(m.text))
    return document


def test_two_clicks_lead_from_the_fleet_to_the_document(watched) -> None:
    page = watched.open("/?from=now-6h", ".grid a:text-is('billing-worker')")
    page.locator(".grid a:text-is('billing-worker')").first.click()
    page.wait_for_selector("h1:text-is('billing-worker')")
    document = opened(page, "a:text-is('Document of the costliest')", watched)
    assert document.inner_text("h1").startswith("billing-worker: rebalance to generation ")
    for heading in ("Verdict", "What happened", "Members", "Cost", "What to change", "Timeline", "Pages"):
        assert 1 == document.locator(f"h2:text-is('{heading}')").count()
    document.close()


@pytest.mark.parametrize(
    "path",
    [f"/rebalance?cluster={sample.CLUSTER}&group=billing-worker&generation=5", "/storms?storm=together"],
)
def test_the_pages_of_a_rebalance_and_of_a_storm_open_theirs(watched, path) -> None:
    page = watched.open(path, "a:text-is('Incident document')")
    document = opened(page, "a:text-is('Incident document')", watched)
    title = page.inner_text("h1").removeprefix("Storm: ").lower()
    assert title in document.inner_text("h1").lower()
    assert document.locator("svg rect").count() > 1
    document.close()


@pytest.mark.parametrize("size", [SIZE, PHONE])
def test_the_document_reads_in_both_themes_and_prints_on_white(watched, size) -> None:
    page = watched.page
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.goto(f"{watched.address}/incident?cluster={sample.CLUSTER}&group=billing-worker&generation=5")
    inks = set()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, media="screen")
        assert 0 == page.evaluate(WIDER)
        inks.add(tuple(page.evaluate(INK)))
    assert 2 == len(inks)
    page.emulate_media(color_scheme="dark", media="print")
    assert {"rgb(255, 255, 255)"} == set(page.evaluate(PAINTED))
    assert ["rgb(0, 0, 0)"] * 2 == page.evaluate(INK)
    printed = page.pdf(prefer_css_page_size=True)
    assert 1 < len(re.findall(rb"/Type\s*/Page\b", printed)) < 12
