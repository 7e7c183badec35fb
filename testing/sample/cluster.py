"""What the sample has beside groups: coverage, reassignments, marks, deploys, storms and verdicts. Times in ms."""

from __future__ import annotations

from typing import Any

from testing.sample.history import CLUSTER
from testing.sample.tables import Rows


def coverage(now: int) -> Rows:
    row = {
        "cluster": CLUSTER, "source": "__consumer_offsets", "source_partition": 7, "log_epoch": 0, "from_offset": 0,
        "to_offset": 2000, "is_gap": False, "from_at": now - 52 * 60_000, "to_at": now, "records": 2000, "skipped": 0,
        "quarantined": 0,
    }  # fmt: skip
    return {"coverage": [row]}


def moves(now: int) -> Rows:
    """Return reassignments of topic `orders`: one running, one stalled, one cancelled, one that ended with unknown
    outcome.
    """
    first = {
        "cluster": CLUSTER, "topic": "orders", "partition": 0, "started_at": now - 40 * 60_000,
        "started_at_earliest": now - 40 * 60_000 - 900, "original_replicas": [1, 0, 2], "target_replicas": [2, 3, 5],
        "replicas": [2, 3, 5, 0, 1], "adding": [3, 5], "removing": [0, 1], "leader": 1, "isr": [0, 1, 2],
        "state": "running", "phase": "replicas_added", "bytes_total": 80_000_000, "bytes_done": 20_000_000,
        "progress": 0.25, "bytes_per_second": 1_300_000.0, "eta_at": now + 46_000, "last_observed_at": now,
        "sources": ["poll"], "evidence": "bounded",
    }  # fmt: skip
    stalled = {
        "partition": 1, "state": "stalled", "stalled_since_at": now - 90_000, "eta_at": None, "bytes_per_second": 0.0,
        "phase": "caught_up",
    }  # fmt: skip
    ended = {"completed_at": now - 20 * 60_000, "completed_at_earliest": now - 20 * 60_000 - 900, "eta_at": None}
    cancelled = ended | {"partition": 2, "state": "cancelled", "started_at_earliest": None}
    unknown = {"partition": 3, "state": None, "bytes_total": None, "bytes_done": None, "bytes_per_second": None}
    return {"reassignments": [first, first | stalled, first | cancelled, first | ended | unknown]}


def announced(now: int) -> Rows:
    """A deploy 3 s before `billing-worker` lost a member, one of another group, and work on the cluster."""
    mark: dict[str, Any] = {"cluster": CLUSTER, "group_id": None, "group_ids": [], "marked_by": "ci"}
    return {
        "marks": [
            mark | {"marked_at": now - 28 * 60_000 - 3_000, "kind": "deploy", "text": "v2.31"},
            mark | {"marked_at": now - 20 * 60_000, "kind": "deploy", "text": "v7", "group_id": "search-indexer",
                    "group_ids": ["search-indexer"]},
            mark | {"marked_at": now - 12 * 60_000, "kind": "maintenance", "text": "broker 3 gets new disks",
                    "marked_by": None},
        ]
    }  # fmt: skip


def deploys(now: int, group: str = "billing-worker") -> Rows:
    """The announced deploy, after which a member stayed away, and one before that nobody announced."""
    began = now - 28 * 60_000 - 3_000
    newest: dict[str, Any] = {
        "cluster": CLUSTER, "group_id": group, "started_at": began, "text": "v2.31", "evidence": "observed",
        "ended_at": began + 60_000, "stable_at": began + 62_000, "stable_ms": 62_000, "rebalances": 4,
        "lost_resource_seconds_min": 40.0, "lost_resource_seconds_low": 70.0, "lost_resource_seconds": 90.0,
        "lost_resource_seconds_high": 120.0, "lost_resource_seconds_max": 150.0,
        "restarted": ["billing-0", "billing-1"], "not_back": ["billing-2"], "not_back_hosts": ["/10.0.4.13"],
        "members_before": 3, "members_after": 2,
        "slowest": "billing-1", "slowest_host": "/10.0.4.12", "slowest_waited_ms": 7_200,
        "window_start_at": began - 86_400_000, "window_end_at": began + 86_400_000,
    }  # fmt: skip
    before = newest | {
        "started_at": began - 600_000, "text": None, "evidence": "inferred", "ended_at": began - 570_000,
        "stable_at": began - 569_000, "stable_ms": 31_000, "rebalances": 6, "lost_resource_seconds_min": 20.0,
        "lost_resource_seconds_low": 28.0, "lost_resource_seconds": 30.0, "lost_resource_seconds_high": 33.0,
        "lost_resource_seconds_max": 40.0, "restarted": ["billing-0", "billing-1", "billing-2"], "not_back": [],
        "not_back_hosts": [], "members_after": 3, "slowest": None, "slowest_host": None, "slowest_waited_ms": None,
    }  # fmt: skip
    return {"deploys": [newest, before]}


