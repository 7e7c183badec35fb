"""What people on call ask, from the alert or the fleet on: the answer stands on a page within three clicks.

The pages show recorded clusters: churn with its accidents, rolling restarts, and hosts that stand still at once.
"""

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
from jobs.tables.delta_io import table_path
from pipelines.arrow_types import stored
from pipelines.gold.advice.advice import SavingThreshold, advice_rows
from pipelines.gold.advice.latencies import BrokerSettings
from pipelines.gold.alerts.alert import Alert
from schemas.gold import ADVICE, STORMS
from schemas.states import AlertName, AlertSeverity, Evidence
from testing.serving import serving
from testing.warehouses.recorded import rows_of, store
from tests.gold.histories import EagerGroup

CLUSTERS = {"edge": "outage", "churn": "eager_churn", "restarts": "rolling_restart"}
QUIET_MS = 10_000


@dataclass(frozen=True)
class Recorded:
    """The pages' address and the rows behind them."""

    address: str
    rows: dict[str, list[dict[str, Any]]]

    def alert(self, name: AlertName, cluster: str, subject: str, at: datetime, storm_id: str | None = None) -> str:
        """The link that an alert carries, without the host."""
        alert = Alert(
            name=name, cluster=cluster, subject=subject, severity=AlertSeverity.PAGE, storm_id=storm_id,
            started_ms=round(at.timestamp() * 1000), summary="", description="", evidence=Evidence.OBSERVED,
        )  # fmt: skip
        return dashboard_url(Settings(dashboard_url=self.address), alert).removeprefix(self.address)


def tried() -> list[dict[str, Any]]:
    """Advice for a group that was made static half way: fewer losses since."""
    group = EagerGroup(members=4, partitions=40, notice_ms=2_500, callback_ms=20_000)
    for at in range(8):
        group.restarts(at % 4, 100_000 + at * 100_000, 60_000)
    found = advice_rows(group.silver(), BrokerSettings(), SavingThreshold(), QUIET_MS)
    verified = {"status": "verified", "saving_measured": 912.0}
    rows = [
        {"cluster": "churn", "group_id": "checkout"} | row | (verified if row["rank"] == 1 else {}) for row in found
    ]
    kept: list[dict[str, Any]] = stored(rows, ADVICE).to_pylist()
    return kept


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> Iterator[Recorded]:
    folder: Path = tmp_path_factory.mktemp("recorded")
    rows = rows_of(CLUSTERS)
    cut = next(row for row in rows["group_events"] if row["cluster"] == "edge" and row["kind"] == "session_expired")
    deploy = {"cluster": "edge", "kind": "deploy", "text": "hypervisor 9.1", "group_id": None, "marked_by": "ci"}
    rows["marks"].append(deploy | {"marked_at": at_of(cut["event_at"]) - timedelta(minutes=2)})
    rows["advice"] += tried()
    store(folder, rows)
    found = scan(folder)
    write_deltalake(table_path(folder, STORMS), stored(found.new, STORMS), mode="overwrite")
    with serving(folder) as address:
        yield Recorded(address, rows | {"storms": list(found.new)})


def at_of(instant: Any) -> datetime:
    """Storms hold milliseconds, rows of recorded tables instants."""
    return instant if isinstance(instant, datetime) else datetime.fromtimestamp(instant / 1_000, UTC)


class Asking:
    """Somebody with a browser; `clicks` so far."""

    def __init__(self, page: Page) -> None:
        self.page, self.clicks = page, 0

    def click(self, selector: str, ready: str) -> None:
        self.page.locator(selector).first.click()
        self.clicks += 1
        self.page.wait_for_selector(ready)

    def reads(self, *texts: str) -> None:
        """The page says all of this, and it took three clicks at most."""
        printed = self.page.inner_text("#page")
        for text in texts:
            assert text in printed, (text, printed[:3_000])
        assert self.clicks <= 3


@pytest.fixture
def asking(window, recorded):
    with window.page(recorded.address) as watched:
        yield lambda path: Asking(watched.open(path))


