"""Advice for groups for which the right advice is known; and the same history always gives the same rows."""

from __future__ import annotations

from random import Random

import pytest

from pipelines.gold.advice.advice import SavingThreshold, advice_rows
from pipelines.gold.advice.latencies import BrokerSettings
from pipelines.gold.rows import AnalysisConfig, gold_rows
from tests.gold.histories import START, EagerGroup

QUIET_MS = 10_000


def advice(group: EagerGroup, broker: BrokerSettings | None = None) -> dict[str, dict]:
    rows = advice_rows(group.silver(), broker or BrokerSettings(), SavingThreshold(), QUIET_MS)
    return {row["action"]: row for row in rows}


def recommended(rows: dict[str, dict]) -> list[str]:
    return [action for action, row in sorted(rows.items(), key=lambda item: item[1]["rank"]) if row["is_recommended"]]


@pytest.fixture
def slow() -> EagerGroup:
    """Restarts in a second, but every rebalance waits twenty for callbacks that everybody makes."""
    group = EagerGroup(members=4, partitions=40, notice_ms=2_500, callback_ms=20_000)
    for at, index in enumerate((0, 1, 2, 3)):
        group.restarts(index, 100_000 + at * 100_000, 60_000)
    return group


@pytest.fixture
def fast() -> EagerGroup:
    """Small and quick: a rebalance is over within a heartbeat of 300 ms."""
    group = EagerGroup()
    for at, index in enumerate((0, 1, 2)):
        group.restarts(index, 20_000 + at * 20_000, 5_000)
    return group


def test_static_membership_is_recommended_where_every_rebalance_stops_everybody_for_long() -> None:
    group = EagerGroup(members=10, partitions=50, notice_ms=2_800, callback_ms=20_000)
    for index in range(10):
        group.restarts(index, 100_000 + index * 100_000, 60_000)
    rows = advice(group)
    static = rows["static_membership"]
    assert static["is_recommended"]
    assert static["lost_predicted_high"] < static["lost_now"] / 2
    assert static["rebalances_predicted"] == 0
    # Ten restarts of sixty seconds, with five partitions each, and no other partition stops.
    assert static["lost_predicted"] == pytest.approx(10 * 60 * 5, rel=0.05)


def test_faster_heartbeats_spare_what_waiting_for_them_costs_and_only_that() -> None:
    def saved(**group) -> dict:
        made = EagerGroup(members=4, partitions=40, **group)
        for ref in range(12):
            made.restarts(ref % 4, 100_000 + ref * 100_000, 5_000)
        return advice(made)

    waiting = saved(notice_ms=2_900)["lower_heartbeat_interval"]
    assert "seem to come every 3,000 ms" in waiting["explanation"]
    assert waiting["settings"]["java"] == "heartbeat.interval.ms=1000"
    assert waiting["is_recommended"]
    assert waiting["rebalances_predicted"] == waiting["rebalances_now"]
    # Two thirds of each wait of up to 2.9 s are saved; the loss of the restarted instance itself remains.
    assert 0.2 * waiting["lost_now"] < waiting["saving"] < 0.67 * waiting["lost_now"]
    held_up = saved(notice_ms=300, callback_ms=8_000)
    assert not held_up.get("lower_heartbeat_interval", {}).get("is_recommended"), "their callbacks take the time"


def test_a_session_timeout_is_chosen_that_outlasts_the_restarts() -> None:
    group = EagerGroup(members=10, partitions=50, notice_ms=2_800, callback_ms=20_000, session_ms=10_000)
    for index in range(10):
        group.restarts(index, 100_000 + index * 100_000, 60_000)
    assert "session.timeout.ms=120000" in advice(group)["static_membership"]["settings"]["java"]


def test_cooperative_costs_more_where_the_barrier_is_shorter_than_a_heartbeat(fast) -> None:
    rows = advice(fast)
    assert rows["cooperative_assignor"]["lost_predicted"] > rows["cooperative_assignor"]["lost_now"]
    assert not rows["cooperative_assignor"]["is_recommended"]


def test_cooperative_saves_where_giving_everything_up_takes_long(slow) -> None:
    assert advice(slow)["cooperative_assignor"]["saving"] > 0


def test_leaving_a_small_fast_group_alone_is_the_advice_and_says_why(fast) -> None:
    rows = advice(fast)
    assert recommended(rows) == ["none"]
    assert rows["none"]["rank"] == 1
    assert "leave it" in rows["none"]["explanation"]


def test_what_happened_is_reproduced_before_anything_is_shown_of_what_might(fast, slow) -> None:
    for group in (fast, slow):
        assert "too far off" not in advice(group)["none"]["explanation"]


def test_no_advice_is_given_where_the_replay_does_not_reproduce_what_happened(fast) -> None:
    silver = fast.silver()
    for stall in silver["stalls"]:
        if stall["stopped_ms"] is not None:
            # Work stopped for longer than anything in the churn explains.
            stall["resumed_at_earliest"] += 900_000
            stall["stopped_ms"] += 900_000
    rows = advice_rows(silver, BrokerSettings(), SavingThreshold(), QUIET_MS)
    assert [row["action"] for row in rows] == ["none"]
    assert "too far off" in rows[0]["explanation"]


