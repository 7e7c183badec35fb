"""Whether a deploy was worse than the one before: two clicks from the fleet, on a recorded cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from testing.serving import serving
from testing.warehouses.recorded import rows_of, store


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("deploys")
    store(folder, rows_of({"edge": "storms"}))
    with serving(folder) as address:
        yield address


def test_was_this_deploy_worse_than_the_one_before(window, recorded) -> None:
    with window.page(recorded) as watched:
        page = watched.open("/")
        page.locator("#places a:text-is('Deploys')").click()
        page.locator("#page a:text-is('with the one before')").first.click()
        page.wait_for_selector("h1:text-is('Deploy of cart-cleaner')")
        page.wait_for_selector(".panel .main-svg")
        text = page.inner_text("#page")
        for part in ("less than the deploy of", "The 90 % intervals", "Stable after", "Did not come back",
                     "Others waited longest for", "all came back"):  # fmt: skip
            assert part in text, part
        page.keyboard.press("g")
        page.keyboard.press("d")
        page.wait_for_selector("h1:text-is('Deploys')")
