"""A new group id at each start is found; groups that live side by side, and groups known from the beginning, are not."""

from __future__ import annotations

import pytest

from pipelines.gold.patterns.new_groups import prefix_of
from schemas.silver import GROUPS
from testing.alerts.rows import HOUR, NOW
from tests.gold.patterns.clusters import ClusterRows

PATTERN = "new_group_per_start"
UUIDS = [f"{n:08x}-2f0a-4b7e-9d57-0c8b0d1f4a11" for n in range(0x6F1C0E1E, 0x6F1C0E1E + 8)]


@pytest.fixture
def described(tmp_path) -> ClusterRows:
    described = ClusterRows(tmp_path)
    life(described, "orders", 0, 48)
    return described


def life(described: ClusterRows, name: str, began: float, hours: float, state: str = "Empty") -> None:
    """A group that began some hours after the cluster's first record, two days ago."""
    first = NOW - 48 * HOUR + round(began * HOUR)
    described.add(
        GROUPS, group_id=name, incarnation=0, group_type="consumer", state=state, generation_id=2, member_count=0,
        first_seen_at=first, last_record_at=min(NOW, first + round(hours * HOUR)), is_deleted=False, evidence="observed",
    )  # fmt: skip


@pytest.mark.parametrize(
    "names",
    [
        [f"app-{1763982001123 + n * 999_983}" for n in range(8)],
        [f"app-{uuid}" for uuid in UUIDS],
        [f"app_{n}k3j9x2f8q" for n in range(8)],
        [f"app-2026-11-2{n}" for n in range(8)],
    ],
)
def test_one_group_after_the_other_with_one_prefix_is_found(described, names) -> None:
    for number, name in enumerate(names):
        life(described, name, 2 + 4 * number, 3.5, "Stable" if number == 7 else "Empty")
    (row,) = described.found(PATTERN)
    assert ("app", 8, 8, sorted(names)) == (row["subject"], row["times"], row["groups"], row["group_ids"])
    assert (["topic"], "inferred") == (row["sources"], row["evidence"])
    assert "8 groups begin with app and began at 8 different times" in row["explanation"]
    assert "are over and lasted 3 h 30 min (median)" in row["explanation"]
    assert row["last_at"] == row["started_at"] + 28 * HOUR


def test_ids_that_are_only_generated_are_found_too(described) -> None:
    for number, name in enumerate(UUIDS):
        life(described, name, 2 + 4 * number, 1)
    (row,) = described.found(PATTERN)
    assert ("", 8) == (row["subject"], row["groups"])


def test_numbered_groups_that_live_side_by_side_are_none(described) -> None:
    for number in range(20):
        life(described, f"worker-{number}", 2 + number, 48, "Stable")
    assert [] == described.found(PATTERN)


def test_one_start_and_end_of_many_instances_is_none(described) -> None:
    for number in range(20):
        life(described, f"worker-{number}", 2 + number * 0.001, 5)
    assert [] == described.found(PATTERN)


def test_groups_known_since_reading_began_are_none(described) -> None:
    for number in range(20):
        life(described, f"worker-{number}", 0, 5)
    assert [] == described.found(PATTERN)


def test_four_starts_are_too_few(described) -> None:
    for number in range(4):
        life(described, f"app-{number}", 2 + number, 0.5)
    assert [] == described.found(PATTERN)


@pytest.mark.parametrize("name", ["orders", "orders-worker", "v2-orders", "app-test", "team.topic"])
def test_a_name_without_a_made_up_end_has_no_prefix(name) -> None:
    assert None is prefix_of(name)


def test_matching_takes_no_time_on_long_names() -> None:
    assert prefix_of("a-1" * 10_000 + "!") is None
