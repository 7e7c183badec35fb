"""A warehouse with the history of a large fleet, for benches of what reads it: silver and gold, no Spark, no Kafka.

Most groups are quiet, a quarter is deployed more than once a day, a twentieth churns. Rows of one day are one file, of
the last day one an hour, as a warehouse looks that is compacted at night.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import write_deltalake

from pipelines.arrow_types import TYPES
from schemas.bronze import ADMIN_OBSERVATIONS, COVERAGE, QUARANTINE
from schemas.gold import ADVICE, DIAGNOSES, MARKS, STORMS
from schemas.silver import (
    GENERATION_MEMBERS,
    GENERATIONS,
    GROUP_EVENTS,
    GROUPS,
    REASSIGNMENT_SAMPLES,
    REASSIGNMENTS,
    REBALANCES,
    STALLS,
)
from schemas.states import AdviceAction, AdviceStatus, DiagnosisCause
from schemas.tables import Table

CLUSTER = "prod-eu"
HOUR, DAY = 3_600_000, 24 * 3_600_000
PARTITIONS_EACH = 3
KINDS = ((0.70, 0.2), (0.25, 1.5), (0.04, 12.0), (0.01, 40.0))
"""Share of the groups, and generations a day."""

TEAMS = ("payments", "orders", "search", "billing", "fraud", "catalog", "shipping", "identity", "pricing", "events")
DOES = ("indexer", "writer", "enricher", "joiner", "settlement", "audit", "mailer", "export", "cache", "scorer")
MODES = np.array(["eager", "cooperative", "incremental"])
ASSIGNORS = np.array(["range", "cooperative-sticky", "uniform"])
PROTOCOLS = np.array(["classic", "classic", "consumer"])
TRIGGERS = np.array(["member_joined", "member_left", "session_expired", "poll_timeout", "metadata_changed"])
KIND_OF_EVENT = np.array(["joined", "left", "session_expired", "poll_timeout", "settings_changed"])
GRADES = np.array(["observed", "bounded"])
Columns = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Groups:
    """One entry a group; `rate` is generations a day."""

    ids: np.ndarray
    rate: np.ndarray
    members: np.ndarray
    mode: np.ndarray
    seen_at: np.ndarray


@dataclass(frozen=True, slots=True)
class Generations:
    """One entry a generation, by group and time. `bounced` is the member that set it off."""

    group: np.ndarray
    number: np.ndarray
    joined_at: np.ndarray
    next_at: np.ndarray
    bounced: np.ndarray
    trigger: np.ndarray
    took: np.ndarray
    grade: np.ndarray

    def of(self, chosen: np.ndarray) -> Generations:
        return Generations(*(getattr(self, name)[chosen] for name in self.__slots__))


def write_history(folder: Path, *, groups: int, days: int, end: int, seed: int = 1) -> dict[str, int]:
    """Write the tables that the pages read, up to `end` (epoch milliseconds); returns the rows of each."""
    rng = np.random.default_rng(seed)
    fleet = _fleet(rng, groups, end - days * DAY)
    made = _generations(rng, fleet, days, end)
    rows: dict[str, int] = {}

    def write(table: Table, columns: Columns, length: int) -> None:
        if length or not (folder / table.name).exists():
            write_deltalake(str(folder / table.name), _table(table, columns, length), mode="append")
        rows[table.name] = rows.get(table.name, 0) + length

    edges = [*range(end - days * DAY, end - DAY + 1, DAY), *range(end - DAY + HOUR, end + 1, HOUR)]
    for first, last in pairwise(edges):
        part = made.of((made.joined_at >= first) & (made.joined_at < last))
        for table, columns, length in _silver(rng, fleet, part):
            write(table, columns, length)
    write(GROUPS, *_groups(fleet, made, end))
    for table, columns, length in _gold(rng, fleet, days, end):
        write(table, columns, length)
    for table in (QUARANTINE, ADMIN_OBSERVATIONS):
        write(table, {}, 0)
    return rows


def _table(table: Table, columns: Mapping[str, Any], length: int) -> pa.Table:
    """NULL where nothing is said; numbers of a TIMESTAMP column are milliseconds."""
    arrays, schema = [], []
    for column in table.columns:
        kind = TYPES[column.type]
        if length == 0 or column.name not in columns:
            # Keys are never NULL; a table without rows has none either way.
            array = pa.nulls(length, kind)
        else:
            value = columns[column.name]
            array = value if isinstance(value, pa.Array) else _array(value, length)
            array = array.cast(pa.timestamp("ms", tz="UTC")).cast(kind) if column.type == "TIMESTAMP" else array
        arrays.append(array.cast(kind) if array.type != kind else array)
        schema.append(pa.field(column.name, kind, nullable=column.name not in table.key))
    return pa.Table.from_arrays(arrays, schema=pa.schema(schema))


def _array(value: Any, length: int) -> pa.Array:
    if not isinstance(value, np.ndarray | list):
        return pa.repeat(pa.scalar(value), length)
    return pa.array(value, from_pandas=True)


def _fleet(rng: np.random.Generator, groups: int, start: int) -> Groups:
    names = [f"{TEAMS[n % 10]}-{DOES[n // 10 % 10]}-{n // 100:03d}" for n in range(groups)]
    kind = rng.choice(len(KINDS), groups, p=[share for share, _ in KINDS])
    members = np.clip(rng.poisson(4, groups), 1, 12)
    # One of the lively ones is large: 60 members of 180 partitions.
    members[np.argmax(kind == 2)] = 60
    mode = rng.choice(3, groups, p=[0.3, 0.5, 0.2])
    rate = np.array([rate for _, rate in KINDS])[kind]
    order = np.argsort(np.array(names))
    ids = np.array(names, dtype=object)[order]
    return Groups(ids, rate[order], members[order], mode[order], start + rng.integers(0, HOUR, groups)[order])


def _generations(rng: np.random.Generator, fleet: Groups, days: int, end: int) -> Generations:
    counts = rng.poisson(fleet.rate * days) + 1
    group = np.repeat(np.arange(len(counts)), counts)
    joined_at = end - rng.integers(1_000, days * DAY - HOUR, len(group))
    order = np.lexsort((joined_at, group))
    joined_at = joined_at[order]
    first = np.concatenate(([0], np.cumsum(counts)[:-1]))
    number = np.arange(len(group)) - np.repeat(first, counts) + 1
    is_last = np.append(group[1:] != group[:-1], np.array([True]))
    return Generations(
        group=group,
        number=number,
        joined_at=joined_at,
        next_at=np.where(is_last, -1, np.append(joined_at[1:], -1)),
        bounced=number % fleet.members[group],
        trigger=rng.choice(len(TRIGGERS), len(group), p=[0.35, 0.3, 0.2, 0.1, 0.05]),
        took=rng.lognormal(8.0, 1.0, len(group)).astype(np.int64) + 20,
        grade=rng.choice(2, len(group), p=[0.6, 0.4]),
    )


def _key(fleet: Groups, made: Generations, rows: np.ndarray | None = None) -> Columns:
    """Columns that every row of a generation has; `rows` are the generation of each row."""
    rows = np.arange(len(made.group)) if rows is None else rows
    ids = pa.DictionaryArray.from_arrays(pa.array(made.group[rows], pa.int32()), pa.array(fleet.ids, pa.string()))
    return {
        "cluster": CLUSTER,
        "group_id": ids.cast(pa.string()),
        "incarnation": 0,
        "generation_id": made.number[rows],
        "evidence": GRADES[made.grade[rows]],
        "log_epoch": 0,
    }


def _silver(rng: np.random.Generator, fleet: Groups, made: Generations) -> list[tuple[Table, Columns, int]]:
    return [
        (GENERATIONS, _generation_rows(fleet, made), len(made.group)),
        (GENERATION_MEMBERS, *_member_rows(fleet, made)),
        (STALLS, *_stall_rows(rng, fleet, made)),
        (GROUP_EVENTS, *_event_rows(fleet, made)),
        (REBALANCES, _episode_rows(fleet, made), len(made.group)),
    ]


def _names(fleet: Groups, made: Generations, rows: np.ndarray, slot: np.ndarray) -> pa.Array:
    """Member ids: each process has its own, and the one that bounced is a new process."""
    life = (made.number[rows] - slot) // fleet.members[made.group[rows]] + 1
    number = (made.group[rows] * 64 + slot) * 4_096 + life
    different, which = np.unique(number, return_inverse=True)
    names = pa.array(
        [f"consumer-{n // 4096 % 64}-{n * 2654435761 % 2**32:08x}-9abc-{n:017x}" for n in different.tolist()]
    )
    return pa.DictionaryArray.from_arrays(pa.array(which, pa.int32()), names).cast(pa.string())


def _generation_rows(fleet: Groups, made: Generations) -> Columns:
    rows, is_stated = np.arange(len(made.group)), made.grade == 0
    mode, members = fleet.mode[made.group], fleet.members[made.group]
    bounced, prepared = _names(fleet, made, rows, made.bounced), made.joined_at - made.took
    stated = pa.array(is_stated)
    one = pa.array(np.arange(len(rows) + 1), pa.int32())
    return _key(fleet, made) | {
        "joined_at": made.joined_at,
        "outcome": "completed",
        "group_type": "consumer",
        "group_protocol": PROTOCOLS[mode],
        "protocol_type": "consumer",
        "assignor": ASSIGNORS[mode],
        "rebalance_mode": MODES[mode],
        "leader_member_id": _names(fleet, made, rows, np.zeros_like(members)),
        "coordinator_id": made.group % 6 + 1,
        "member_count": members,
        "static_member_count": 0,
        "prepared_at": pa.array(np.where(is_stated, prepared, 0), mask=~is_stated),
        "prepared_at_earliest": np.where(is_stated, prepared, prepared - 2_000),
        "prepared_at_latest": np.where(is_stated, prepared, made.joined_at),
        "synced_at": made.joined_at + 30,
        "completed_at": made.joined_at + 30,
        "join_ms": pa.array(np.where(is_stated, made.took, 0), mask=~is_stated),
        "sync_ms": 30,
        "rebalance_ms": pa.array(np.where(is_stated, made.took + 30, 0), mask=~is_stated),
        "rebalance_ms_min": np.where(is_stated, made.took + 30, 30),
        "rebalance_ms_max": np.where(is_stated, made.took + 30, made.took + 2_030),
        "trigger": TRIGGERS[made.trigger],
        "trigger_evidence": pc.if_else(stated, "observed", "inferred"),
        "trigger_member_id": bounced,
        "trigger_reason": "removing member on LeaveGroup",
        "slowest_member_id": bounced,
        "slowest_waited_ms": made.took,
        "joined_member_ids": pa.ListArray.from_arrays(one, bounced),
        "resources_assigned": members * PARTITIONS_EACH,
        "resources_moved": np.full(len(rows), PARTITIONS_EACH),
        "skipped_generations": 0,
        "is_empty": False,
        "source_partition": made.group % 50,
        "source_offset": made.number * 1_000 + made.group,
    }


def _resources(made: Generations, rows: np.ndarray, slot: np.ndarray) -> pa.Array:
    """Every member has PARTITIONS_EACH of the group's topic."""
    index = np.repeat(slot, PARTITIONS_EACH) * PARTITIONS_EACH + np.tile(np.arange(PARTITIONS_EACH), len(slot))
    topics = pa.array([f"{team}-topic" for team in TEAMS])
    which = pa.array(np.repeat(made.group[rows] % len(TEAMS), PARTITIONS_EACH), pa.int32())
    names = pa.DictionaryArray.from_arrays(which, topics).cast(pa.string())
    pairs = pa.StructArray.from_arrays([names, pa.array(index, pa.int32())], ["name", "index"])
    return pa.ListArray.from_arrays(pa.array(np.arange(len(slot) + 1) * PARTITIONS_EACH, pa.int32()), pairs)


