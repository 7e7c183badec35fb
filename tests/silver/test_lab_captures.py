"""Silver has the events of the lab's script, within the second in which the lab printed them."""

from __future__ import annotations

from functools import cache
from typing import Any

from testing.warehouses.rebuilding import batches, silver_of

MARKS = ("joined", "left", "session_expired", "leader_changed")


@cache
def described(capture: str):
    return silver_of(batches(capture), capture)


def events(capture: str, group: str) -> list[tuple[str, str]]:
    """Return what happened to which member, in order; a Streams member's client id continues after the application's
    id.
    """
    rows = [row for row in described(capture)["group_events"] if row["group_id"] == group and row["kind"] in MARKS]
    return [
        (str(row["kind"]), (row["client_id"] or "").split("-StreamThread")[0])
        for row in sorted(rows, key=lambda row: (row["event_at"], row["kind"]))
    ]


def kind(capture: str, group: str) -> tuple[str, str]:
    """Return type and protocol of the group."""
    [row] = [row for row in described(capture)["groups"] if row["group_id"] == group]
    return row["group_type"], row["group_protocol"]


def tasks(given: list[dict[str, Any]] | None) -> list[tuple[str, int]]:
    return [(task["name"], task["index"]) for task in given or ()]


def test_an_application_of_the_classic_protocol_never_says_that_it_leaves():
    name = "clicks-counter-{}".format
    assert events("streams", "clicks-counter") == [
        ("joined", name(0)),
        ("joined", name(1)),
        ("joined", name(2)),
        ("session_expired", name(0)),  # 14:23:18 closes politely
        ("leader_changed", name(2)),
        ("joined", name(0)),
        ("session_expired", name(1)),  # 14:23:36 is killed
        ("joined", name(1)),
        ("session_expired", name(2)),  # 14:23:55 closes politely
        ("leader_changed", name(0)),
    ]
    assert ("streams", "classic") == kind("streams", "clicks-counter")


def test_one_of_the_streams_protocol_says_so_and_only_the_killed_one_is_missed():
    name = "visits-counter-{}".format
    assert events("streams", "visits-counter") == [
        ("joined", name(0)),
        ("joined", name(1)),
        ("joined", name(2)),
        ("left", name(0)),
        ("joined", name(0)),
        ("session_expired", name(1)),
        ("joined", name(1)),
        ("left", name(2)),
    ]
    assert ("streams", "streams") == kind("streams", "visits-counter")


def test_each_task_of_a_streams_group_has_one_owner_and_each_store_one_standby_elsewhere():
    members = [row for row in described("streams")["generation_members"] if row["group_id"] == "visits-counter"]
    settled = [
        row["generation_id"]
        for row in described("streams")["generations"]
        if row["group_id"] == "visits-counter" and row["outcome"] == "completed" and row["member_count"] > 1
    ]
    assert len(settled) > 3
    for generation in settled:
        rows = [row for row in members if row["generation_id"] == generation]
        owned = sorted(task for row in rows for task in tasks(row["assigned"]))
        stood_by = sorted(task for row in rows for task in tasks(row["standby"]))
        assert [(subtopology, partition) for subtopology in "01" for partition in range(4)] == owned
        assert [("1", partition) for partition in range(4)] == stood_by
        assert not any(set(tasks(row["assigned"])) & set(tasks(row["standby"])) for row in rows)


def test_a_share_group_has_members_and_epochs_and_nothing_that_stops():
    name = "mail-senders-{}".format
    assert events("share_registry", "mail-senders") == [
        ("joined", name(0)),
        ("joined", name(1)),
        ("joined", name(2)),
        ("left", name(0)),
        ("joined", name(0)),
        ("session_expired", name(1)),
        ("joined", name(1)),
    ]
    assert ("share", "share") == kind("share_registry", "mail-senders")
    assert [] == described("share_registry")["stalls"]


def test_the_registry_that_was_elected_leaves_and_is_elected_again_on_its_return():
    name = "schema-registry-{}".format
    assert events("share_registry", "schema-registry") == [
        ("joined", name(0)),
        ("joined", name(1)),
        ("joined", name(2)),
        ("leader_changed", name(0)),
        ("left", name(0)),
        ("leader_changed", name(1)),
        ("joined", name(0)),
        ("leader_changed", name(0)),
        ("session_expired", name(1)),
        ("joined", name(1)),
    ]
    elected = [row["detail"] for row in described("share_registry")["group_events"] if row["kind"] == "leader_changed"]
    assert [f"elected registry http://localhost:{port}" for port in (8081, 8082, 8081)] == elected
