"""Recorded clusters on pages, and a reader who answers questions with few clicks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import write_deltalake
from playwright.sync_api import Page

from jobs.alerting.alert_links import dashboard_url
from jobs.config.settings import Settings
from jobs.gold.storms import scan
from jobs.tables.paths import table_path
from pipelines.arrow_types import stored
from pipelines.gold.alerts.alert import Alert
from schemas.gold import STORMS
from schemas.states import AlertName, AlertSeverity, Evidence
from testing.serving import serving
from testing.warehouses.recorded import rows_of, store

CLUSTERS = {"edge": "outage", "churn": "eager_churn", "restarts": "rolling_restart", "lab": "settings"}


@dataclass(frozen=True)
class Recorded:
    """The pages' address, their warehouse and the rows behind them."""

    address: str
    warehouse: Path
    rows: dict[str, list[dict[str, Any]]]

    def alert(self, name: AlertName, cluster: str, subject: str, at: datetime, storm_id: str | None = None) -> str:
        """The link that an alert carries, without the host."""
        alert = Alert(
            name=name, cluster=cluster, subject=subject, severity=AlertSeverity.PAGE, storm_id=storm_id,
            started_ms=round(at.timestamp() * 1000), summary="", description="", evidence=Evidence.OBSERVED,
        )  # fmt: skip
        return dashboard_url(Settings(dashboard_url=self.address), alert).removeprefix(self.address)


@pytest.fixture(scope="session")
def recorded(tmp_path_factory) -> Iterator[Recorded]:
    folder: Path = tmp_path_factory.mktemp("recorded")
    rows = rows_of(CLUSTERS)
    cut = next(row for row in rows["group_events"] if row["cluster"] == "edge" and row["kind"] == "session_expired")
    deploy = {"cluster": "edge", "kind": "deploy", "text": "hypervisor 9.1", "group_id": None, "marked_by": "ci"}
    rows["marks"].append(deploy | {"marked_at": at_of(cut["event_at"]) - timedelta(minutes=2)})
    store(folder, rows)
    found = scan(folder)
    write_deltalake(table_path(folder, STORMS), stored(found.new, STORMS), mode="overwrite")
    with serving(folder) as address:
        yield Recorded(address, folder, rows | {"storms": list(found.new)})


def at_of(instant: Any) -> datetime:
    """Return milliseconds: storms have them, rows of recorded tables have datetimes."""
    return instant if isinstance(instant, datetime) else datetime.fromtimestamp(instant / 1_000, UTC)


class Asking:
    """A reader with a browser; `clicks` counts the clicks so far."""

    def __init__(self, page: Page) -> None:
        self.page, self.clicks = page, 0

    def click(self, selector: str, ready: str) -> None:
        self.page.locator(selector).first.click()
        self.clicks += 1
        self.page.wait_for_selector(ready)

    def reads(self, *texts: str, clicks: int = 3) -> None:
        """Assert that the page contains all of these texts, after at most `clicks` clicks."""
        printed = self.page.inner_text("#page")
        for text in texts:
            assert text in printed, (text, printed[:3_000])
        assert self.clicks <= clicks


@pytest.fixture
def asking(window, recorded):
    with window.page(recorded.address) as watched:
        yield lambda path: Asking(watched.open(path))
