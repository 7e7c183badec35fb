"""A member is joined to the one pod it ran in, or to none; what ended the pod is then the cause and the verdict."""

from __future__ import annotations

import pytest

from pipelines.arrow_types import stored
from pipelines.gold.diagnosis.verdict_rows import verdict_rows
from pipelines.gold.diagnosis.verdicts import judgment
from pipelines.gold.pod_ends import PodIndex, address_of, pod_digests, pod_index
from pipelines.gold.rows import AnalysisConfig, broker, gold_rows
from schemas.gold import DIAGNOSES, MARKS, VERDICTS
from tests.gold.diagnosis.diagnosed_group import Group
from tests.gold.histories import START

GONE = 100_000
END = 2**45


def reported(at: int, change: str = "oom_killed", pod: str | None = "pod-a", **fields) -> dict:
    text = f"{change} payments/{pod}"
    known = {"cluster": "kafka", "marked_at": START + at, "kind": "kubernetes", "text": text, "change": change,
             "namespace": "payments", "pod": pod, "pod_uid": f"uid-{pod}", "addresses": [], "node": "node-3",
             "group_id": None, "group_ids": None, "marked_by": None, "container": None, "workload": None,
             "is_host_network": False, "detail": None}  # fmt: skip
    return known | fields


def started(at: int = -600_000, pod: str = "pod-a", address: str = "10.0.0.1", **fields) -> dict:
    return reported(at, "started", pod, addresses=[address], **fields)


def dying(index: int = 1) -> Group:
    """A group of which one member falls silent at `GONE`, so that its session expires later."""
    group = Group()
    group.dies(index, GONE)
    group.returns(index, GONE + 60_000)
    return group


def blamed(group: Group | dict, *marks: dict) -> list[dict]:
    silver = group.silver() if isinstance(group, Group) else group
    judged = judgment(silver, START + 30_000, pods=pod_index(marks))
    return verdict_rows(judged, silver["group_events"], 0, END)


def test_without_reports_of_pods_nothing_changes() -> None:
    (first, *_) = blamed(dying())
    assert ("session_expiry", "client_application", []) == (first["cause"], first["verdict"], first["pod_changes"])
    announced = reported(GONE) | {"change": None, "kind": "deploy"}
    assert blamed(dying()) == blamed(dying(), announced)
    assert PodIndex() == pod_index([announced])
    assert {} == pod_digests([announced])


@pytest.mark.parametrize(
    ("change", "cause", "verdict", "words"),
    [
        ("oom_killed", "pod_failure", "client_application", "The pod pod-a was OOMKilled"),
        ("probe_failed", "pod_failure", "client_application", "had a container killed by its probe"),
        ("container_failed", "pod_failure", "client_application", "had a container that failed"),
        ("evicted", "pod_failure", "client_application", "was evicted"),
        ("node_lost", "pod_failure", "client_application", "lost its node"),
        ("drained", "deploy", "deploy_or_scaling", "was drained from its node"),
        ("deleted", "deploy", "deploy_or_scaling", "was deleted"),
    ],
)
def test_what_ended_the_pod_is_the_cause(change, cause, verdict, words) -> None:
    row = blamed(dying(), started(), reported(GONE + 1_000, change, detail="exit code 137"))[0]
    assert (cause, verdict, "observed") == (row["cause"], row["verdict"], row["evidence"])
    assert words in row["reason"]
    assert "before its member was gone (observed)." in row["reason"]
    (line,) = (line for line in row["proof"] if "kubernetes [observed]" in line)
    assert "(exit code 137), joined by its address, the client host of app-1" in line
    (kept,) = row["pod_changes"]
    assert (START + GONE + 1_000, change, "app-1", "address") == (
        kept["changed_ms"], kept["change"], kept["instance"], kept["joined_by"],
    )  # fmt: skip


def test_rows_with_changes_of_pods_fit_their_tables() -> None:
    marks = [started(), reported(GONE + 1_000)]
    found = gold_rows(
        "kafka", "g", dying().silver(), broker=broker({}), config=AnalysisConfig(), since_ms=0, until_ms=END,
        tables=(DIAGNOSES, VERDICTS), pods=pod_index(marks),
    )  # fmt: skip
    assert 2 == stored(found["verdicts"], VERDICTS)["pod_changes"].combine_chunks().flatten().__len__()
    (why,) = (row for row in found["diagnoses"] if row["cause"] == "pod_failure")
    assert "The pods of app-1" in why["explanation"]
    assert "oom killed (once)" in why["explanation"]
    assert 2 == stored(marks, MARKS).num_rows


@pytest.mark.parametrize(
    "marks",
    [
        [started(), reported(GONE - 300_000)],  # long before
        [started(), reported(GONE + 90_000)],  # after it was gone
        [started(), started(pod="pod-b"), reported(GONE)],  # two pods with one address
        [started(is_host_network=True), reported(GONE)],  # the address of a node
        [started(address="10.0.0.9"), reported(GONE)],  # another pod
        [started(GONE + 5_000), reported(GONE + 6_000)],  # the pod is younger than the member
        [started(), reported(-60_000, "deleted"), reported(GONE)],  # the pod was gone when the member came
        [reported(GONE)],  # neither address nor name is known
    ],
)
def test_a_member_is_not_joined_to_a_pod_that_may_be_another(marks) -> None:
    row = blamed(dying(), *marks)[0]
    assert ("session_expiry", []) == (row["cause"], row["pod_changes"])
    assert blamed(dying()) == blamed(dying(), *marks)


