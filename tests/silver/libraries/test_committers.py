"""The metadata of commits names the library only of the member that owned the partition and that it names."""

from __future__ import annotations

import json

import pytest

from pipelines.bronze_batch import bronze_rows
from pipelines.decoding.source_record import SourceRecord
from testing.records.samples import clients
from tests.silver.handmade import consumer, generation, member_id, rows

SHOWN = ("franz-go", "inferred", "commit")
UNKNOWN = ("unknown", None, None)


def libraries(
    committers: dict[int, str], *, client_id: str = "a", instance_id: str | None = None, more: int = 1
) -> dict[tuple[int, str], tuple]:
    """Library, evidence and sign by generation and member. A owns partition 0 and B partition 1, in 1 + `more`
    generations; both commit in the first."""
    members = [consumer(client_id, [0]), consumer("b", [1])]
    for each in members:
        each["subscription"] |= {"version": 3, "userDataLayout": "empty"}
        each["rebalanceTimeout"] = 50_000  # no library's default
    members[0]["groupInstanceId"] = instance_id
    records = [generation(1 + number, number * 10_000, members) for number in range(1 + more)]
    found = rows(records, (), [(1_000, 0, 5), (1_000, 1, 5), (2_000, 0, 9), (2_000, 1, 9)], committers)
    return {
        (row["generation_id"], row["client_id"]): (
            row["client_library"], row["client_library_evidence"], row["client_library_sign"],
        )
        for row in found["generation_members"]
    }  # fmt: skip


def test_a_member_that_its_own_commits_name_is_of_franz_go_before_and_after_a_rebalance() -> None:
    found = libraries({0: member_id("a")})
    assert {(1, "a"): SHOWN, (2, "a"): SHOWN, (1, "b"): UNKNOWN, (2, "b"): UNKNOWN} == found


def test_as_long_as_commits_may_follow_they_do_not_count() -> None:
    assert {UNKNOWN} == set(libraries({0: member_id("a"), 1: member_id("b")}, more=0).values())


@pytest.mark.parametrize("named", ["b", "gone"])
def test_a_commit_that_names_another_member_shows_nothing(named) -> None:
    assert {UNKNOWN} == set(libraries({0: member_id(named)}).values())


@pytest.mark.parametrize(("instance_id", "library"), [("node@host/<0.45.0>", ("brod", *SHOWN[1:])), (None, UNKNOWN)])
def test_a_process_of_brod_counts_where_it_is_the_members_own(instance_id, library) -> None:
    found = libraries({0: "'node@host'/<0.45.0>"}, instance_id=instance_id)
    assert {library} == {found[1, "a"], found[2, "a"]}


@pytest.mark.parametrize("capture", ["franz", "aiokafka", "kafkago", "kafkajs", "sarama-coop"])
def test_recorded_commits_of_franz_go_name_members_of_their_group_and_no_others_do(capture) -> None:
    records = [SourceRecord(0, at, at, key, value) for at, (key, value) in enumerate(clients(capture))]
    found = bronze_rows(records, cluster="c", log_epoch=0)
    joined = {
        member["memberId"]
        for row in found["coordinator_records"]
        if row["record_kind"] == "GroupMetadata" and not row["is_tombstone"]
        for member in json.loads(row["body"])["value"]["members"]
    }
    named = {(row["committer_library"], row["committer_id"]) for row in found["offset_commits"]}
    if capture == "franz":
        assert {"franz-go"} == {library for library, _ in named}
        assert {committer for _, committer in named} <= joined
    else:
        assert {(None, None)} == named


def test_a_commit_counts_more_than_a_client_id() -> None:
    assert SHOWN == libraries({0: member_id("rdkafka")}, client_id="rdkafka")[2, "rdkafka"]
