"""An owner that does not work is found if polls show that records arrive, and only then."""

from __future__ import annotations

import json

import pytest

from schemas.bronze import OFFSET_COMMITS
from schemas.silver import GENERATION_MEMBERS
from testing.alerts.rows import HOUR, MINUTE, NOW
from tests.gold.patterns.clusters import ClusterRows

PATTERN = "owner_not_working"
STOPPED = NOW - HOUR


@pytest.fixture
def described(tmp_path) -> ClusterRows:
    described = ClusterRows(tmp_path)
    described.group("orders", 7)
    for member in described.rows[GENERATION_MEMBERS]:
        member["assigned"] = [{"name": "in", "index": int(member["client_id"][-1])}]
    return described


def commits(described: ClusterRows, partition: int, last: int = STOPPED, offset: int = 100, number: int = 60) -> None:
    described.add(
        OFFSET_COMMITS, group_id="orders", topic="in", partition=partition, is_tombstone=False, source_partition=7,
        first_commit_at=last - 10 * MINUTE, last_commit_at=last, last_committed_offset=offset, last_offset=1,
        first_offset=0, commits=number,
    )  # fmt: skip


def polls(described: ClusterRows, grows: int = 500) -> None:
    for minutes in (50, 30, 10):
        ends = {"0": 100 + grows * (60 - minutes), "1": 100 + grows * (60 - minutes), "2": 100}
        described.poll(NOW - minutes * MINUTE, "end_offsets", "in", json.dumps({"topic": "in", "ends": ends}))


def test_an_owner_whose_commits_stopped_while_records_arrive_is_named(described) -> None:
    commits(described, 0)
    commits(described, 1, last=NOW)
    commits(described, 2)
    polls(described)
    (row,) = described.found(PATTERN)
    assert ("orders", ["orders-0", "/10.0.0.0"], STOPPED) == (row["subject"], row["instances"], row["started_at"])
    assert (["poll", "topic"], "inferred", None) == (row["sources"], row["evidence"], row["ended_at"])
    assert (
        "1 partition of orders (in-0) has an owner (orders-0 at /10.0.0.0), but no commit since" in row["explanation"]
    )
    assert "25,000 wait" in row["explanation"]


def test_without_polls_nothing_is_shown(described) -> None:
    commits(described, 0)
    assert [] == described.found(PATTERN)


def test_a_partition_without_new_records_is_idle(described) -> None:
    commits(described, 0)
    polls(described, grows=0)
    assert [] == described.found(PATTERN)


@pytest.mark.parametrize("number", [1, 4])
def test_a_group_that_rarely_commits_is_not_judged(described, number) -> None:
    commits(described, 0, number=number)
    polls(described)
    assert [] == described.found(PATTERN)


def test_a_partition_without_an_owner_is_another_pattern(described) -> None:
    for member in described.rows[GENERATION_MEMBERS]:
        member["assigned"] = []
    commits(described, 0)
    polls(described)
    assert [] == described.found(PATTERN)
