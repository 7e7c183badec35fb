"""Silver of a synthetic cluster (`bench.fleet`), as columns of each table."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.fleet.fleet import (
    ASSIGNORS,
    KIND_OF_EVENT,
    MODES,
    PARTITIONS_EACH,
    PROTOCOLS,
    TEAMS,
    TRIGGERS,
    Columns,
    Generations,
    Groups,
    key_of,
    member_ids,
    slots,
)
from schemas.silver import GENERATION_MEMBERS, GENERATIONS, GROUP_EVENTS, REBALANCES, STALLS
from schemas.tables import Table


def silver_of(rng: np.random.Generator, fleet: Groups, made: Generations) -> list[tuple[Table, Columns, int]]:
    """Return the rows of every table except `groups` for these generations."""
    return [
        (GENERATIONS, _generation_rows(fleet, made), len(made.group)),
        (GENERATION_MEMBERS, *_member_rows(fleet, made)),
        (STALLS, *_stall_rows(rng, fleet, made)),
        (GROUP_EVENTS, *_event_rows(fleet, made)),
        (REBALANCES, _episode_rows(fleet, made), len(made.group)),
    ]


def _generation_rows(fleet: Groups, made: Generations) -> Columns:
    rows, is_logged = np.arange(len(made.group)), made.grade == 0
    mode, members = fleet.mode[made.group], fleet.members[made.group]
    bounced, prepared = member_ids(fleet, made, rows, made.bounced), made.joined_at - made.took
    declared = pa.array(is_logged)
    one = pa.array(np.arange(len(rows) + 1), pa.int32())
    return key_of(fleet, made) | {
        "joined_at": made.joined_at,
        "outcome": "completed",
        "group_type": "consumer",
        "group_protocol": PROTOCOLS[mode],
        "protocol_type": "consumer",
        "assignor": ASSIGNORS[mode],
        "rebalance_mode": MODES[mode],
        "leader_member_id": member_ids(fleet, made, rows, np.zeros_like(members)),
        "coordinator_id": made.group % 6 + 1,
        "member_count": members,
        "static_member_count": 0,
        "prepared_at": pa.array(np.where(is_logged, prepared, 0), mask=~is_logged),
        "prepared_at_earliest": np.where(is_logged, prepared, prepared - 2_000),
        "prepared_at_latest": np.where(is_logged, prepared, made.joined_at),
        "synced_at": made.joined_at + 30,
        "completed_at": made.joined_at + 30,
        "join_ms": pa.array(np.where(is_logged, made.took, 0), mask=~is_logged),
        "sync_ms": 30,
        "rebalance_ms": pa.array(np.where(is_logged, made.took + 30, 0), mask=~is_logged),
        "rebalance_ms_min": np.where(is_logged, made.took + 30, 30),
        "rebalance_ms_max": np.where(is_logged, made.took + 30, made.took + 2_030),
        "trigger": TRIGGERS[made.trigger],
        "trigger_evidence": pc.if_else(declared, "observed", "inferred"),
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
    """Return the resources of members: PARTITIONS_EACH partitions of the group's topic for every member."""
    index = np.repeat(slot, PARTITIONS_EACH) * PARTITIONS_EACH + np.tile(np.arange(PARTITIONS_EACH), len(slot))
    topics = pa.array([f"{team}-topic" for team in TEAMS])
    which = pa.array(np.repeat(made.group[rows] % len(TEAMS), PARTITIONS_EACH), pa.int32())
    names = pa.DictionaryArray.from_arrays(which, topics).cast(pa.string())
    pairs = pa.StructArray.from_arrays([names, pa.array(index, pa.int32())], ["name", "index"])
    return pa.ListArray.from_arrays(pa.array(np.arange(len(slot) + 1) * PARTITIONS_EACH, pa.int32()), pairs)


def _member_rows(fleet: Groups, made: Generations) -> tuple[Columns, int]:
    rows, slot = slots(fleet.members[made.group])
    resources, until = _resources(made, rows, slot), made.next_at[rows]
    topics = pa.array([f"{TEAMS[g % len(TEAMS)]}-topic" for g in made.group[rows]])
    columns = key_of(fleet, made, rows) | {
        "member_id": member_ids(fleet, made, rows, slot),
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
    """Return stalls: an eager group stops completely, other groups stop only the partitions of one member."""
    is_eager = fleet.mode[made.group] == 0
    rows, position = slots(np.where(is_eager, fleet.members[made.group], 1) * PARTITIONS_EACH)
    own = made.bounced[rows] * PARTITIONS_EACH + position
    index = np.where(is_eager[rows], position, own)
    resumed = made.joined_at[rows] + 30
    took = made.took[rows] + rng.integers(0, 500, len(rows))
    slack = np.where(made.grade[rows] == 0, 0, 2_000)
    owner = member_ids(fleet, made, rows, index // PARTITIONS_EACH)
    columns = key_of(fleet, made, rows) | {
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
    columns = key_of(fleet, made) | {
        "event_at": made.joined_at - made.took,
        "kind": KIND_OF_EVENT[made.trigger],
        "member_id": member_ids(fleet, made, rows, made.bounced),
        "client_id": pa.array([f"consumer-{n}" for n in made.bounced]),
        "client_host": pa.array([f"/10.0.{n % 8}.{n % 250}" for n in made.group * 7 + made.bounced]),
        "detail": "client reason: the consumer is being closed",
    }
    return columns, len(rows)


def _episode_rows(fleet: Groups, made: Generations) -> Columns:
    lost = made.took * PARTITIONS_EACH / 1000
    columns = key_of(fleet, made) | {
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


def groups_of(fleet: Groups, made: Generations, end: int) -> tuple[Columns, int]:
    """Return the rows of `groups`."""
    last = np.searchsorted(made.group, np.arange(len(fleet.ids)), side="right") - 1
    is_open = (np.arange(len(fleet.ids)) % 997 == 5) & (fleet.rate > 1)
    columns = key_of(fleet, made, last) | {
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
