"""A warehouse written by deltalake, the application over it on a free loopback port, and the machine's own browser."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from dashboards.lake.lake import LocalLake, WarmLake
from testing import sample
from testing.serving import BROWSER, serving
from tests.ui.lake.databricks import Databricks, DuckEngine

FRESH_SECONDS = 10 * 60
"""Age at which the sample is made again. Tests request the last hour, and the suite takes longer than that."""


class Site:
    """A warehouse with the everyday sample up to `now` (epoch ms). The pages over it start when they are first
    requested.
    """

    def __init__(self, warehouse: Path, started: ExitStack) -> None:
        self.now, self.warehouse, self._started = int(time.time() * 1000), warehouse, started
        sample.write(warehouse, sample.everyday(self.now))

    @cached_property
    def address(self) -> str:
        return self._started.enter_context(serving(self.warehouse))


@pytest.fixture(scope="session")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Site]]:
    """A function that returns a site of the last `FRESH_SECONDS`. A new site ends the pages of the one before."""
    made: list[Site] = []

    def fresh() -> Site:
        if not made or time.time() - made[-1].now / 1000 > FRESH_SECONDS:
            started.close()
            made.append(Site(tmp_path_factory.mktemp("warehouse"), started))
        return made[-1]

    with ExitStack() as started:
        yield fresh


@pytest.fixture(scope="module")
def site(sites: Callable[[], Site]) -> Site:
    return sites()


@pytest.fixture(scope="module")
def now(site: Site) -> int:
    return site.now


@pytest.fixture(scope="module")
def warehouse(site: Site) -> Path:
    return site.warehouse


@pytest.fixture(scope="session", params=["folder", "databricks"])
def lake(request: pytest.FixtureRequest) -> Callable[..., WarmLake]:
    """Return a function that opens a lake over a warehouse's folder. Both kinds of lake keep the same promises."""
    return LocalLake if request.param == "folder" else of_databricks


def of_databricks(folder: str | Path, *, fresh_seconds: float = 1.0) -> WarmLake:
    return Databricks(DuckEngine(Path(folder))).lake(fresh_seconds)


@pytest.fixture(scope="module")
def address(site: Site) -> str:
    return site.address


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        path = next(filter(None, map(which, ("chromium", "chromium-browser", "google-chrome"))), None)
        assert path, "The browser tests need chromium on the PATH."
        browser = playwright.chromium.launch(executable_path=path, args=[*BROWSER, "--process-per-site"])
        yield browser
        browser.close()


STILL = """() => {
    const graph = document.querySelector('.js-plotly-plot'), before = window.__top;
    window.__top = graph?._fullLayout && graph.getBoundingClientRect().top;
    return !graph || (window.__top !== undefined && window.__top === before);
}"""
"""Whether the first figure is drawn and stays where it is: what is above it may come later, while a test points at it."""

PATIENCE_MS = 120_000
"""A busy machine takes many times as long for a page as a quick one."""


class Watched:
    """A page, and all of its events that must not happen."""

    def __init__(self, page: Page, address: str) -> None:
        self.page, self.address, self.wrong = page, address, []
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda m: m.type in ("error", "warning") and self.wrong.append(f"{m.type}: {m.text}"))
        page.on("pageerror", lambda e: self.wrong.append(f"uncaught: {e}"))
        page.on("dialog", lambda d: (self.wrong.append(f"dialog: {d.message}"), d.dismiss()))
        page.on("request", self._asked)

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((f"{self.address}/", "data:", "blob:")):
            self.wrong.append(f"request: {request.url}")

    def open(self, path: str, ready: str = "#page .head") -> Page:
        self.page.goto(self.address + path)
        self.page.wait_for_selector(ready)
        if "main-svg" in ready:
            self.page.wait_for_function(STILL)
        return self.page


SIZE = (1440, 900)


class Window:
    """A browser window for many tests: each has separate pages, and finds no data that another test has stored.

    The scripts of a page take 1.6 s of processor time to compile. Chromium does that once in a process, and all pages
    of a window are in one, which ends with the last of them: so one page stays open, without scripts.
    """

    def __init__(self, context: BrowserContext) -> None:
        self._context, self._kept = context, context.new_page()
        self._storage = context.new_cdp_session(self._kept)

    def allow_copying(self, address: str) -> None:
        self._context.grant_permissions(["clipboard-read", "clipboard-write"], origin=address)

    @contextmanager
    def page(self, address: str, size: tuple[int, int] = SIZE) -> Iterator[Watched]:
        """A fresh page of this width and height; fails if anything went wrong on it."""
        if self._kept.url == "about:blank":
            self._kept.goto(f"{address}/healthz")
        page = self._context.new_page()
        page.set_viewport_size({"width": size[0], "height": size[1]})
        found = Watched(page, address)
        try:
            yield found
        finally:
            page.close()
            self._context.clear_cookies()
            self._storage.send("Storage.clearDataForOrigin", {"origin": address, "storageTypes": "all"})
        assert [] == found.wrong


@pytest.fixture(scope="session")
def window(browser: Browser) -> Iterator[Window]:
    with browser.new_context() as context:
        yield Window(context)


@pytest.fixture(scope="session")
def berlin(browser: Browser) -> Iterator[Window]:
    with browser.new_context(timezone_id="Europe/Berlin") as context:
        yield Window(context)


@pytest.fixture
def watched(window: Window, address: str) -> Iterator[Watched]:
    """A fresh page; fails if anything went wrong on it."""
    with window.page(address) as found:
        yield found


@pytest.fixture
def reader(berlin: Window, address: str) -> Iterator[Watched]:
    """A page of a reader in Berlin who may use the clipboard; fails if anything went wrong on the page."""
    berlin.allow_copying(address)
    with berlin.page(address) as found:
        yield found
