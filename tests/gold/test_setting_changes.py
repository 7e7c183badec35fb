"""Which changes of a group's settings are found, and whether each made absences cheaper."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipelines.gold.advice.absence_costs import AbsenceCost, compare, status, t_quantile
from pipelines.gold.advice.change_rows import change_rows
from pipelines.gold.advice.latencies import BrokerSettings
from pipelines.gold.advice.setting_changes import setting_changes
from testing.warehouses.recorded import rows_of
from tests.gold.histories import START, EagerGroup

QUIET_MS = 10_000


def history(*, restarts: int = 12, away_ms: int = 5_000) -> dict[str, list[dict]]:
    group = EagerGroup(members=3, partitions=12, notice_ms=2_500)
    for at in range(restarts):
        group.restarts(at % 3, 60_000 * (at + 1), away_ms)
    return group.silver()


def with_setting(silver: dict[str, list[dict]], name: str, before: object, after: object, since: int) -> None:
    for row in silver["generation_members"]:
        row[name] = after if row["valid_from_at"] >= START + since else before


def rows(silver: dict[str, list[dict]]) -> list[dict]:
    return [dict(row) for row in change_rows(silver, BrokerSettings(), QUIET_MS)]


def test_a_group_whose_settings_stay_has_no_change() -> None:
    assert rows(history()) == []


def test_a_change_of_all_members_is_found_with_its_values_and_both_sides() -> None:
    silver = history()
    with_setting(silver, "session_timeout_ms", 45_000, 10_000, 60_000 * 6 + 30_000)
    (found,) = rows(silver)
    assert found["settings"] == [{"setting": "session_timeout_ms", "before": "45000", "after": "10000"}]
    assert (found["evidence"], found["absences_before"] + found["absences_after"]) == ("observed", 11)
    assert found["rollout_at"] <= found["changed_at"] <= found["as_of"]
    assert len(found["costs"]) == 11
    assert found["lost_before"] + found["lost_after"] == pytest.approx(
        sum(c["lost_resource_seconds"] for c in found["costs"])
    )


def test_members_that_differ_are_neither_before_nor_after() -> None:
    silver = history()
    sizes = Counter(row["generation_id"] for row in silver["generation_members"])
    mixed = sorted(generation for generation, members in sizes.items() if members == 3)[6]
    for row in silver["generation_members"]:
        is_new = row["generation_id"] > mixed or (row["generation_id"] == mixed and row["client_id"] == "app-0")
        row["rebalance_timeout_ms"] = 60_000 if is_new else 300_000
    (found,) = setting_changes(silver)
    joined = {g["generation_id"]: g["joined_at"] for g in silver["generations"]}
    assert (found.rollout_at, found.changed_at) == (joined[mixed], joined[mixed + 1])


def test_settings_that_change_in_one_rollout_are_one_change() -> None:
    silver = history()
    since = 60_000 * 6 + 30_000
    with_setting(silver, "session_timeout_ms", 45_000, 10_000, since)
    with_setting(silver, "group_instance_id", None, "app", since)
    (found,) = rows(silver)
    assert [each["setting"] for each in found["settings"]] == ["session_timeout_ms", "static_membership"]


def test_a_setting_that_always_differs_never_changes() -> None:
    silver = history()
    for row in silver["generation_members"]:
        row["session_timeout_ms"] = 10_000 if row["client_id"] == "app-0" else 45_000
    assert setting_changes(silver) == []


def test_rows_do_not_depend_on_the_order_of_silver_rows() -> None:
    silver = history()
    with_setting(silver, "group_instance_id", None, "app", 60_000 * 6 + 30_000)
    shuffled = {name: Random(5).sample(found, len(found)) for name, found in silver.items()}
    assert rows(shuffled) == rows(silver)


def costs(*lost: float) -> list[AbsenceCost]:
    return [AbsenceCost(stopped_at=at, lost=each) for at, each in enumerate(lost)]


def test_two_absences_on_a_side_are_too_few() -> None:
    assert compare(costs(9, 9), costs(1, 1, 1, 1)) is None
    assert status(compare(costs(9, 9), costs(1, 1, 1, 1))) == "tried"


def test_a_difference_within_chance_is_no_verdict() -> None:
    assert status(compare(costs(1, 9, 5), costs(2, 8, 3))) == "tried"
    assert status(compare(costs(20, 21, 22), costs(1, 2, 3))) == "verified"
    assert status(compare(costs(1, 2, 3), costs(20, 21, 22))) == "refuted"


def test_the_interval_is_that_of_a_known_example() -> None:
    # Welch's test of (27.5, 21.0, 19.0, 23.6) and (27.1, 22.0, 20.8, 23.4): 5.5 degrees of freedom.
    found = compare(costs(27.5, 21.0, 19.0, 23.6), costs(27.1, 22.0, 20.8, 23.4))
    assert found is not None
    assert found.saved == pytest.approx(4 * -0.55)
    assert (found.high - found.low) / 2 == pytest.approx(4 * 4.52, rel=0.01)


@pytest.mark.parametrize(("freedom", "exact"), [(2, 2.920), (3, 2.353), (5, 2.015), (10, 1.812), (100, 1.660)])
def test_quantiles_are_near_those_of_tables(freedom: float, exact: float) -> None:
    assert t_quantile(0.95, freedom) == pytest.approx(exact, rel=0.005)


@given(st.lists(st.floats(0, 1e6), min_size=3, max_size=20), st.lists(st.floats(0, 1e6), min_size=3, max_size=20))
@example([0.0, 0.0, 0.0], [0.0, 0.0, 1.9637949267131457e-142])
def test_an_interval_contains_its_estimate(before: list[float], after: list[float]) -> None:
    found = compare(costs(*before), costs(*after))
    assert found is not None
    assert found.low <= found.saved <= found.high


@pytest.fixture(scope="module")
def recorded() -> dict[str, dict]:
    """The lab's scenario `settings`: six restarts, a rolling restart with new settings, six restarts."""
    found = rows_of({"lab": "settings"})["setting_changes"]
    assert len(found) == 3
    return {row["group_id"]: row for row in found}


def test_absences_of_the_rolling_restart_count_for_neither_side(recorded) -> None:
    assert {(row["absences_before"], row["absences_after"]) for row in recorded.values()} == {(6, 6)}


def test_restarts_of_fourteen_seconds_cost_a_static_group_more_as_predicted(recorded) -> None:
    row = recorded["rates-reader"]
    assert {each["setting"] for each in row["settings"]} == {"session_timeout_ms", "static_membership"}
    assert (row["status"], row["evidence"]) == ("refuted", "observed")
    # Two partitions of the restarted member stop for some 14.5 s, six times.
    assert row["lost_after"] == pytest.approx(6 * 2 * 14.5, rel=0.05)
    assert row["saving_predicted_low"] < row["saving_measured"] < row["saving_predicted_high"]


def test_a_change_of_protocol_is_complete_when_the_last_classic_member_is_gone(recorded) -> None:
    row = recorded["rates-auditor"]
    assert row["settings"][0] == {"setting": "group_protocol", "before": "classic", "after": "consumer"}
    assert row["changed_at"] - row["rollout_at"] > timedelta(seconds=10)


def test_one_dear_absence_among_six_makes_it_too_early_to_judge(recorded) -> None:
    row = recorded["rates-writer"]
    assert (row["status"], row["saving_measured"] > 0) == ("tried", True)
    assert row["saving_measured_low"] < 0