def setting_changes(now: int, group: str = "billing-worker", text: str = "range") -> Rows:
    """A change that made absences cheaper, and an earlier one that cannot be judged. `text` is the former assignor."""
    changed, sides = now - 20 * 60_000, (12.0, 14.0, 13.0, 2.0, 3.0, 2.5)
    cost = [
        {"stopped_ms": changed + (i - 3) * 120_000 + 1_000, "lost_resource_seconds": lost}
        for i, lost in enumerate(sides)
    ]
    judged: dict[str, Any] = {
        "cluster": CLUSTER, "group_id": group, "as_of": now, "changed_at": changed, "rollout_at": changed - 30_000,
        "settings": [{"setting": "assignor", "before": text, "after": "cooperative-sticky"}],
        "evidence": "observed", "status": "verified", "absences_before": 3, "absences_after": 3,
        "lost_before": 39.0, "lost_after": 7.5, "rebalances_before": 6, "rebalances_after": 12,
        "saving_measured": 31.5, "saving_measured_low": 26.0, "saving_measured_high": 37.0,
        "saving_predicted": 28.0, "saving_predicted_low": 20.0, "saving_predicted_high": 34.0, "costs": cost,
    }  # fmt: skip
    unknown = dict.fromkeys(name for name in judged if name.startswith("saving_"))
    early = judged | unknown | {"changed_at": changed - 600_000, "rollout_at": changed - 600_000, "status": "tried"}
    return {"setting_changes": [judged, early | {"absences_before": 1, "absences_after": 0, "costs": cost[:1]}]}


def _hit(group: str, rebalances: int, lost: float, width: float = 0) -> dict[str, Any]:
    lengths = {
        "_min": lost - 2 * width,
        "": lost,
        "_max": lost + 2 * width,
        "_low": lost - width,
        "_high": lost + width,
    }
    return {"group_id": group, "rebalances": rebalances} | {
        f"lost_resource_seconds{end}": length for end, length in lengths.items()
    }


def storms(now: int) -> Rows:
    """A storm of two groups after a deploy, and an open storm of one group in which no attribute stands out."""
    began = now - 28 * 60_000
    together = {
        "cluster": CLUSTER, "storm_id": "together", "scope": "fleet", "started_at": began,
        "detected_at": began + 45_000, "ended_at": began + 3 * 60_000, "is_open": False, "groups": 2,
        "group_ids": ["imports-joiner", "billing-worker"],
        "rebalances": 4, "unexplained_rebalances": 3, "lost_resource_seconds_min": 700.5,
        "lost_resource_seconds": 835.2, "lost_resource_seconds_max": 901.0,
        "suspected_cause": "session_expiry", "score": 0.75,
        "differences": [
            {"attribute": "client_host", "value": "/10.0.4.13", "share": 1.0, "baseline": 0.125, "lift": 8.0},
            {"attribute": "assignor", "value": "range", "share": 1.0, "baseline": 0.0, "lift": 1e6},
        ],
        "causes": [
            {"cause": "session_expiry", "rebalances": 2, "groups": 2},
            {"cause": "deploy", "rebalances": 1, "groups": 1},
        ],
        "by_group": [_hit("imports-joiner", 1, 600.0, 33.0), _hit("billing-worker", 3, 235.2)],
        "verdict": "broker", "verdicts": [
            {"verdict": "broker", "rebalances": 3, "lost_resource_seconds": 811.2},
            {"verdict": "deploy_or_scaling", "rebalances": 1, "lost_resource_seconds": 24.0},
        ],
        "evidence": "observed", "explanation": "Two groups lost members within seconds of each other.",
    }  # fmt: skip
    alone = together | {
        "storm_id": "alone", "scope": "group", "started_at": now - 14 * 60_000, "detected_at": now - 13 * 60_000,
        "ended_at": None, "is_open": True, "groups": 1, "group_ids": ["billing-worker"], "rebalances": 2,
        "unexplained_rebalances": 2, "lost_resource_seconds_min": 80.0, "lost_resource_seconds": 90.0,
        "lost_resource_seconds_max": 130.0, "suspected_cause": "unknown", "score": 0.0, "differences": [],
        "causes": [], "by_group": [_hit("billing-worker", 2, 90.0)], "verdict": None, "verdicts": [],
        "evidence": "inferred", "explanation": "It rebalanced far more often than it used to.",
    }  # fmt: skip
    return {"storms": [together, alone]}


