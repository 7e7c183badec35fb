"""The Health page lists the lasting patterns of a cluster, and hides from a reader what concerns groups of others."""

from __future__ import annotations

from dashboards.app import page
from dashboards.lake.lake import LocalLake
from dashboards.lake.readers import Readers, ReadersLake
from dashboards.queries.store import Store
from schemas.bronze import COVERAGE
from schemas.gold import CLUSTER_PATTERNS
from testing.alerts.rows import NOW, coverage, pattern, write
from tests.ui.reading import words


def shown(warehouse, prefixes: list[str] | None = None) -> str:
    lake = LocalLake(warehouse)
    if prefixes is not None:
        lake = ReadersLake(lake, lambda: Readers({"r": prefixes}).prefixes(["r"]))
    made, _, _ = page(Store(lake), "/health", "", None, NOW)
    return words(made)


def described(warehouse) -> None:
    write(warehouse, COVERAGE, [coverage(records=1, skipped=0, quarantined=0)])
    groups = ["alpha-1", "beta-1"]
    lasting = pattern("offsets_partition_down", "__consumer_offsets-7", groups, explanation="Seven is down.")
    over = pattern("stuck_rebalance", "alpha-1", ["alpha-1"], explanation="Over.", ended_at=NOW)
    mine = pattern("stuck_rebalance", "alpha-2", ["alpha-2"], explanation="It waits for alpha-2-0.")
    write(warehouse, CLUSTER_PATTERNS, [lasting, over, mine])


def test_what_lasts_is_listed_with_groups_and_what_to_do(tmp_path) -> None:
    described(tmp_path)
    text = shown(tmp_path)
    for part in (
        "Offsets partition down",
        "__consumer_offsets-7",
        "alpha-1, beta-1",
        "Seven is down.",
        "Bring it back.",
    ):
        assert part in text
    assert "It waits for alpha-2-0." in text
    assert "Over." not in text


def test_a_reader_sees_that_an_incident_hit_others_but_not_whom(tmp_path) -> None:
    described(tmp_path)
    text = shown(tmp_path, ["alpha-"])
    assert "It waits for alpha-2-0." in text
    assert "alpha-1 and 1 other" in text
    assert "beta-1" not in text
    assert "Seven is down." not in text
    assert "Patterns of the cluster" not in shown(tmp_path, ["gamma-"])


def test_nothing_is_listed_where_nothing_lasts(tmp_path) -> None:
    write(tmp_path, COVERAGE, [coverage(records=1, skipped=0, quarantined=0)])
    assert "Patterns of the cluster" not in shown(tmp_path)
