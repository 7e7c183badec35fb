"""axe finds no serious fault on any page, light or dark, wide or narrow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from deltalake import write_deltalake

from pipelines.arrow_types import stored
from pipelines.gold.advice.latencies import BrokerSettings
from pipelines.gold.rows import AnalysisConfig, gold_rows
from schemas.gold import ADVICE, DIAGNOSES
from testing import sample
from testing.serving import serving
from tests.gold.histories import START, EagerGroup

GROUP = "cluster=prod-eu&group=billing-worker"
PAGES = {
    "fleet": "/?from=all",
    "group": f"/group?{GROUP}&from=all",
    "two instants": f"/group?{GROUP}&from=all&at={{now}}&against={{before}}",
    "rebalance": f"/rebalance?{GROUP}&incarnation=0&generation=5",
    "causes": "/causes?from=all",
    "causes by group": "/causes?from=all&by=group&verdict=broker",
    "storms": "/storms?from=all",
    "storm": "/storms?storm=together",
    "deploys": "/deploys?from=all",
    "advice": "/advice",
    "reassignments": "/reassignments?from=all",
    "health": "/health",
    "nothing there": "/nowhere",
}
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
BAD = ("serious", "critical")


def two_deploys(now: int) -> str:
    return f"/deploys?{GROUP}&deploy={sample.deploys(now)['deploys'][0]['started_at']}"


@pytest.fixture(scope="module")
def described(tmp_path_factory, now) -> Iterator[str]:
    """The address of pages over a warehouse with all kinds of rows, including advice and diagnoses."""
    folder: Path = tmp_path_factory.mktemp("states")
    sample.write(folder, sample.everyday(now))
    group = EagerGroup(members=10, partitions=50, notice_ms=2_800, callback_ms=20_000)
    for index in range(10):
        group.restarts(index, 100_000 + index * 100_000, 60_000)
    found = gold_rows(
        "prod-eu",
        "billing-worker",
        group.silver(),
        broker=BrokerSettings(),
        config=AnalysisConfig(),
        since_ms=0,
        until_ms=START + 1,
    )
    for table in (ADVICE, DIAGNOSES):
        write_deltalake(f"{folder}/{table.name}", stored(found[table.name], table), mode="overwrite")
    with serving(folder) as address:
        yield address


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("page", [*PAGES, "two deploys"])
def test_axe_finds_no_serious_fault(window, described, now, page, width) -> None:
    path = PAGES[page] if page in PAGES else two_deploys(now)
    path = path.format(now=now - 60_000, before=now - 45 * 60_000)
    with window.page(described, (width, 900)) as watched:
        watched.page.emulate_media(reduced_motion="reduce")
        opened = watched.open(path, "#page .head, #page .empty")
        opened.wait_for_load_state("networkidle")
        if opened.locator(".grid").count():
            # A grid shows its rows only when it comes into view; until then, it has a row without cells.
            opened.evaluate("document.querySelector('.grid').scrollIntoView()")
            opened.wait_for_selector(".grid .ag-cell")
        found = {}
        for theme in ("light", "dark"):
            opened.evaluate("theme => document.documentElement.setAttribute('data-theme', theme)", theme)
            violations = Axe().run(opened, options=RULES).response["violations"]
            for rule in violations:
                if rule["impact"] in BAD:
                    found[theme, rule["id"]] = [
                        (node["html"][:160], node["failureSummary"][:300]) for node in rule["nodes"][:3]
                    ]
        assert found == {}, found
        assert opened.evaluate("document.documentElement.scrollWidth") <= width, "the page is wider than the window"


@pytest.mark.parametrize("key", ["?", "r", "e"])
def test_axe_finds_no_serious_fault_in_a_dialog(window, described, key) -> None:
    with window.page(described, (390, 844)) as watched:
        watched.page.emulate_media(reduced_motion="reduce")
        opened = watched.open(PAGES["group"], ".panel .main-svg")
        opened.keyboard.press(key)
        opened.wait_for_selector("dialog h2")
        for theme in ("light", "dark"):
            opened.evaluate("theme => document.documentElement.setAttribute('data-theme', theme)", theme)
            violations = Axe().run(opened, options=RULES).response["violations"]
            assert [] == [rule for rule in violations if rule["impact"] in BAD]
        assert opened.evaluate("document.documentElement.scrollWidth") <= 390
