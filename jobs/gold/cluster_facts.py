"""Reads the facts that the patterns of a cluster are found in, from bronze and silver, within one window."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from jobs.gold.cluster_reader import ClusterReader
from jobs.gold.moved_groups import moves_of, refusals_of
from jobs.gold.owned_partitions import owned_partitions
from jobs.tables.engine import connect, show
from jobs.tables.table_facts import exists
from pipelines.decoding.group_partition import partition_of
from pipelines.gold.observed_settings import whole_number
from pipelines.gold.patterns.cluster_findings import ClusterFacts, Row, Unsettled
from pipelines.gold.patterns.offsets_partitions import LINE_KINDS
from pipelines.gold.patterns.stuck_rebalances import OPEN_MS
from schemas.bronze import ADMIN_OBSERVATIONS, COORDINATOR_EVENTS
from schemas.coordinator_log import EventKind
from schemas.records import OFFSETS_TOPIC
from schemas.rows import GenerationMemberRow, GenerationRow, GroupRow
from schemas.silver import GENERATION_MEMBERS, GENERATIONS, GROUPS
from schemas.states import GroupState, Trigger
from schemas.thresholds import DAY_MS

WINDOW_MS = 7 * DAY_MS
"""Patterns are found in the cluster's last seven days. Earlier ones leave the table."""

DEFAULT_PARTITIONS = 50
"""`offsets.topic.num.partitions` of Kafka, if the records of all groups agree with it."""

JOINING = (GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE)

ENDS = {
    GROUPS: "last_record_at",
    COORDINATOR_EVENTS: "event_at",
    ADMIN_OBSERVATIONS: "observed_at",
}
"""Tables and columns that show how far a cluster's data reaches."""

LINES = """
SELECT * EXCLUDE (raw) FROM found WHERE cluster = $cluster AND event_at >= $since AND (
    list_contains(CAST($kinds AS VARCHAR[]), event_kind) OR (event_kind = $preparing AND trigger = $failed)
) ORDER BY event_at, source_id, line_no
"""
OF_GROUPS = """
SELECT * EXCLUDE (raw) FROM found
WHERE cluster = $cluster AND event_at >= $since AND group_id IN (SELECT unnest($groups))
ORDER BY event_at, source_id, line_no
"""
POLLS = """
SELECT epoch_ms(observed_at) AS at, kind, body FROM found
WHERE cluster = $cluster AND observed_at >= $since
  AND (kind IN ('broker_settings', 'topic_settings') OR (kind = 'topic' AND starts_with(subject, $topic)))
ORDER BY observed_at, kind, subject
"""
POLLED_GROUPS = """
SELECT epoch_ms(observed_at) AS at, json_extract_string(body, '$.group_id') AS group_id,
       json_extract_string(body, '$.state') AS state
FROM found WHERE cluster = $cluster AND observed_at >= $since AND kind = 'group'
ORDER BY observed_at, source, subject
"""
POLLED = "SELECT epoch_ms(max(observed_at)) FROM found WHERE cluster = $cluster AND kind <> 'command'"
OWN_PARTITIONS = """
SELECT group_id, arg_max(source_partition, joined_at) AS source_partition
FROM found WHERE cluster = $cluster GROUP BY group_id
"""
NEWEST = """
SELECT * FROM found WHERE cluster = $cluster AND group_id IN (SELECT unnest($groups))
QUALIFY dense_rank() OVER (PARTITION BY group_id ORDER BY incarnation DESC, generation_id DESC) = 1
ORDER BY ALL
"""


def clusters(warehouse: Path) -> list[str]:
    """Return the clusters that have any data."""
    names: set[str] = set()
    for table in ENDS:
        if exists(warehouse, table):
            with connect() as engine:
                show(engine, "found", warehouse, table, columns=("cluster",), is_distinct=True)
                names |= {name for (name,) in engine.sql("SELECT DISTINCT cluster FROM found").fetchall()}
    return sorted(names)


