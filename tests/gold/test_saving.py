"""A saving is the difference of two replays of the same churn, seed by seed; the loss itself stays measured."""

from __future__ import annotations

import pytest

from pipelines.gold.advice.prediction import MODEL_ERROR, Prediction, saving
from tests.gold.histories import EagerGroup
from tests.gold.test_advice import advice


def prediction(exact: list[float], drawn: list[float]) -> Prediction:
    lost = sum(exact) / len(exact)
    return Prediction(lost=lost, low=0, high=0, rebalances=1, exact=tuple(exact), drawn=tuple(drawn))


def test_what_both_replays_of_a_pair_share_cancels() -> None:
    shared = [10.0 * n for n in range(1, 61)]
    now = prediction([s + 8 for s in shared], [s + 8 for s in shared])
    changed = prediction(shared, shared)
    found = saving(now, changed)
    assert found.estimate == pytest.approx(8)
    # Not the range of the replays (600), only the error of the one that cannot be compared with what happened.
    assert found.high - found.low == pytest.approx(2 * MODEL_ERROR * changed.lost)


def test_an_interval_holds_nineteen_of_twenty_pairs_of_each_set() -> None:
    now = prediction([100.0 + n for n in range(60)], [200.0 + n for n in range(60)])
    found = saving(now, prediction([1.0] * 60, [1.0] * 60))
    assert (found.low, found.high) == (100.0, 257.0)


@pytest.fixture
def slow() -> dict[str, dict]:
    group = EagerGroup(members=4, partitions=40, notice_ms=2_500, callback_ms=20_000)
    for at, index in enumerate((0, 1, 2, 3)):
        group.restarts(index, 100_000 + at * 100_000, 60_000)
    return advice(group)


def test_a_saving_is_replay_against_replay_and_the_loss_is_measured(slow) -> None:
    for row in slow.values():
        assert row["saving"] == pytest.approx(row["lost_replayed"] - row["lost_predicted"])
        assert row["saving_low"] <= row["saving"] <= row["saving_high"]
        assert row["saving_ratio"] == pytest.approx(row["saving"] / row["lost_replayed"])
        assert row["lost_now"] == slow["none"]["lost_now"]
    assert slow["none"]["lost_predicted"] == slow["none"]["lost_replayed"] != slow["none"]["lost_now"]


def test_recommended_is_what_saves_enough_even_at_the_low_end(slow) -> None:
    for action, row in slow.items():
        enough = row["saving_low"] >= max(10, 0.1 * row["lost_now"])
        missing = any(text.startswith("missing") for text in row["preconditions"])
        assert row["is_recommended"] == (enough and not missing) or action == "none"


def test_the_explanation_says_what_is_measured_and_what_is_replayed(slow) -> None:
    text = slow["static_membership"]["explanation"]
    assert "resource-seconds, as measured. A replay with the current settings gives" in text
    assert "would save \N{ALMOST EQUAL TO} " in text
