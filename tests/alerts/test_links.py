"""The link of an alert leads to the page that shows exactly the subject of the alert."""

from __future__ import annotations

import pytest

from dashboards.urlstate import parse
from jobs.alerting.alert_links import dashboard_url
from jobs.config.settings import Settings
from pipelines.gold.alerts.alert import Alert
from schemas.states import AlertName, AlertSeverity, Evidence

AT = 1_795_000_000_000
SETTINGS = Settings(dashboard_url="https://regroup.example/")


def link(name: AlertName, subject: str, storm_id: str | None = None) -> str:
    alert = Alert(
        name=name, cluster="prod", subject=subject, severity=AlertSeverity.PAGE, started_ms=AT, summary="",
        description="", evidence=Evidence.OBSERVED, storm_id=storm_id,
    )  # fmt: skip
    return dashboard_url(SETTINGS, alert)


@pytest.mark.parametrize("subject", ["orders/1&x", ""])
def test_a_storm_leads_to_its_own_page_with_a_quarter_of_an_hour_to_either_side(subject) -> None:
    address = link(AlertName.REBALANCE_STORM, subject, "abc")
    assert address.startswith("https://regroup.example/storms?")
    state = parse("/storms", address.partition("?")[2])
    assert ("abc", str(AT - 900_000), str(AT + 900_000)) == (state.storm, state.start, state.end)


def test_a_group_leads_to_its_page_whatever_its_name_holds() -> None:
    address = link(AlertName.GROUP_STUCK_REBALANCING, "orders/1&x")
    state = parse("/group", address.partition("?")[2])
    assert ("prod", "orders/1&x") == (state.cluster, state.group)


def test_the_others_lead_to_reassignments_to_health_and_to_the_fleet() -> None:
    assert "/health?" in link(AlertName.OFFSETS_PARTITION_DOWN, "__consumer_offsets-7")
    assert "/reassignments?" in link(AlertName.REASSIGNMENT_STALLED, "orders-0")
    assert "https://regroup.example/?" in link(AlertName.REBALANCE_TELEMETRY_STALE, "")
