"""Reads what the patterns of Connect's configuration and of lost coordinators need about single groups."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

from jobs.gold.cluster_reader import ClusterReader
from schemas.bronze import COORDINATOR_RECORDS
from schemas.silver import GENERATION_MEMBERS, GENERATIONS, GROUP_EVENTS
from schemas.states import GroupEventKind

REFUSED = "the leader had not read the newest connector configuration"
"""Beginning of the detail of a Connect generation in which nothing was assigned (`pipelines.silver.group_events`)."""

REFUSALS = """
SELECT * FROM found WHERE cluster = $cluster AND event_at >= $since AND kind = $kind AND contains(detail, $detail)
ORDER BY group_id, event_at
"""
ROUNDS = """
SELECT group_id, synced_at FROM found WHERE cluster = $cluster AND group_id IN (SELECT unnest($groups))
  AND joined_at >= $since AND synced_at IS NOT NULL AND NOT is_empty ORDER BY group_id, synced_at
"""
RECORD = """
SELECT group_id, body FROM found
WHERE cluster = $cluster AND record_at >= $since AND group_id IN (SELECT unnest($groups))
  AND record_kind = 'GroupMetadata' AND NOT is_tombstone AND contains(body, '"configOffset"')
  AND (group_id, epoch_ms(record_at)) IN (SELECT (unnest($groups), unnest($times)))
ORDER BY group_id, source_offset
"""
MOVES = """
WITH both_kinds AS (
    SELECT group_id FROM found WHERE cluster = $cluster AND event_at >= $since AND kind IN ($moved, $expired)
    GROUP BY group_id HAVING count(DISTINCT kind) = 2
)
SELECT found.* FROM found JOIN both_kinds USING (group_id)
WHERE cluster = $cluster AND event_at >= $since AND kind IN ($moved, $expired, 'joined', 'static_returned')
ORDER BY group_id, event_at, kind, member_id
"""
MEMBERS = """
SELECT * FROM found WHERE cluster = $cluster AND group_id IN (SELECT unnest($groups))
  AND (valid_to_at IS NULL OR epoch_ms(valid_to_at) >= $since_at)
ORDER BY group_id, incarnation, generation_id, member_id
"""


def refusals_of(reader: ClusterReader, since: int) -> dict[str, Any]:
    """Return the fields `refusals`, `assigned` and `config_offsets` of `ClusterFacts`."""
    refusals = reader.rows(
        GROUP_EVENTS,
        REFUSALS,
        since=("event_at", since),
        kind=str(GroupEventKind.FAILED_REBALANCE),
        detail=REFUSED,
    )
    if not refusals:
        return {}
    newest = {event["group_id"]: event["event_at"] for event in refusals}
    refused = {(event["group_id"], event["event_at"]) for event in refusals}
    assigned: dict[str, list[int]] = defaultdict(list)
    for row in reader.rows(GENERATIONS, ROUNDS, since=("joined_at", since), groups=sorted(newest)):
        if (row["group_id"], row["synced_at"]) not in refused:
            assigned[row["group_id"]].append(row["synced_at"])
    groups = sorted(newest)
    records = reader.rows(
        COORDINATOR_RECORDS,
        RECORD,
        since=("record_at", min(newest.values())),
        groups=groups,
        times=[newest[group] for group in groups],
    )
    offsets = {row["group_id"]: _offsets(json.loads(row["body"])) for row in records}
    return {"refusals": refusals, "assigned": assigned, "config_offsets": offsets}


def _offsets(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return `client_id`, `config_offset` and `is_leader` of each worker in a decoded group record."""
    return [
        {
            "client_id": member["clientId"],
            "config_offset": member["subscription"]["configOffset"],
            "is_leader": member["memberId"] == body["value"]["leader"],
        }
        for member in body["value"]["members"]
        if "configOffset" in member["subscription"]
    ]


def moves_of(reader: ClusterReader, since: int) -> dict[str, Any]:
    """Return the fields `moves` and `moved` of `ClusterFacts`."""
    kinds = {"moved": str(GroupEventKind.COORDINATOR_MOVED), "expired": str(GroupEventKind.SESSION_EXPIRED)}
    moves = reader.rows(GROUP_EVENTS, MOVES, since=("event_at", since), **kinds)
    if not moves:
        return {}
    groups = sorted({event["group_id"] for event in moves})
    members: dict[str, list[Any]] = {group: [] for group in groups}
    for row in reader.rows(GENERATION_MEMBERS, MEMBERS, groups=groups, since_at=since):
        members[row["group_id"]].append(row)
    return {"moves": moves, "moved": members}
