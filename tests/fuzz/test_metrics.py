"""A random part of `regroup bench malformed-metrics`; REGROUP_SEED repeats the same part."""

from __future__ import annotations

from testing.fuzzing.metrics import send
from tests.fuzz.test_fuzz import SEED


def test_only_this_machines_own_names_get_metrics_and_nothing_breaks_the_port() -> None:
    found = send(5_000, SEED)
    assert found.wrong == [], f"repeat with REGROUP_SEED={SEED}"
    assert found.statuses["200 OK"] > 100
    assert found.slowest_s < 1
