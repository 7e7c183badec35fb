"""Recorded rebalances are blamed on what the script did to them, and little of their loss stays unexplained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from pipelines.gold.diagnosis.verdicts import Judged, judgment
from schemas.states import Verdict
from testing.warehouses.rebuilding import batches, silver_of

NAMES = ("connect", "eager_churn", "migration", "outage", "reassignment", "rolling_restart", "storms", "streams")
SOURCES = ("offsets,log", "offsets")

CLIENT, DEPLOY, CONFIGURATION = Verdict.CLIENT_APPLICATION, Verdict.DEPLOY_OR_SCALING, Verdict.CONFIGURATION
SCRIPTED = {
    # A kill and a start; a process stopped by signal and continued; a blocked poll loop; the end.
    ("eager_churn", "imports-joiner"): dict.fromkeys(range(5, 11), CLIENT) | {11: DEPLOY},
    # A clean stop and a start; a blocked poll loop; the end.
    ("eager_churn", "scoring-worker"): {5: DEPLOY, 6: DEPLOY, 7: CLIENT, 8: CLIENT, 9: DEPLOY, 10: DEPLOY},
    ("eager_churn", "routing-enricher"): {3: CLIENT, 4: CLIENT, 5: DEPLOY},
    ("rolling_restart", "exports-sync-dynamic"): dict.fromkeys(range(2, 9), DEPLOY),
    ("rolling_restart", "alerts-notifier-coop"): dict.fromkeys(range(2, 13), DEPLOY),
    # Epochs 11 and 12 were overtaken.
    ("rolling_restart", "stock-loader-next"): dict.fromkeys((*range(5, 11), 13), DEPLOY),
    ("storms", "cart-cleaner"): dict.fromkeys(range(2, 13), DEPLOY),
    ("storms", "label-printer"): dict.fromkeys(range(2, 12), CLIENT),
    ("storms", "receipt-writer"): dict.fromkeys(range(2, 12), CLIENT),
    # The topic got more partitions.
    ("reassignment", "sessions-writer"): {4: CONFIGURATION},
    ("migration", "crash"): {4: CLIENT},
    # A member sleeps in its revocation callback whenever the others wait for it.
    ("eager_churn", "pricing-loader"): {3: CLIENT, 4: CLIENT, 5: CLIENT},
}
ONLY_LOGGED = {
    # A worker stops cleanly and is back within Connect's delay; another is killed and is back after it.
    ("connect", "mailer-writer-connect"): {12: DEPLOY, 13: DEPLOY, 14: DEPLOY, 15: CLIENT, 16: CLIENT, 17: CLIENT},
}


def judged(name: str, sources: str) -> Iterator[tuple[str, Judged]]:
    rows = silver_of(batches(name, sources=sources), name)
    for group in sorted({g["group_id"] for g in rows["generations"]}):
        mine = {table: [r for r in found if r["group_id"] == group] for table, found in rows.items()}
        yield from ((group, j) for j in judgment(mine).rebalances)


@pytest.fixture(scope="module", params=SOURCES)
def found(request) -> dict[tuple[str, str], list[Judged]]:
    """By capture and group; the parameter is the sources."""
    out: dict[tuple[str, str], list[Judged]] = {}
    for name in NAMES:
        for group, each in judged(name, request.param):
            out.setdefault((name, group), []).append(each)
    return out


def is_logged(request) -> bool:
    return request.node.callspec.params["found"] == SOURCES[0]


def test_what_the_script_did_is_the_verdict(found, request) -> None:
    for key, expected in (SCRIPTED | (ONLY_LOGGED if is_logged(request) else {})).items():
        verdicts = {j.row["generation_id"]: j.verdict for j in found[key] if j.row["generation_id"] in expected}
        assert expected == verdicts, key


def test_no_broker_is_blamed_where_none_failed(found) -> None:
    assert Verdict.BROKER not in {j.verdict for mine in found.values() for j in mine}


def test_little_of_the_loss_has_no_verdict(found, request) -> None:
    lost: Counter[Verdict] = Counter()
    for mine in found.values():
        for j in mine:
            lost[j.verdict] += j.loss.best
    assert sum(lost.values()) > 500_000
    assert lost[Verdict.UNKNOWN] / sum(lost.values()) < (0.02 if is_logged(request) else 0.15)
