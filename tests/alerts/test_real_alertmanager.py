"""Debian's Alertmanager gets every storm, once, until the storm is over."""

from __future__ import annotations

import json
import socket
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from jobs.config.receivers import Alertmanager
from jobs.config.settings import Settings
from jobs.notify import Notifier
from schemas.bronze import COVERAGE
from schemas.gold import ALERTS, DIAGNOSES, PATTERNS, STORMS
from schemas.silver import GENERATIONS, STALLS
from testing.alerts.receiving import free_port, unescaped
from testing.alerts.rows import MINUTE, coverage, generation, now, row, stall, storm, unowned, write
from testing.waiting import wait_until


@pytest.fixture
def printed() -> list[str]:
    return []


def settings(warehouse: Path, *alertmanagers: Alertmanager, **values) -> Settings:
    return Settings(warehouse=warehouse, alertmanagers=alertmanagers, resend_seconds=0.0, metrics_port=0, **values)


def storms(warehouse: Path, *rows) -> None:
    """The cluster is read up to now, and these are its storms."""
    write(warehouse, COVERAGE, [coverage(at=now())])
    write(warehouse, STORMS, list(rows))


def kept(warehouse: Path) -> list[dict]:
    return DeltaTable(warehouse / ALERTS.name).to_pyarrow_table().to_pylist()


def statuses(posts: list[dict]) -> list[tuple[str, int]]:
    return [(post["status"], len(post["alerts"])) for post in posts]


def test_it_groups_by_cluster_deduplicates_and_resolves(warehouse, alertmanager, received, printed) -> None:
    notifier = Notifier(settings(warehouse, Alertmanager(name="am", url=alertmanager.url)), say=printed.append)
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
    assert [] == printed


def test_a_topic_without_an_owner_is_reported_until_it_has_one(warehouse, alertmanager, printed) -> None:
    notifier = Notifier(settings(warehouse, Alertmanager(name="am", url=alertmanager.url)), say=printed.append)
    since = now() - 20 * MINUTE

    def analyzed(at: int) -> None:
        write(warehouse, DIAGNOSES, [row(DIAGNOSES, group_id="orders", cause="deploy", as_of=at)])

    write(warehouse, COVERAGE, [coverage(at=now())])
    write(warehouse, PATTERNS, [unowned(since=since)])
    write(warehouse, GENERATIONS, [generation(1, since - 5, 4)])
    write(warehouse, STALLS, [stall(since, 1_000, name="audit")])
    analyzed(since)
    assert notifier.round()
    (alert,) = alertmanager.alerts()
    expected = {"alertname": "KafkaTopicWithoutOwner", "cluster": "kafka", "group": "orders", "severity": "page"}
    assert expected == alert["labels"]
    assert "cluster=kafka&group=orders" in alert["generatorURL"]
    analyzed(since + MINUTE)
    notifier.round()
    wait_until(lambda: [] == alertmanager.alerts("active=true"))
    assert [] == printed


def test_one_that_was_away_gets_everything_once_it_is_back(warehouse, alertmanager, received, printed) -> None:
    rarely = replace(settings(warehouse, Alertmanager(name="am", url=alertmanager.url)), resend_seconds=3600.0)
    notifier = Notifier(rarely, say=printed.append)
    storms(warehouse, storm("orders", now()), storm("goes-on", now()))
    notifier.round()
    alertmanager.stop()
    new = [storm("goes-on", now()), storm("billing", now()), storm("audit", now())]
    storms(warehouse, storm("orders", now(), is_open=False), *new)
    assert not notifier.round()
    assert not notifier.round()
    assert ["am did not accept 3 alert(s) (connection refused): they are sent again until it does."] == printed
    errors = {r["last_error"] for r in kept(warehouse)}
    assert {"am: connection refused"} == errors

    alertmanager.start()
    assert notifier.round()
    assert {"billing", "audit", "goes-on"} == {a["labels"]["group"] for a in alertmanager.alerts("active=true")}
    wait_until(lambda: "resolved" in str(received.bodies("/on-call")))
    assert "am accepts alerts again." == printed[-1]
    assert {None} == {r["last_error"] for r in kept(warehouse)}


def test_one_that_is_away_delays_no_other(warehouse, alertmanager, received, printed) -> None:
    """The first one listens and never answers, the second refuses."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        away = [f"http://127.0.0.1:{port}" for port in (silent.getsockname()[1], free_port())]
        receivers = [Alertmanager(name=f"away-{n}", url=url) for n, url in enumerate(away)]
        notifier = Notifier(
            settings(warehouse, *receivers, Alertmanager(name="am", url=alertmanager.url)), say=printed.append
        )
        storms(warehouse, storm("orders", now()))
        round_ = threading.Thread(target=notifier.round)
        round_.start()
        wait_until(alertmanager.alerts)
        assert round_.is_alive(), "the silent one is still waited for"
        round_.join()
    assert [["am"]] == [r["sent_to"] for r in kept(warehouse)]
    assert 2 == len(printed)


def test_a_storm_of_the_fleet_is_one_message_and_inhibits_its_groups(
    warehouse, alertmanager, received, printed
) -> None:
    notifier = Notifier(settings(warehouse, Alertmanager(name="am", url=alertmanager.url)), say=printed.append)
    names = [f"group-{n}" for n in range(37)]
    storms(warehouse, storm("group-1", now()))
    notifier.round()
    fleet = storm(at=now(), scope="fleet", groups=37, group_ids=names)
    storms(warehouse, storm("group-1", now()), storm("group-2", now()), fleet)
    notifier.round()
    wait_until(lambda: any("37 groups" in str(post) for post in received.bodies("/on-call")))
    assert {"group-1", None} == {a["labels"].get("group") for a in alertmanager.alerts()}, "group-2 is not raised"
    wait_until(lambda: [a for a in alertmanager.alerts() if a["status"]["inhibitedBy"]])
    assert ["group-1"] == [a["labels"]["group"] for a in alertmanager.alerts() if a["status"]["inhibitedBy"]]


def test_labels_identify_and_every_foreign_name_is_harmless(warehouse, alertmanager, received, printed) -> None:
    notifier = Notifier(settings(warehouse, Alertmanager(name="am", url=alertmanager.url)), say=printed.append)
    hostile = "<!channel> <@U1>\n\x1b[31m[x](http://evil) 100%"
    storms(warehouse, storm(hostile, now(), explanation=f"{hostile} shook."))
    notifier.round()
    (alert,) = alertmanager.alerts()
    assert {"alertname", "cluster", "group", "severity"} == set(alert["labels"])
    assert hostile == unescaped(alert["labels"]["group"])
    wait_until(lambda: received.bodies("/on-call"))
    described = json.dumps(received.bodies("/on-call"), ensure_ascii=False)
    texts = "".join(alert["annotations"][name] for name in ("summary", "description"))
    for raw in ("<!channel", "<@", "](", "://evil", "\x1b", "\\u001b", "\n"):
        assert raw not in described
        assert raw not in texts
    assert alert["generatorURL"] == alert["annotations"]["dashboard_url"]
    assert alert["generatorURL"].startswith("http://127.0.0.1:8050/storms?")
    assert "http://127.0.0.1:8050/runbooks/KafkaRebalanceStorm" == alert["annotations"]["runbook_url"]
