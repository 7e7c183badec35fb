"""The week by cause: at most two clicks from the start page, on recorded captures, and one more to the groups."""

from __future__ import annotations

import pytest

from dashboards.lake.lake import LocalLake
from dashboards.queries.store import Store
from testing.serving import serving
from testing.warehouses import recorded


@pytest.fixture(scope="module")
def captures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("captures")
    recorded.write(folder)
    return folder


@pytest.fixture(scope="module")
def pages(captures):
    with serving(captures) as address:
        yield address


def test_the_week_by_cause_is_two_clicks_away(window, pages, captures) -> None:
    seen = Store(LocalLake(captures)).span()
    with window.page(pages) as watched:
        page = watched.open("/?from=all")
        page.click("nav >> text=Causes")
        page.wait_for_selector("h1:text-is('Causes')")
        page.click(".ranges >> text='all data'")
        page.wait_for_selector(".panel .main-svg")
        text = page.inner_text("#page")
        assert "By verdict and cause" in text
        assert "polls that came too late (poll timeout)" in text
        page.click("tbody a >> nth=0")
        page.wait_for_selector("h2:text-is('By group')")
        page.click("tbody a >> nth=0")
        page.wait_for_selector("#page h1:not(:text-is('Causes'))")
        assert "/group?" in page.url
    assert seen is not None


def test_the_last_calendar_week_is_two_clicks_away_too(watched) -> None:
    page = watched.open("/")
    page.keyboard.press("g")
    page.keyboard.press("c")
    page.wait_for_selector("h1:text-is('Causes')")
    page.click("text='This week'")
    page.wait_for_selector(".ranges .on:text-is('This week')")
    assert "One bar is a day" in page.inner_text(".summary >> nth=0")


def test_a_bar_leads_to_its_time(window, pages) -> None:
    with window.page(pages) as watched:
        page = watched.open("/causes?from=all", ".panel .main-svg")
        box = page.locator(".barlayer .point path").last.bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] - 2)
        page.wait_for_selector(".hovertext")
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] - 2)
        page.wait_for_url(lambda url: "from=all" not in url)
        page.wait_for_selector(".ranges a:text-is('all data'):not(.on)")
        assert "One bar is a second" in page.inner_text(".summary >> nth=0")