def _slots(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For `counts` rows of each entry: the entry and the position within it."""
    rows = np.repeat(np.arange(len(counts)), counts)
    first = np.concatenate(([0], np.cumsum(counts)[:-1])) if len(counts) else np.array([], int)
    return rows, np.arange(len(rows)) - np.repeat(first, counts)


def _member_rows(fleet: Groups, made: Generations) -> tuple[Columns, int]:
    rows, slot = _slots(fleet.members[made.group])
    resources, until = _resources(made, rows, slot), made.next_at[rows]
    topics = pa.array([f"{TEAMS[g % len(TEAMS)]}-topic" for g in made.group[rows]])
    columns = _key(fleet, made, rows) | {
        "member_id": _names(fleet, made, rows, slot),
        "valid_from_at": made.joined_at[rows],
        "valid_to_at": pa.array(until, mask=until < 0),
        "client_id": pa.array([f"consumer-{n}" for n in slot]),
        "client_host": pa.array([f"/10.0.{n % 8}.{n % 250}" for n in made.group[rows] * 7 + slot]),
        "session_timeout_ms": 45_000,
        "rebalance_timeout_ms": 300_000,
        "is_leader": slot == 0,
        "subscribed_topics": pa.ListArray.from_arrays(pa.array(np.arange(len(rows) + 1), pa.int32()), topics),
        "owned": resources,
        "assigned": resources,
        "rejoined_at_earliest": made.joined_at[rows] - made.took[rows],
        "rejoined_at_latest": made.joined_at[rows],
    }
    return columns, len(rows)


def _stall_rows(rng: np.random.Generator, fleet: Groups, made: Generations) -> tuple[Columns, int]:
    """An eager group stops whole, the others stop what the one member had."""
    is_eager = fleet.mode[made.group] == 0
    rows, position = _slots(np.where(is_eager, fleet.members[made.group], 1) * PARTITIONS_EACH)
    own = made.bounced[rows] * PARTITIONS_EACH + position
    index = np.where(is_eager[rows], position, own)
    resumed = made.joined_at[rows] + 30
    took = made.took[rows] + rng.integers(0, 500, len(rows))
    slack = np.where(made.grade[rows] == 0, 0, 2_000)
    owner = _names(fleet, made, rows, index // PARTITIONS_EACH)
    columns = _key(fleet, made, rows) | {
        "stopped_by_offset": made.number[rows] * 1_000 + made.group[rows],
        "name": pa.array([f"{TEAMS[g % len(TEAMS)]}-topic" for g in made.group[rows]]),
        "index": index,
        "stopped_at_earliest": resumed - took - slack,
        "stopped_at_latest": resumed - took,
        "resumed_at_earliest": resumed,
        "resumed_at_latest": resumed + slack,
        "resumed_generation_id": made.number[rows],
        "from_member_id": owner,
        "to_member_id": owner,
        "stopped_ms_min": took,
        "stopped_ms": took + slack // 2,
        "stopped_ms_max": took + 2 * slack,
        "last_commit_at": resumed - took - 200,
        "last_committed_offset": made.joined_at[rows] // 10,
        "first_commit_at": resumed + 900,
        "first_committed_offset": made.joined_at[rows] // 10 + 50,
        "cause": np.array(["moved", "eager_barrier", "member_lost"])[
            np.where(made.trigger[rows] == 2, 2, is_eager[rows].astype(int))
        ],
    }
    return columns, len(rows)


def _event_rows(fleet: Groups, made: Generations) -> tuple[Columns, int]:
    rows = np.arange(len(made.group))
    columns = _key(fleet, made) | {
        "event_at": made.joined_at - made.took,
        "kind": KIND_OF_EVENT[made.trigger],
        "member_id": _names(fleet, made, rows, made.bounced),
        "client_id": pa.array([f"consumer-{n}" for n in made.bounced]),
        "client_host": pa.array([f"/10.0.{n % 8}.{n % 250}" for n in made.group * 7 + made.bounced]),
        "detail": "client reason: the consumer is being closed",
    }
    return columns, len(rows)


def _episode_rows(fleet: Groups, made: Generations) -> Columns:
    lost = made.took * PARTITIONS_EACH / 1000
    columns = _key(fleet, made) | {
        "first_generation_id": made.number,
        "last_generation_id": made.number,
        "started_at_earliest": made.joined_at - made.took - 2_000,
        "started_at_latest": made.joined_at - made.took,
        "ended_at": made.joined_at + 30,
        "generations": 1,
        "lost_resource_seconds_min": lost,
        "lost_resource_seconds": lost,
        "lost_resource_seconds_max": lost * 1.2,
        "idle_resource_seconds": 0.0,
        "source_offset": made.number * 1_000 + made.group,
        "settled_at": made.joined_at + 30,
    }
    return {name: column for name, column in columns.items() if name != "generation_id"}


def _groups(fleet: Groups, made: Generations, end: int) -> tuple[Columns, int]:
    last = np.searchsorted(made.group, np.arange(len(fleet.ids)), side="right") - 1
    is_open = (np.arange(len(fleet.ids)) % 997 == 5) & (fleet.rate > 1)
    columns = _key(fleet, made, last) | {
        "group_type": "consumer",
        "group_protocol": PROTOCOLS[fleet.mode],
        "assignor": ASSIGNORS[fleet.mode],
        "state": np.where(is_open, "PreparingRebalance", "Stable"),
        "state_since_at": made.joined_at[last] + 30,
        "member_count": fleet.members,
        "open_rebalance_since_at": pa.array(np.full(len(last), end - 20_000), mask=~is_open),
        "first_seen_at": fleet.seen_at,
        "last_record_at": np.full(len(last), end - 1_000),
        "is_deleted": False,
    }
    return columns, len(fleet.ids)


def _gold(rng: np.random.Generator, fleet: Groups, days: int, end: int) -> list[tuple[Table, Columns, int]]:
    churning = np.flatnonzero(fleet.rate > 1)
    return [
        (ADVICE, *_advice(rng, fleet, churning, end)),
        (DIAGNOSES, *_diagnoses(rng, fleet, churning, days, end)),
        (STORMS, *_storms(rng, fleet, churning, days, end)),
        (MARKS, *_marks(rng, days, end)),
        (COVERAGE, *_coverage(days, end)),
        *_moves(rng, days, end),
    ]


def _advice(rng: np.random.Generator, fleet: Groups, churning: np.ndarray, end: int) -> tuple[Columns, int]:
    actions = [*list(AdviceAction)[:4], AdviceAction.NONE]
    rows, rank = _slots(np.full(len(churning), len(actions)))
    lost = rng.lognormal(5, 2, len(churning))[rows]
    left = lost * np.linspace(0.1, 1, len(actions))[rank]
    settings = [("java", "group.instance.id=${POD_NAME}\nsession.timeout.ms=60000")]
    columns = {
        "cluster": CLUSTER,
        "group_id": fleet.ids[churning][rows],
        "as_of": np.full(len(rows), end),
        "action": np.array([action.value for action in actions])[rank],
        "is_recommended": (rank == 0) & (lost > 100),
        "rank": rank + 1,
        "lost_now": lost,
        "lost_predicted": left,
        "lost_predicted_low": left * 0.8,
        "lost_predicted_high": left * 1.2,
        "saving": lost - left,
        "saving_ratio": 1 - left / lost,
        "rebalances_now": 40,
        "rebalances_predicted": 4,
        "settings": pa.array([settings] * len(rows), TYPES["MAP<STRING,STRING>"]),
        "preconditions": [["unknown: every process has a name of its own that outlives it"]] * len(rows),
        "explanation": "Members come back within seconds: with a name of their own nothing would have moved.",
        "window_start_at": np.full(len(rows), end - 7 * DAY),
        "window_end_at": np.full(len(rows), end),
        "status": AdviceStatus.SUGGESTED.value,
    }
    return columns, len(rows)


def _diagnoses(
    rng: np.random.Generator, fleet: Groups, churning: np.ndarray, days: int, end: int
) -> tuple[Columns, int]:
    """Two causes a day for each group that churns."""
    causes = np.array([cause.value for cause in DiagnosisCause])
    rows, number = _slots(np.full(len(churning), 2 * days))
    day, rank = number // 2, number % 2
    as_of = (end // DAY - day) * DAY
    columns = {
        "cluster": CLUSTER,
        "group_id": fleet.ids[churning][rows],
        "as_of": as_of,
        "cause": causes[(rows % 5) * 2 + rank],
        "rank": rank + 1,
        "rebalances": rng.integers(1, 40, len(rows)),
        "share": 0.5,
        "lost_resource_seconds": rng.lognormal(4, 1, len(rows)),
        "is_normal": False,
        "first_at": as_of - DAY,
        "last_at": as_of - HOUR,
        "instances": [["consumer-1", "consumer-2"]] * len(rows),
        "evidence": "observed",
        "explanation": "Members were expelled because the time between two polls exceeded the limit.",
        "window_start_at": as_of - DAY,
    }
    return columns, len(rows)


def _storms(rng: np.random.Generator, fleet: Groups, churning: np.ndarray, days: int, end: int) -> tuple[Columns, int]:
    """Ten a day; the last one is open."""
    count = 10 * days
    started = np.sort(end - rng.integers(60_000, days * DAY - DAY // 2, count))
    hit = [fleet.ids[rng.choice(churning, 40)].tolist() for _ in range(count)]
    is_open = np.arange(count) == count - 1
    lift = {"attribute": "client_host", "value": "/10.0.4.13", "share": 0.9, "baseline": 0.1, "lift": 9.0}
    columns = {
        "cluster": CLUSTER,
        "storm_id": [f"storm-{n:05d}" for n in range(count)],
        "scope": "fleet",
        "started_at": started,
        "detected_at": started + 30_000,
        "ended_at": pa.array(started + 15 * 60_000, mask=is_open),
        "is_open": is_open,
        "groups": 40,
        "group_ids": hit,
        "rebalances": 120,
        "unexplained_rebalances": 90,
        "lost_resource_seconds_min": rng.lognormal(6, 1, count),
        "lost_resource_seconds": rng.lognormal(6, 1, count),
        "lost_resource_seconds_max": rng.lognormal(6, 1, count),
        "suspected_cause": "session_expiry",
        "score": 0.7,
        "differences": [[lift]] * count,
        "evidence": "observed",
        "explanation": "Forty groups lost members within a minute.",
    }
    return columns, count


def _marks(rng: np.random.Generator, days: int, end: int) -> tuple[Columns, int]:
    """A deploy every half an hour."""
    at = np.unique(end - rng.integers(0, days * DAY, 48 * days))
    columns = {
        "cluster": CLUSTER,
        "marked_at": at,
        "kind": "deploy",
        "text": [f"v2.{n}" for n in range(len(at))],
        "marked_by": "ci",
    }
    return columns, len(at)


def _coverage(days: int, end: int) -> tuple[Columns, int]:
    partition = np.arange(50)
    columns = {
        "cluster": CLUSTER,
        "source": "__consumer_offsets",
        "source_partition": partition,
        "log_epoch": 0,
        "from_offset": 0,
        "to_offset": np.full(50, 1_000_000),
        "is_gap": False,
        "from_at": np.full(50, end - days * DAY),
        "to_at": np.full(50, end),
        "records": 1_000_000,
        "skipped": 0,
        "quarantined": 0,
    }
    return columns, len(partition)


def _moves(rng: np.random.Generator, days: int, end: int) -> list[tuple[Table, Columns, int]]:
    """Four partitions a day move for ten minutes, seen every ten seconds."""
    count, polls = 4 * days, 60
    started = end - rng.integers(HOUR, days * DAY, count)
    topics = np.array([f"{TEAMS[n % len(TEAMS)]}-topic" for n in range(count)])
    key = {"cluster": CLUSTER, "topic": topics, "partition": np.arange(count), "leader": 1}
    rows, poll = _slots(np.full(count, polls))
    seen = {name: value[rows] if isinstance(value, np.ndarray) else value for name, value in key.items()}
    moved = key | {
        "started_at": started,
        "state": "completed",
        "phase": "completed",
        "bytes_total": np.full(count, 10**9),
        "bytes_done": np.full(count, 10**9),
        "progress": np.ones(count),
        "last_observed_at": started + 600_000,
        "completed_at": started + 600_000,
        "evidence": "observed",
    }
    samples = seen | {
        "observed_at": started[rows] + poll * 10_000,
        "bytes_done": poll * (10**9 // polls),
        "bytes_total": np.full(len(rows), 10**9),
        "progress": poll / polls,
        "bytes_per_second": np.full(len(rows), 1e9 / 600),
    }
    return [(REASSIGNMENTS, moved, count), (REASSIGNMENT_SAMPLES, samples, len(rows))]
