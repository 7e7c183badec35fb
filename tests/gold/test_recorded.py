"""Advice from recorded histories, against the same churn recorded under the other settings."""

from __future__ import annotations

from statistics import median
from typing import Any

import pytest

from jobs.replay import Capture
from pipelines.gold.rows import AnalysisConfig, broker, gold_rows
from testing.recordings import CAPTURES
from testing.warehouses.rebuilding import batches, silver_of, truth

NAME, SOURCE = "rolling_restart", "exports-sync-dynamic"
TWINS = {
    "cooperative_assignor": "alerts-notifier-coop",
    "static_membership": "pricing-enricher-static",
    "consumer_protocol": "stock-loader-next",
    "consumer_protocol_static": "billing-worker-next-static",
}


def advice(sources: str) -> dict[str, dict[str, Any]]:
    """Return the advice from the rows of the dynamic eager group."""
    rows = silver_of(batches(NAME, sources=sources), NAME)
    mine = {name: [row for row in found if row["group_id"] == SOURCE] for name, found in rows.items()}
    settings = broker(Capture(CAPTURES / NAME).meta["broker_overrides"])
    until = max(row["last_record_at"] for row in rows["groups"])
    found = gold_rows("kafka", SOURCE, mine, broker=settings, config=AnalysisConfig(), since_ms=0, until_ms=until)
    return {row["action"]: row for row in found["advice"]}


@pytest.fixture(scope="module", params=["offsets,log", "offsets"])
def predicted(request) -> dict[str, dict[str, Any]]:
    return advice(request.param)


@pytest.fixture(scope="module")
def lost() -> dict[str, float]:
    """Return the partition-seconds lost from the first restart on, by group, according to the clients' callbacks."""
    groups = truth(NAME)["groups"]
    first = min(e["ms"] for e in groups[SOURCE]["member_events"] if e["what"] == "left") - 1_000
    return {name: sum(_lengths(g["stops"], first)) / 1000 for name, g in groups.items()}


def _lengths(stops: list[dict[str, Any]], first: float) -> list[float]:
    return [
        s["assign_ms"] - s["end_ms"]
        for s in stops
        if s["assign_ms"] and s["end_ms"] is not None and s["end_ms"] >= first
    ]


def test_a_shorter_connect_delay_spares_what_waited_for_its_end() -> None:
    rows = silver_of(batches("connect"), "connect")
    until = max(row["last_record_at"] for row in rows["groups"])
    mine = {name: [row for row in found if row["group_id"] == "mailer-writer-connect"] for name, found in rows.items()}
    terms = {"broker": broker({}), "config": AnalysisConfig(), "since_ms": 0, "until_ms": until}
    found = {row["action"]: row for row in gold_rows("kafka", "mailer-writer-connect", mine, **terms)["advice"]}
    lower = found["lower_connect_delay"]
    # Two workers went, with four tasks each; both waited ten seconds where five would do, one of them to move twice then.
    assert lower["saving"] == pytest.approx(8 * 5, rel=0.15)
    assert lower["is_recommended"]
    assert lower["settings"] == {"connect": "scheduled.rebalance.max.delay.ms=5000"}
    assert found["raise_connect_delay"]["saving"] < 0


def test_whether_a_change_helps_is_right_for_every_one(predicted, lost) -> None:
    for action, twin in TWINS.items():
        row = predicted[action]
        assert (row["lost_predicted"] < row["lost_now"]) == (lost[twin] < lost[SOURCE]), action


def test_predictions_are_close_to_what_the_twins_lost(predicted, lost) -> None:
    off = [abs(predicted[action]["lost_predicted"] - lost[twin]) / lost[twin] for action, twin in TWINS.items()]
    assert median(off) <= 0.15
    assert max(off) <= 0.35


def test_what_the_twins_lost_lies_within_the_printed_intervals(predicted, lost) -> None:
    for action, twin in TWINS.items():
        row = predicted[action]
        assert row["lost_predicted_low"] <= lost[twin] <= row["lost_predicted_high"], action


def test_what_the_twins_saved_lies_within_the_intervals_of_the_savings(predicted, lost) -> None:
    for action, twin in TWINS.items():
        row = predicted[action]
        assert row["saving_low"] <= lost[SOURCE] - lost[twin] <= row["saving_high"], action


def test_nothing_is_recommended_that_would_lose_more(predicted) -> None:
    assert [action for action, row in predicted.items() if row["is_recommended"]] == ["none"]


def test_an_application_of_kafka_streams_is_replayed_task_by_task() -> None:
    """Its instances may run each other's tasks; protocols that it cannot use are not offered."""
    rows = silver_of(batches("streams"), "streams")
    until = max(row["last_record_at"] for row in rows["groups"])
    terms = {"broker": broker({}), "config": AnalysisConfig(), "since_ms": 0, "until_ms": until}
    found = {
        group: {
            row["action"]: row
            for row in gold_rows(
                "kafka", group, {n: [r for r in t if r["group_id"] == group] for n, t in rows.items()}, **terms
            )["advice"]
        }
        for group in ("clicks-counter", "visits-counter")
    }
    classic = found["clicks-counter"]
    assert {"none", "static_membership"} <= classic.keys()
    assert not classic.keys() & {"cooperative_assignor", "consumer_protocol", "consumer_protocol_static"}
    assert "consumer.group.instance.id" in classic["static_membership"]["settings"]["streams"]
    assert "KIP-1071" in found["visits-counter"]["none"]["explanation"]
