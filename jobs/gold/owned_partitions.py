"""Reads partitions with an owner whose commits have stopped, together with the end offsets that polls saw."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

from jobs.gold.cluster_reader import ClusterReader
from pipelines.gold.patterns.cluster_findings import OwnedPartition
from pipelines.gold.patterns.idle_owners import FEWEST, SILENT_MS
from schemas.bronze import ADMIN_OBSERVATIONS, OFFSET_COMMITS
from schemas.silver import GENERATION_MEMBERS, GENERATIONS
from schemas.thresholds import DAY_MS

Partition = tuple[str, int]

ENDS = """
SELECT epoch_ms(observed_at) AS at, body FROM found
WHERE cluster = $cluster AND observed_at >= $since AND kind = 'end_offsets' ORDER BY observed_at, source, subject
"""
STOPPED = """
SELECT group_id, topic, partition, max(last_commit_at) AS last_at, min(first_commit_at) AS first_at,
       sum(commits)::BIGINT AS commits, arg_max(last_committed_offset, (last_commit_at, last_offset)) AS committed
FROM found
WHERE cluster = $cluster AND last_commit_at >= $since AND NOT is_tombstone AND topic IN (SELECT unnest($topics))
GROUP BY group_id, topic, partition
HAVING epoch_ms(max(last_commit_at)) <= $before AND sum(commits) >= $fewest
ORDER BY ALL
"""
NEWEST = """
SELECT group_id, incarnation, generation_id, joined_at, synced_at, completed_at, is_empty FROM found
WHERE cluster = $cluster AND group_id IN (SELECT unnest($groups))
QUALIFY row_number() OVER (PARTITION BY group_id ORDER BY incarnation DESC, generation_id DESC) = 1
ORDER BY group_id
"""
MEMBERS = """
SELECT * FROM found WHERE cluster = $cluster AND valid_to_at IS NULL AND group_id IN (SELECT unnest($groups))
ORDER BY group_id, incarnation, generation_id, member_id
"""


def owned_partitions(reader: ClusterReader, until: int) -> list[OwnedPartition]:
    """Return partitions of stable groups whose last commit is old. Without polls of end offsets, there is none."""
    since = until - DAY_MS
    ends: dict[Partition, list[tuple[int, int]]] = defaultdict(list)
    for row in reader.rows(ADMIN_OBSERVATIONS, ENDS, since=("observed_at", since)):
        body = json.loads(row["body"])
        for partition, end in body["ends"].items():
            ends[body["topic"], int(partition)].append((row["at"], end))
    if not ends:
        return []
    stopped = reader.rows(
        OFFSET_COMMITS,
        STOPPED,
        since=("last_commit_at", since),
        topics=sorted({topic for topic, _ in ends}),
        before=until - SILENT_MS,
        fewest=FEWEST,
    )
    owners = _owners(reader, sorted({row["group_id"] for row in stopped})) if stopped else {}
    return [
        OwnedPartition(
            group_id=row["group_id"],
            topic=row["topic"],
            partition=row["partition"],
            client_id=owner["client_id"] or owner["member_id"],
            client_host=owner["client_host"] or "",
            since_ms=owner["since_ms"],
            commits=row["commits"],
            first_ms=row["first_at"],
            last_ms=row["last_at"],
            committed=row["committed"],
            ends=ends[row["topic"], row["partition"]],
        )
        for row in stopped
        if (owner := owners.get((row["group_id"], row["topic"], row["partition"]))) is not None
    ]


def _owners(reader: ClusterReader, groups: list[str]) -> dict[tuple[str, str, int], dict[str, Any]]:
    """Return the member that owns each partition in the newest completed generation, and since when (`since_ms`)."""
    newest = {row["group_id"]: row for row in reader.rows(GENERATIONS, NEWEST, groups=groups)}
    out: dict[tuple[str, str, int], dict[str, Any]] = {}
    for member in reader.rows(GENERATION_MEMBERS, MEMBERS, groups=groups):
        generation = newest.get(member["group_id"])
        key = (member["incarnation"], member["generation_id"])
        if generation is None or key != (generation["incarnation"], generation["generation_id"]):
            continue
        since = generation["completed_at"] or generation["synced_at"]
        if since is None or generation["is_empty"]:
            continue
        for resource in member["assigned"] or ():
            out[member["group_id"], resource["name"], resource["index"]] = member | {"since_ms": since}
    return out