def test_the_consumer_protocols_loss_hangs_on_the_brokers_heartbeat(fast) -> None:
    soon, late = (advice(fast, BrokerSettings(heartbeat_ms=ms))["consumer_protocol"] for ms in (1_000, 15_000))
    assert soon["lost_predicted_high"] < late["lost_predicted_low"]
    assert "15,000 ms, the broker's setting" in late["explanation"]
    assert "the default" in advice(fast)["consumer_protocol"]["explanation"]


def test_a_death_costs_a_static_group_its_session_timeout() -> None:
    group = EagerGroup(session_ms=10_000)
    group.leaves(0, 20_000, how="session_expired", silent_ms=10_000)
    group.leaves(1, 60_000)
    rows = advice(group)
    assert rows["static_membership"]["lost_predicted"] >= 4 * 6
    assert recommended(rows) == ["none"]


def test_a_longer_session_for_pauses_pays_for_the_later_notice_of_deaths() -> None:
    def saving(deaths: int) -> tuple[float, str]:
        group = EagerGroup(members=4, partitions=40, session_ms=10_000)
        for n in range(2 + deaths):
            away = 12_000 if n < 2 else 100_000
            group.leaves(n % 4, 100_000 + n * 300_000, how="session_expired", silent_ms=10_000)
            group.returns(n % 4, 100_000 + n * 300_000 + away)
        row = advice(group)["raise_session_timeout"]
        return row["saving"], row["explanation"]

    pauses, alone = saving(0)
    both, explained = saving(4)
    # Each of four deaths, with ten partitions, is noticed after 45 s instead of 10 s.
    assert both == pytest.approx(pauses - 4 * 10 * 35, rel=0.1)
    assert "4 other failures would be noticed later" in explained
    assert "noticed later" not in alone


def test_pods_of_a_deployment_have_no_name_to_be_static_by() -> None:
    group = EagerGroup(members=2, partitions=100, notice_ms=2_000, callback_ms=20_000)
    for n, at in enumerate((50_000, 150_000, 250_000)):
        group.client = "shop-7d9f8b6c5d-" + ("x2x4z", "b5hgt", "q9wvr")[n]
        group.leaves(0, at)
        group.returns(0, at + 60_000)
    found = next(c for c in advice(group)["static_membership"]["preconditions"] if "StatefulSet" in c)
    assert found.startswith("missing")
    assert not advice(group)["static_membership"]["is_recommended"]


def test_one_member_that_keeps_failing_is_named() -> None:
    group = EagerGroup(session_ms=10_000)
    for at in range(4):
        group.leaves(1, 50_000 + at * 50_000, how="session_expired", silent_ms=10_000)
        group.returns(1, 75_000 + at * 50_000)
    rows = advice(group)
    assert "app-1 caused 4 of 4 failures" in rows["fix_member"]["explanation"]
    assert rows["fix_member"]["is_recommended"]


@pytest.mark.parametrize(("factor", "status"), [(0.2, "verified"), (5, "refuted")])
def test_a_change_that_the_records_show_is_judged_by_the_absences_since(factor, status) -> None:
    silver = static_since(200_000, factor, restarts=12)
    static = next(
        row
        for row in advice_rows(silver, BrokerSettings(), SavingThreshold(), QUIET_MS)
        if row["action"] == "static_membership"
    )
    assert static["status"] == status
    assert (static["saving_measured"] > 0) == (status == "verified")
    assert not static["is_recommended"]


def test_too_few_absences_since_a_change_are_no_verdict() -> None:
    silver = static_since(290_000, 0.2)
    static = next(
        row
        for row in advice_rows(silver, BrokerSettings(), SavingThreshold(), QUIET_MS)
        if row["action"] == "static_membership"
    )
    assert (static["status"], static["saving_measured"]) == ("tried", None)


def static_since(change: int, factor: float, *, restarts: int = 7) -> dict[str, list[dict]]:
    """Restarts, a member at a time; from `change` on every member has an instance id, and stops last `factor` times as long."""
    group = EagerGroup()
    for at in range(restarts):
        group.restarts(at % 3, 50_000 + at * 45_000, 5_000)
    silver = group.silver()
    for row in silver["generation_members"]:
        row["group_instance_id"] = row["client_id"] if row["valid_from_at"] >= START + change else None
    for row in silver["stalls"]:
        if row["resumed_at_earliest"] >= START + change:
            row["stopped_ms"] = round(row["stopped_ms"] * factor)
            row["resumed_at_earliest"] = row["stopped_at_latest"] + row["stopped_ms"]
    return silver


def test_rows_do_not_change_with_the_order_of_silver_rows(slow) -> None:
    expected = gold(slow.silver())
    shuffled = {name: Random(3).sample(rows, len(rows)) for name, rows in slow.silver().items()}
    assert gold(shuffled) == expected


def test_a_day_is_judged_by_what_was_known_at_its_end(fast) -> None:
    day = 24 * 3_600_000
    alone = gold(fast.silver())["advice"]
    fast.restarts(0, day + 20_000, 5_000)
    both = gold(fast.silver())["advice"]
    assert [row for row in both if row["as_of"] < START + day] == alone
    assert len({row["as_of"] for row in both}) == 2


def gold(silver: dict) -> dict:
    known = {"broker": BrokerSettings(), "config": AnalysisConfig(), "since_ms": 0, "until_ms": START + 3_600_000}
    return gold_rows("kafka", "orders-app", silver, **known)