def expired(recorded: Recorded, cluster: str = "churn") -> dict[str, Any]:
    """A rebalance that a session's end set off."""
    return next(
        g for g in recorded.rows["generations"]
        if (g["cluster"], g["trigger"]) == (cluster, "session_expired") and not g["is_empty"]
    )  # fmt: skip


def test_why_did_a_group_stop(asking, recorded) -> None:
    made = expired(recorded)
    link = recorded.alert(AlertName.AVAILABILITY_BURN, made["cluster"], made["group_id"], at_of(made["joined_at"]))
    one = asking(link)
    one.click(
        f".grid a:text-is('{made['generation_id']}')", f"h1:text-is('Rebalance to generation {made['generation_id']}')"
    )
    one.reads("session", "waited", "partitions stopped", "Proof")


def test_who_left_and_who_flaps(asking, recorded) -> None:
    made = expired(recorded)
    one = asking(recorded.alert(AlertName.MEMBER_FLAPPING, "churn", made["group_id"], at_of(made["joined_at"])))
    one.click("summary:text-is('Show as table')", "#page table")
    one.reads("Why it rebalances", "expelled", "inferred")


def test_which_deploy_came_before_the_storm(asking, recorded) -> None:
    storm = next(row for row in recorded.rows["storms"] if row["cluster"] == "edge")
    link = recorded.alert(AlertName.REBALANCE_STORM, "edge", "", at_of(storm["started_at"]), storm["storm_id"])
    asking(link).reads("4 groups", "hypervisor 9.1", "after the deploy", "rack7-billing")


def test_is_it_the_broker_or_the_applications(asking, recorded) -> None:
    one = asking("/?from=all")
    one.click("nav a:text-is('Storms')", "h1:text-is('Storms')")
    one.click("table a:text-is('4 groups together')", "h1:text-is('Storm: 4 groups together')")
    one.reads("Suspected cause", "session", "What is different")


def test_was_anything_lost_or_only_late(asking, recorded) -> None:
    made = expired(recorded)
    asking(recorded.alert(AlertName.AVAILABILITY_BURN, "churn", made["group_id"], at_of(made["joined_at"]))).reads(
        "Work resumed: ", "known)"
    )


@pytest.mark.parametrize("change", ["static membership", "cooperative assignor"])
def test_what_would_static_membership_or_the_cooperative_assignor_save(asking, recorded, change) -> None:
    advised = {
        action: {row["group_id"] for row in recorded.rows["advice"] if (row["cluster"], row["action"]) == ("restarts", action)}
        for action in ("static_membership", "cooperative_assignor")
    }  # fmt: skip
    (group,) = advised["static_membership"] & advised["cooperative_assignor"]
    one = asking(f"/group?cluster=restarts&group={group}&from=all")
    one.click("a:text-is('Advice for this group')", "h1:text-is('Advice')")
    one.click(f"summary:text-is('How: {change}')", ".paste pre:visible")
    paste = "group.instance.id" if "static" in change else "cooperative-sticky"
    one.reads(group, "Interval", "Recommended", change, paste)


def test_did_the_change_help(asking, recorded) -> None:
    one = asking("/?from=all")
    one.click("nav a:text-is('Advice')", "h1:text-is('Advice')")
    one.reads("checkout", "verified", "912")


def test_is_it_over(asking, recorded) -> None:
    storm = next(row for row in recorded.rows["storms"] if row["cluster"] == "edge")
    one = asking(recorded.alert(AlertName.REBALANCE_STORM, "edge", "", at_of(storm["started_at"]), storm["storm_id"]))
    one.click("a:text-is('rack7-billing')", "h1:text-is('rack7-billing')")
    one.reads("working", "Stable", "since 2026-11-21", "stopped by the last rebalance committed again by")


def test_can_i_trust_this_page(asking, recorded) -> None:
    one = asking("/?from=all")
    one.click("nav a:text-is('Health')", "h1:text-is('Health of Regroup')")
    one.reads("__consumer_offsets", "uarantine", "edge")
