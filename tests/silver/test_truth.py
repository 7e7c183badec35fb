"""The rows that are rebuilt from recorded histories, compared with what really happened."""

from __future__ import annotations

from collections import defaultdict
from statistics import median
from typing import Any

import pytest

from testing.warehouses.rebuilding import batches, silver_of, truth

CAPTURES = ("eager_churn", "rolling_restart")
SLACK_MS = 150
"""A client's callback and the coordinator's record are not the same instant."""


@pytest.fixture(scope="module", params=CAPTURES)
def with_log(request) -> tuple[dict[str, Any], dict[str, Any]]:
    return silver_of(batches(request.param), request.param), truth(request.param)


@pytest.fixture(scope="module", params=CAPTURES)
def without_log(request) -> tuple[dict[str, Any], dict[str, Any]]:
    """The rows from `__consumer_offsets` alone."""
    return silver_of(batches(request.param, sources="offsets"), request.param), truth(request.param)


def classic(summary: dict[str, Any]) -> dict[str, Any]:
    return {name: g for name, g in summary["groups"].items() if g["config"]["protocol"] == "classic"}


def of(rows: dict[str, Any], protocol: str) -> list[dict[str, Any]]:
    return [r for r in rows["generations"] if r["group_protocol"] == protocol]


def generations(rows: dict[str, Any], summary: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return every completed generation that happened, with our row for it."""
    ours = {(r["group_id"], r["generation_id"]): r for r in rows["generations"]}
    return [
        (t, ours[name, t["generation"]])
        for name, g in classic(summary).items()
        for t in g["generations"]
        if t["outcome"] in ("stable", "empty") and not t["after_capture"]
    ]


def stops(rows: dict[str, Any], summary: dict[str, Any]) -> tuple[list[tuple[float, float, dict[str, Any]]], int]:
    """Return every hand-over that happened, under any protocol, with our nearest window for it, and the number without
    one.
    """
    ours: dict[tuple[str, str, int], list[dict[str, Any]]] = defaultdict(list)
    for r in rows["stalls"]:
        if r["resumed_at_latest"] is not None:
            ours[r["group_id"], r["name"], r["index"]].append(r)
    found, missing = [], 0
    for name, g in summary["groups"].items():
        for t in g["stops"]:
            # A member that was frozen or blocked learns too late that it lost its partitions.
            a = t["last_message_ms"] if t["end"] in ("lost", "superseded") else t["end_ms"]
            b = t["assign_ms"]
            if a is None or b is None:
                continue
            near = [
                r
                for r in ours[name, t["topic"], t["partition"]]
                if r["stopped_at_earliest"] <= b + SLACK_MS and r["resumed_at_latest"] >= a - SLACK_MS
            ]
            if not near:
                missing += 1
                continue
            best = min(near, key=lambda r: abs(r["resumed_at_earliest"] - b))
            ours[name, t["topic"], t["partition"]].remove(best)
            found.append((a, b, best))
    return found, missing


def test_every_completed_generation_is_there_and_none_is_invented(with_log) -> None:
    rows, summary = with_log
    happened = {
        (n, t["generation"])
        for n, g in classic(summary).items()
        for t in g["generations"]
        if t["outcome"] in ("stable", "empty")
    }
    ours = of(rows, "classic")
    assert happened >= {(r["group_id"], r["generation_id"]) for r in ours}
    assert len(ours) == len(generations(rows, summary))


def test_every_epoch_is_there_at_its_time_and_none_is_invented(with_log, without_log) -> None:
    for rows, summary in (with_log, without_log):
        happened = {(n, t["epoch"]): t for n, g in summary["groups"].items() for t in g["epochs"]}
        ours = {(r["group_id"], r["generation_id"]): r for r in of(rows, "consumer")}
        assert happened.keys() == ours.keys()
        for key, t in happened.items():
            assert abs(ours[key]["joined_at"] - t["bumped_ms"]) <= 15
            assert (ours[key]["synced_at"] is None) == (t["target_ms"] is None)
            if t["target_ms"] is not None:
                assert abs(ours[key]["synced_at"] - t["target_ms"]) <= 15


def test_who_joined_left_and_came_back_is_as_the_coordinator_said(with_log) -> None:
    rows, summary = with_log
    kinds = {"joined": "joined", "left": "left", "left_temporarily": "left", "replaced": "static_returned"}
    for name, g in summary["groups"].items():
        if g["config"]["protocol"] == "consumer":
            printed = sorted((kinds[e["what"]], e["member_id"]) for e in g["member_events"])
            ours = [e for e in rows["group_events"] if e["group_id"] == name and e["kind"] in kinds.values()]
            assert printed == sorted((e["kind"].value, e["member_id"]) for e in ours)


def test_members_leader_and_emptiness_are_exact(with_log) -> None:
    for t, row in generations(*with_log):
        assert (t["members"], t["leader"], t["outcome"] == "empty") == (
            row["member_count"],
            row["leader_member_id"],
            row["is_empty"],
        )


def test_instants_are_the_logs_to_a_few_milliseconds(with_log) -> None:
    for t, row in generations(*with_log):
        assert abs(row["joined_at"] - t["join_end_ms"]) <= 10
        if t["outcome"] == "stable":
            assert abs(row["synced_at"] - t["sync_end_ms"]) <= 10
            assert abs(row["prepared_at"] - t["prepare_ms"]) <= 10


def test_the_trigger_is_the_coordinators_reason(with_log) -> None:
    expected = {
        "LeaveGroup": {"member_left", "poll_timeout"},
        "heartbeat": {"session_expired"},
        "Adding new member": {"member_joined", "first_member"},
        "re-joining": {"leader_rejoined", "cooperative_followup"},
        "Updating metadata for member": {"metadata_changed", "cooperative_followup"},
    }
    for t, row in generations(*with_log):
        allowed = next(v for k, v in expected.items() if k in t["reason"])
        assert row["trigger"] in allowed


def test_a_rebalance_lasted_what_its_bounds_allow(with_log, without_log) -> None:
    for t, row in [*generations(*with_log), *generations(*without_log)]:
        if t["outcome"] == "stable":
            assert row["rebalance_ms_min"] - 25 <= t["sync_end_ms"] - t["prepare_ms"] <= row["rebalance_ms_max"] + 25


def test_every_stop_is_found_within_its_bounds(with_log, without_log) -> None:
    for rows, summary in (with_log, without_log):
        found, missing = stops(rows, summary)
        assert missing == 0
        outside = [
            (a, b, r)
            for a, b, r in found
            if not (
                r["stopped_at_earliest"] - SLACK_MS <= a <= r["stopped_at_latest"] + SLACK_MS
                and r["resumed_at_earliest"] - SLACK_MS <= b <= r["resumed_at_latest"] + SLACK_MS
            )
        ]
        assert outside == []


def test_bounds_are_no_wider_than_needed_and_estimates_close(with_log) -> None:
    found, _ = stops(*with_log)
    widths = sorted(
        r["stopped_at_latest"] - r["stopped_at_earliest"] + r["resumed_at_latest"] - r["resumed_at_earliest"]
        for _, _, r in found
    )
    errors = sorted(abs(r["stopped_ms"] - (b - a)) for a, b, r in found)
    assert median(widths) <= 700
    assert widths[int(0.9 * len(widths))] <= 4_000
    assert median(errors) <= 5
    assert errors[int(0.9 * len(errors))] <= 300


def test_lost_partition_seconds_add_up(with_log) -> None:
    found, _ = stops(*with_log)
    assert sum(b - a for a, b, _ in found) == pytest.approx(sum(r["stopped_ms"] for *_, r in found), rel=0.1)


def test_without_the_log_a_start_is_stated_only_where_a_record_states_it(without_log) -> None:
    rows, _ = without_log
    declared = {r["generation_id"] for r in of(rows, "classic") if r["prepared_at"] is not None}
    assert declared == {1}
