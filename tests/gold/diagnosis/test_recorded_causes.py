"""The causes of recorded rebalances are those of the script, and without the log the same or unknown."""

from __future__ import annotations

import pytest

from pipelines.gold.diagnosis.causes import cause_of, context
from pipelines.gold.diagnosis.diagnosis import diagnosis_rows
from schemas.states import NORMAL_CAUSES, DiagnosisCause
from testing.warehouses.rebuilding import batches, silver_of


def of_capture(name: str, sources: str) -> dict[tuple[str, int], object]:
    """(group, generation) → what was found."""
    rows = silver_of(batches(name, sources=sources), name)
    out = {}
    for group in {g["group_id"] for g in rows["generations"]}:
        mine = {table: [r for r in found if r["group_id"] == group] for table, found in rows.items()}
        known = context(mine)
        out |= {(group, g["generation_id"]): cause_of(g, known) for g in mine["generations"]}
        shares = [row["share"] for row in diagnosis_rows(mine, 0)]
        assert sum(shares) == pytest.approx(1)
    return out


SCRIPTED = {
    # A kill and a start; a process stopped by signal and continued; a blocked poll loop.
    "imports-joiner": {5: "session_expiry", 6: "session_expiry", 7: "session_expiry", 8: "session_expiry"}
    | {9: "poll_timeout", 10: "poll_timeout", 11: "scaling"},
    # A clean stop and a start; a blocked poll loop; the end.
    "scoring-worker": {5: "deploy", 6: "deploy", 7: "poll_timeout", 8: "poll_timeout", 9: "scaling", 10: "scaling"},
    "routing-enricher": {3: "session_expiry", 4: "session_expiry", 5: "scaling"},
    # One member sleeps in its revocation callback whenever the others wait for it.
    "pricing-loader": {3: "slow_joiner", 4: "slow_joiner", 5: "slow_joiner", 7: "scaling"},
}


@pytest.fixture(scope="module")
def churned() -> dict:
    return of_capture("eager_churn", "offsets,log")


def test_the_recorded_accidents_are_kept_apart(churned) -> None:
    for group, expected in SCRIPTED.items():
        found = {n: churned[group, n].cause.value for n in expected}
        assert expected == found, group


@pytest.mark.parametrize("name", ["eager_churn", "connect", "streams", "migration"])
def test_without_the_log_a_cause_is_the_same_or_unknown(name) -> None:
    logged, alone = of_capture(name, "offsets,log"), of_capture(name, "offsets")
    assert logged.keys() == alone.keys()
    for key, found in alone.items():
        assert found.set_off_by in (logged[key].set_off_by, DiagnosisCause.UNKNOWN), key
        assert found.evidence == "inferred" or name != "eager_churn", key


@pytest.mark.parametrize("sources", ["offsets,log", "offsets"])
def test_recorded_rolling_restarts_are_deploys_under_every_protocol(sources) -> None:
    found = of_capture("rolling_restart", sources)
    causes = {
        group: [found[group, n].cause.value for n in numbers]
        for group, numbers in (
            ("exports-sync-dynamic", range(2, 8)),
            ("alerts-notifier-coop", range(2, 11)),
            ("stock-loader-next", range(5, 11)),
        )
    }
    assert causes["exports-sync-dynamic"] == causes["stock-loader-next"] == ["deploy"] * 6
    assert causes["alerts-notifier-coop"] == ["deploy", "deploy", "follow_ups"] * 3
    assert all(f.set_off_by in NORMAL_CAUSES for f in found.values())


def test_a_recorded_connect_delay_is_distinguished_from_the_departures_before_it() -> None:
    found = of_capture("connect", "offsets,log")
    causes = [found["mailer-writer-connect", n].cause.value for n in range(12, 18)]
    assert causes == ["deploy", "deploy", "connect_delay", "session_expiry", "connect_delay", "session_expiry"]
