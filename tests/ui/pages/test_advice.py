"""The page that says what to change, what it would save, and when to leave a group alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import write_deltalake

from dashboards.pages import advice
from dashboards.pages.advice import render
from dashboards.queries.gold_store import GoldStore
from dashboards.queries.store import Store
from dashboards.urlstate import parse
from pipelines.arrow_types import stored
from pipelines.gold.advice.latencies import BrokerSettings
from pipelines.gold.rows import AnalysisConfig, gold_rows
from schemas.gold import ADVICE
from testing import sample
from testing.serving import serving
from tests.gold.histories import START, EagerGroup
from tests.ui.browser.test_browser import CLEAN, FOREIGN
from tests.ui.reading import words

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "$x^2$",
    "\u202egnp.exe\x00",
    "x" * 600,
]


def rows(group_id: str, group: EagerGroup) -> list[dict]:
    known = {"broker": BrokerSettings(), "config": AnalysisConfig(), "since_ms": 0, "until_ms": START + 1}
    return gold_rows("kafka", group_id, group.silver(), **known)["advice"]


@pytest.fixture(scope="module")
def advised(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("advised")
    slow = EagerGroup(members=10, partitions=50, notice_ms=2_800, callback_ms=20_000)
    fast = EagerGroup()
    for index in range(10):
        slow.restarts(index, 100_000 + index * 100_000, 60_000)
        fast.restarts(index % 3, 100_000 + index * 100_000, 5_000)
    strange = [row for text in HOSTILE for row in rows(text, fast)]
    found = [*rows("a-fast-group", fast), *rows("<b>slow</b>", slow), *strange]
    write_deltalake(f"{folder}/advice", stored(found, ADVICE))
    sample.write(folder, sample.static(START))
    return folder


@pytest.fixture(scope="module")
def store(advised, lake) -> Store:
    return Store(lake(advised))


def test_the_group_that_would_save_most_comes_first_with_what_to_paste(store) -> None:
    text = words(render(store, parse("/advice", ""), 0))
    assert text.index("<b>slow</b>") < text.index("a-fast-group")
    for printed in (
        "1 group of 7 should change",
        "static membership",
        "group.instance.id=",
        "fieldPath: metadata.name",
        "unknown: ",
    ):
        assert printed in text, printed


def test_a_group_that_is_well_as_it_is_is_advised_to_stay_so(store) -> None:
    text = words(render(store, parse("/advice", "?q=fast"), 0))
    assert "slow" not in text
    assert "leave it as it is" in text


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_shows_the_advice_and_copies_exactly_the_block(window, advised, scheme) -> None:
    with serving(advised) as address, window.page(address) as watched:
        window.allow_copying(address)
        watched.page.emulate_media(color_scheme=scheme)
        watched.page.add_init_script("window.alert = () => { window.__fired = (window.__fired || 0) + 1; }")
        page = watched.open("/", "#page .head")
        page.click("header a:text-is('Advice')")
        page.wait_for_selector("h1:text-is('Advice')")
        page.wait_for_selector(".panel >> nth=6")
        assert CLEAN == page.evaluate(FOREIGN)
        assert page.inner_text(".panel h2 >> nth=0").startswith("<b>slow</b>: ")
        page.click(f".panel >> nth=0 >> summary:text-is('{advice.DETAILS}')")
        page.click(".panel >> nth=0 >> summary:text-is('How: static membership')")
        block = page.locator(".panel >> nth=0 >> .paste:visible").first
        block.get_by_role("button").click()
        block.get_by_text("Copied").wait_for()
        assert block.locator("pre").text_content() == page.evaluate("navigator.clipboard.readText()")
        assert "group.instance.id" in page.evaluate("navigator.clipboard.readText()")
        page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
        block.get_by_text("Copy", exact=True).click()
        block.get_by_text("Copied").wait_for()
        assert block.locator("pre").text_content() == page.evaluate("getSelection().toString()")
        ink = page.evaluate("getComputedStyle(document.querySelector('pre')).color")
        assert ink == page.evaluate("getComputedStyle(document.body).color")
        page.click("a:text-is('a-fast-group')")
        page.wait_for_selector(".crumbs")


def test_no_analysis_yet_says_so(tmp_path, lake) -> None:
    assert "No analysis has run yet" in words(render(Store(lake(tmp_path)), parse("/advice", ""), 0))


def test_every_group_is_on_one_of_the_pages_and_the_sum_counts_all(store, monkeypatch) -> None:
    monkeypatch.setattr(
        "dashboards.queries.store.Store.advice", lambda self, q, skip: GoldStore.advice(self, q, skip, 3)
    )
    described = [words(render(store, parse("/advice", f"?skip={skip}"), 0)) for skip in (0, 3, 6)]
    assert all("1 group of 7 should change" in text for text in described)
    assert [3, 3, 1] == [text.count("What other settings would do") for text in described]
    assert words(render(store, parse("/advice", "?skip=70"), 0)) == described[0]


def test_a_saving_that_rounds_to_nothing_has_no_sign_and_no_share() -> None:
    assert ["0", "0", "+0.1 (+1 %)", "\N{MINUS SIGN}7.0 (\N{MINUS SIGN}20 %)"] == [
        advice._saving(*each) for each in ((-0.02, -0.0001), (0.04, 0.0), (0.06, 0.01), (-7.0, -0.2))
    ]


def test_savings_are_shown_with_their_interval_and_none_without(store) -> None:
    text = words(render(store, parse("/advice", "?q=slow"), 0))
    assert "Saving, modelled" in text
    assert ", as measured; " in text
    assert " when replayed with the present settings" in text
    shown = {"action": "static_membership", "saving_measured": None, "lost_predicted": 5.0, "saving_ratio": 0.5}
    both = {"saving": 5.0, "saving_low": -1.0, "saving_high": 7.5}
    assert ("+5.0 (+50 %)", "\N{MINUS SIGN}1.0 to +7.5") == advice._savings(shown | both)
    assert (advice.ABSENT, advice.ABSENT) == advice._savings(shown | both | {"action": "none"})
    assert ("+5.0 (+50 %)", advice.ABSENT) == advice._savings(shown | {"saving": 5.0})  # by an earlier Regroup
    assert ("+3.0, measured", advice.ABSENT) == advice._savings(shown | both | {"saving_measured": 3.0})


def test_only_what_is_recommended_is_suggested() -> None:
    row = {"status": "suggested", "explanation": "because"}
    assert ["suggested", advice.ABSENT] == [advice._status(row | {"is_recommended": each}) for each in (True, False)]
    assert "confirmed: because" == advice._status(
        {"status": "confirmed", "explanation": "because", "is_recommended": False}
    )


def test_without_a_rebalance_nothing_is_called_lost_in_one() -> None:
    assert "no rebalance" == advice._lost_now({"rebalances_now": 0, "lost_now": 0.0})
    assert "9.0 resource-seconds lost in 1 rebalance" == advice._lost_now({"rebalances_now": 1, "lost_now": 9.0})
