"""What a figure shows can be read with the keyboard."""

from __future__ import annotations

import re

import pytest

from tests.ui.browser.test_browser import PLOT
from tests.ui.browser.test_interactions import GROUP


def test_marks_of_a_figure_are_read_with_the_arrows_and_opened_with_enter(watched):
    page = watched.open(GROUP + "&from=all", PLOT)
    page.focus("#page figure")
    told = page.locator("#page figure .read").first
    assert "arrow keys" in told.inner_text()
    page.keyboard.press("Home")
    texts = [told.inner_text()]
    for _ in range(6):
        page.keyboard.press("ArrowRight")
        texts.append(told.inner_text())
    total = int(texts[0].split(" of ")[1].split(":")[0])
    assert [f"{at} of {total}" for at in range(1, 8)] == [text.split(":")[0] for text in texts]
    assert any("billing-1" in text for text in texts), texts
    assert not any("<" in text for text in texts)
    assert page.locator("#page .crosshair").first.is_visible()
    page.keyboard.press("ArrowLeft")
    assert texts[-2] == told.inner_text()
    page.keyboard.press("End")
    assert told.inner_text().startswith(f"{total} of {total}:")
    page.keyboard.press("Home")
    while "joined" not in told.inner_text() or "moved" not in told.inner_text():
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/rebalance"))


@pytest.mark.parametrize(
    "path", ["/", "/causes", "/storms", "/rebalance?cluster=prod-eu&group=billing-worker&generation=5"]
)
def test_each_figure_says_something_to_the_arrows(watched, path):
    page = watched.open(path + ("&" if "?" in path else "?") + "from=all", PLOT)
    page.focus("#page figure")
    page.keyboard.press("ArrowRight")
    assert re.match("1 of [0-9]+: .", page.locator("#page figure .read").first.inner_text())