@pytest.mark.parametrize(
    ("client_id", "is_found"),
    [
        ("billing-0", True), ("app/billing-0", True), ("billing-0@3", True), ("billing-0.billing.svc", True),
        ("billing-0-StreamThread-1-consumer", True), ("consumer-billing-0", False), ("billing-01", False),
        ("billing-0-1", False), ("Xbilling-0", False), ("billing", False),
    ],
)  # fmt: skip
def test_a_name_is_a_whole_word_of_an_id(client_id, is_found) -> None:
    silver = dying().silver()
    for row in silver["generation_members"]:
        if row["client_id"] == "app-1":
            row["client_id"] = client_id
    row = blamed(silver, reported(GONE, pod="billing-0"))[0]
    assert (["name"] if is_found else []) == [each["joined_by"] for each in row["pod_changes"]]


def test_pods_of_one_name_follow_each_other() -> None:
    """A StatefulSet starts the next pod under the same name, maybe with the address of the first."""
    first = [started(), reported(GONE, "deleted")]
    second = [started(GONE + 5_000, pod_uid="uid-2"), reported(GONE + 200_000, pod_uid="uid-2")]
    row = blamed(dying(), *first, *second)[0]
    assert ["deleted"] == [each["change"] for each in row["pod_changes"]]


def test_two_namespaces_with_a_pod_of_one_name_are_not_told_apart_by_name() -> None:
    silver = dying().silver()
    for row in silver["generation_members"]:
        row["client_id"] = "billing-0"
    other = reported(GONE, pod="billing-0", namespace="other", pod_uid="uid-2")
    assert [] == blamed(silver, reported(GONE, pod="billing-0"), other)[0]["pod_changes"]


def test_a_node_that_is_lost_takes_its_pods_with_it() -> None:
    lost = reported(GONE, "node_lost", None, pod_uid=None, text="node gone node-3")
    row = blamed(dying(), started(), lost)[0]
    assert "The node node-3 of its pod stopped answering or was removed" in row["reason"]
    assert ("pod_failure", "client_application") == (row["cause"], row["verdict"])
    assert [] == blamed(dying(), started(node="node-4"), lost)[0]["pod_changes"]


def test_the_most_specific_change_counts_and_a_deletion_by_name_is_of_the_pod_that_lived() -> None:
    both = [started(), reported(GONE, "container_failed"), reported(GONE + 500, "deleted"), reported(GONE, "evicted")]
    assert "evicted" == blamed(dying(), *both)[0]["pod_changes"][0]["change"]
    by_name = reported(GONE, "deleted", pod_uid=None)
    assert "deleted" == blamed(dying(), started(), by_name)[0]["pod_changes"][0]["change"]


def test_a_member_that_left_was_not_killed() -> None:
    group = Group()
    group.leaves(1, GONE, how="left", silent_ms=0, trigger="member_left")
    assert [] == blamed(group, started(), reported(GONE - 1_000))[0]["pod_changes"]
    row = blamed(group, started(), reported(GONE - 1_000, "deleted"))[0]
    assert ("scaling", "observed") == (row["cause"], row["evidence"])


def test_a_poll_that_was_reported_late_stays_the_cause() -> None:
    group = Group()
    group.polls_late(1, GONE)
    row = blamed(group, started(), reported(GONE - 1_000))[0]
    assert "poll_timeout" == row["cause"]
    assert "was OOMKilled" in row["reason"]


def test_crashes_again_and_again_stay_a_loop_and_name_the_pod() -> None:
    group = Group()
    marks = [started()]
    for number in range(4):
        group.dies(1, GONE + number * 90_000)
        group.returns(1, GONE + number * 90_000 + 5_000)
        marks.append(reported(GONE + number * 90_000))
    found = blamed(group, *marks)
    causes = {row["cause"] for row in found if row["pod_changes"]}
    assert causes <= {"crash_loop", "pod_failure"}
    assert all("was OOMKilled" in row["reason"] for row in found if row["pod_changes"])


def test_the_order_of_reports_does_not_matter_and_each_change_shows_in_the_digests() -> None:
    marks = [started(), reported(GONE), reported(GONE + 90_000, "deleted")]
    assert pod_index(marks) == pod_index(marks[::-1])
    assert pod_digests(marks) == pod_digests(marks[::-1])
    changed = [started(address="10.0.0.2"), *marks[1:]]
    assert {START // 60_000 - 10} == {
        int(minute) for minute, each in pod_digests(changed).items() if pod_digests(marks).get(minute) != each
    }


def test_hosts_are_addresses_in_their_shortest_form() -> None:
    assert ("10.0.3.7", "fd00::7", "a.b", "") == tuple(map(address_of, ("/10.0.3.7", "/fd00:0:0:0:0:0:0:7", "a.b", "")))