def cluster_facts(warehouse: Path, cluster: str) -> ClusterFacts | None:
    """Return the facts of a cluster within the window that ends with its newest data; None if it has no data."""
    reader = ClusterReader(warehouse, cluster)
    ends = [
        reader.first(table, f"SELECT epoch_ms(max({column})) FROM found WHERE cluster = $cluster")  # noqa: S608 - our own names
        for table, column in ENDS.items()
    ]
    until = max((at for at in ends if at is not None), default=None)
    if until is None:
        return None
    since = until - WINDOW_MS
    groups = cast(
        "list[GroupRow]", reader.rows(GROUPS, "SELECT * FROM found WHERE cluster = $cluster ORDER BY group_id")
    )
    lines = reader.rows(
        COORDINATOR_EVENTS,
        LINES,
        since=("event_at", since),
        kinds=[str(kind) for kind in LINE_KINDS],
        preparing=str(EventKind.PREPARING),
        failed=str(Trigger.ASSIGNMENT_FAILED),
    )
    polls = [
        row | {"body": json.loads(row["body"])}
        for row in reader.rows(ADMIN_OBSERVATIONS, POLLS, since=("observed_at", since), topic=OFFSETS_TOPIC)
    ]
    topic = [
        {"at": p["at"], **p["body"]} for p in polls if p["kind"] == "topic" and p["body"].get("topic") == OFFSETS_TOPIC
    ]
    settings: dict[str, Any] = {}
    for poll in polls:
        if poll["kind"] == "broker_settings":
            settings |= poll["body"].get("settings") or {}
    return ClusterFacts(
        cluster=cluster,
        until_ms=until,
        since_ms=since,
        groups=groups,
        partition_of=_partitions(reader, groups, topic),
        lines=lines,
        topic_polls=topic,
        polled_until_ms=reader.first(ADMIN_OBSERVATIONS, POLLED),
        min_isr=_min_isr(polls, settings),
        settings=settings,
        unsettled=_unsettled(reader, groups, since, until),
        owned=owned_partitions(reader, until),
        written_after=reader.written_after,
        **refusals_of(reader, since),
        **moves_of(reader, since),
    )


def _partitions(reader: ClusterReader, groups: Iterable[GroupRow], topic: Sequence[Row]) -> dict[str, int]:
    """Return the offsets partition of each group: from its records, or else from its name if their number is known."""
    found = reader.rows(GENERATIONS, OWN_PARTITIONS)
    own = {row["group_id"]: row["source_partition"] for row in found}
    number = len(topic[-1]["partitions"]) if topic else None
    if number is None and own and all(partition_of(g, DEFAULT_PARTITIONS) == p for g, p in own.items()):
        number = DEFAULT_PARTITIONS
    by_name = {group["group_id"]: partition_of(group["group_id"], number) for group in groups} if number else {}
    return by_name | own


def _min_isr(polls: Sequence[Row], settings: Mapping[str, Any]) -> int | None:
    """Return `min.insync.replicas` of the topic, or else of the brokers."""
    of_topic = [p["body"] for p in polls if p["kind"] == "topic_settings" and p["body"].get("topic") == OFFSETS_TOPIC]
    own = (of_topic[-1].get("settings") or {}) if of_topic else {}
    found = whole_number(own, "min.insync.replicas")
    return whole_number(settings, "min.insync.replicas") if found is None else found


def _unsettled(reader: ClusterReader, groups: Sequence[GroupRow], since: int, until: int) -> list[Unsettled]:
    by_name = {group["group_id"]: group for group in groups if not group["is_deleted"]}
    polled = {name: poll for name, poll in _joining(reader, since).items() if until - poll["at"] >= OPEN_MS}
    opened = {name: at for name, group in by_name.items() if (at := group["open_rebalance_since_at"]) is not None}
    names = sorted((opened.keys() | polled.keys()) & by_name.keys())
    if not names:
        return []
    begun = {name: opened[name] if name in opened else polled[name]["at"] for name in names}
    lines = reader.rows(COORDINATOR_EVENTS, OF_GROUPS, since=("event_at", min(begun.values())), groups=names)
    generations = {row["group_id"]: row for row in reader.rows(GENERATIONS, NEWEST, groups=names)}
    members: dict[str, list[GenerationMemberRow]] = defaultdict(list)
    for member in reader.rows(GENERATION_MEMBERS, NEWEST, groups=names):
        members[member["group_id"]].append(member)
    out = []
    for name in names:
        generation = cast("GenerationRow | None", generations.get(name))
        done = (generation["synced_at"] or generation["joined_at"]) if generation else None
        if name not in opened and done is not None and done >= polled[name]["at"]:
            continue  # a record is newer than the poll
        out.append(
            Unsettled(
                group=by_name[name],
                generation=generation,
                members=[] if generation and generation["is_empty"] else members[name],
                lines=[line for line in lines if line["group_id"] == name and line["event_at"] >= begun[name]],
                polled=polled.get(name),
            )
        )
    return out


def _joining(reader: ClusterReader, since: int) -> dict[str, Row]:
    """Return for each group whose newest poll shows a rebalance the state, and the first poll that shows it (`at`)."""
    out: dict[str, Row] = {}
    for poll in reader.rows(ADMIN_OBSERVATIONS, POLLED_GROUPS, since=("observed_at", since)):
        name, state = poll["group_id"], poll["state"]
        if state not in JOINING:
            out.pop(name, None)
        elif name not in out or out[name]["state"] != state:
            out[name] = {"at": poll["at"], "state": state}
    return out
