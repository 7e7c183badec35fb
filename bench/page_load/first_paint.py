"""Time of a browser from an address to a page with its figure, and the size of the scripts that it loads."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from shutil import which

FIGURE = "() => document.querySelector('#page .main-svg') && performance.now()"


@dataclass(frozen=True, slots=True)
class Painted:
    """The result: `scripts` is the gzipped size of all scripts; `took` has the ms of each opening by page."""

    scripts: int
    took: dict[str, list[float]]


def paint(host: str, addresses: Mapping[str, str], times: int) -> Painted | None:
    """Open each address in a browser with an empty cache; return None if there is no browser."""
    path = next(filter(None, map(which, ("chromium", "chromium-browser", "google-chrome"))), None)
    try:
        from playwright.sync_api import Response, sync_playwright  # noqa: PLC0415 - only the tests' environment has it
    except ImportError:
        return None
    if path is None:
        return None
    scripts: dict[str, int] = {}
    took: dict[str, list[float]] = {}
    loaded: list[Response] = []

    def keep(response: Response) -> None:
        loaded.append(response)

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        for name, address in addresses.items():
            for round_no in range(times + 1):
                context = browser.new_context(viewport={"width": 1440, "height": 900})
                page = context.new_page()
                if round_no == 0:
                    loaded.clear()
                    page.on("response", keep)
                page.goto(host + address)
                found = page.wait_for_function(FIGURE, polling="raf").json_value()
                if round_no == 0:
                    # A body can be read only while the page is open, so not in the handler, which may run at its end.
                    page.wait_for_load_state("networkidle")
                    scripts |= {
                        response.url: len(gzip.compress(response.body(), 6))
                        for response in loaded
                        if response.request.resource_type == "script"
                    }
                else:
                    took.setdefault(name, []).append(found)
                context.close()
        browser.close()
    return Painted(sum(scripts.values()), took)
