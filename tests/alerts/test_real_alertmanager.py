"""Debian's Alertmanager hears of every storm, once, until it is over."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.notify import Notifier
from jobs.receivers import Alertmanager
from jobs.settings import Settings
from schemas.bronze import COVERAGE
from schemas.gold import STORMS
from tests.alerts.conftest import wait_until
from tests.alerts.rows import coverage, now, storm, write


@pytest.fixture
def said() -> list[str]:
    return []


def settings(warehouse: Path, *alertmanagers: Alertmanager, **values) -> Settings:
    return Settings(warehouse=warehouse, alertmanagers=alertmanagers, resend_seconds=0.0, metrics_port=0, **values)


def storms(warehouse: Path, *rows) -> None:
    """The cluster is read up to now, and these are its storms."""
    write(warehouse, COVERAGE, [coverage(at=now())])
    write(warehouse, STORMS, list(rows))


def statuses(posts: list[dict]) -> list[tuple[str, int]]:
    return [(post["status"], len(post["alerts"])) for post in posts]


def test_it_groups_by_cluster_deduplicates_and_resolves(warehouse, alertmanager, received, said) -> None:
    notifier = Notifier(settings(warehouse, Alertmanager(name="am", url=alertmanager.url)), say=said.append)
    storms(warehouse, storm("orders", now()), storm("billing", now()), storm("orders", now(), cluster="other"))
    write(warehouse, COVERAGE, [coverage(at=now(), cluster="other")], mode="append")
    assert notifier.round()
    assert 3 == len(alertmanager.alerts())
    for _ in range(3):
        notifier.round()
    wait_until(lambda: len(received.bodies("/on-call")) >= 2)
    assert [("firing", 1), ("firing", 2)] == sorted(statuses(received.bodies("/on-call"))), "one message per cluster"
    assert {"KafkaRebalanceStorm"} == {a["labels"]["alertname"] for a in alertmanager.alerts()}

    storms(warehouse, storm("orders", now(), is_open=False))
    write(warehouse, COVERAGE, [coverage(at=now(), cluster="other")], mode="append")
    notifier.round()
    wait_until(lambda: len(received.bodies("/on-call")) >= 4)
    assert {("resolved", 1), ("resolved", 2)} == set(statuses(received.bodies("/on-call")[2:]))
    assert [] == alertmanager.alerts("active=true"), "nothing holds any more"
    assert [] == said