BLAMED = {"session_expired": ("broker", "coordinator"), "poll_timeout": ("client_application", "poll_timeout")}
"""Verdict and cause by trigger; the sample's other rebalances are due to scaling."""


def verdicts(history: Rows) -> Rows:
    """The verdicts on the rebalances of one group's history."""
    lost: dict[int, int] = {}
    for stall in history["stalls"]:
        lost[stall["generation_id"]] = lost.get(stall["generation_id"], 0) + (stall["stopped_ms"] or 0)
    out = []
    for g in history["generations"]:
        verdict, cause = BLAMED.get(g["trigger"], ("deploy_or_scaling", "scaling"))
        seconds = lost.get(g["generation_id"], 0) / 1000
        out.append({
            "cluster": g["cluster"], "group_id": g["group_id"], "incarnation": g["incarnation"],
            "generation_id": g["generation_id"], "joined_at": g["joined_at"], "verdict": verdict, "cause": cause,
            "set_off_by": cause, "evidence": "observed" if g["trigger"] in BLAMED else "inferred",
            "instances": ["billing-3"], "hosts": ["/10.0.4.13"], "lost_resource_seconds_min": 0.9 * seconds,
            "lost_resource_seconds": seconds, "lost_resource_seconds_max": 1.1 * seconds,
            "reason": "The group's coordinator moved during the rebalance, so the members had to join again there.",
            "proof": [f"record {g['source_offset']} of __consumer_offsets-7", "coordinator moved (broker 2 took over)"],
        })  # fmt: skip
    return {"verdicts": out}


PUSHED_EACH_MS = 300_000


def pushes(history: Rows, software: str = "apache-kafka-java") -> Rows:
    """What the members of one group's history pushed every five minutes (KIP-714).

    A member that left after a poll timeout had not polled for longer than its poll interval allows.
    """
    late = {g["trigger_member_id"] for g in history["generations"] if g["trigger"] == "poll_timeout"}
    until = max(g["joined_at"] for g in history["generations"])
    spans: dict[str, dict[str, Any]] = {}
    for row in sorted(history["generation_members"], key=lambda row: row["valid_from_at"]):
        span = spans.setdefault(row["member_id"], row | {"since": row["valid_from_at"]})
        span["valid_to_at"] = row["valid_to_at"]
    out: list[dict[str, Any]] = []
    for member_id, row in spans.items():
        times = range(row["since"] + 60_000, row["valid_to_at"] or until + PUSHED_EACH_MS, PUSHED_EACH_MS)
        for number, at in enumerate(times):
            is_late = member_id in late and number == len(times) - 1
            out.append({
                "cluster": row["cluster"], "source_id": f"regroup-events-0#{len(out)}", "line_no": len(out),
                "group_id": row["group_id"], "member_id": member_id, "measured_at": at, "received_at": at + 80,
                "client_instance_id": f"{member_id[:20]}=", "group_instance_id": row["group_instance_id"],
                "client_id": row["client_id"], "software_name": software, "software_version": "4.1.0",
                "assigned_partitions": len(row["assigned"] or ()), "counted_from_at": max(row["since"], at - 300_000),
                "rebalances": 0 if number else 1, "failed_rebalances": 0, "rebalance_ms": 0.0 if number else 1840.0,
                "rebalance_ms_avg": 1840.0, "rebalance_ms_max": 1840.0,
                "last_rebalance_at_earliest": row["since"] - 1000, "last_rebalance_at_latest": row["since"],
                "last_poll_at_earliest": at - 1400, "last_poll_at_latest": at - 400,
                "poll_gap_ms_avg": 230.0, "poll_gap_ms_max": 312_000.0 if is_late else 480.0, "poll_idle_ratio": 0.52,
                "assigned_callback_ms_max": 12.0, "revoked_callback_ms_max": 3200.0 if is_late else 35.0,
                "commit_ms_avg": 4.2, "commit_ms_max": 11.0,
            })  # fmt: skip
    return {"client_metrics": out}
