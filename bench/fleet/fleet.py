"""A synthetic cluster for benchmarks: groups, and the generations of each group.

Most groups are quiet, a quarter is deployed more than once a day, a twentieth churns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

CLUSTER = "prod-eu"
HOUR, DAY = 3_600_000, 24 * 3_600_000
PARTITIONS_EACH = 3
KINDS = ((0.70, 0.2), (0.25, 1.5), (0.04, 12.0), (0.01, 40.0))
"""Share of the groups, and their generations per day."""

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
    """One entry per group; `rate` is generations per day."""

    ids: np.ndarray
    rate: np.ndarray
    members: np.ndarray
    mode: np.ndarray
    seen_at: np.ndarray


@dataclass(frozen=True, slots=True)
class Generations:
    """One entry per generation, by group and time. `bounced` is the member that triggered it."""

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


def fleet_of(rng: np.random.Generator, groups: int, start: int) -> Groups:
    """Return `groups` groups, each first seen in the hour after `start`."""
    names = [f"{TEAMS[n % 10]}-{DOES[n // 10 % 10]}-{n // 100:03d}" for n in range(groups)]
    kind = rng.choice(len(KINDS), groups, p=[share for share, _ in KINDS])
    members = np.clip(rng.poisson(4, groups), 1, 12)
    # One of the busy groups is large: 60 members with 180 partitions.
    members[np.argmax(kind == 2)] = 60
    mode = rng.choice(3, groups, p=[0.3, 0.5, 0.2])
    rate = np.array([rate for _, rate in KINDS])[kind]
    order = np.argsort(np.array(names))
    ids = np.array(names, dtype=object)[order]
    return Groups(ids, rate[order], members[order], mode[order], start + rng.integers(0, HOUR, groups)[order])


def generations_of(rng: np.random.Generator, fleet: Groups, days: int, end: int) -> Generations:
    """Return the generations in the days before `end`."""
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


def key_of(fleet: Groups, made: Generations, rows: np.ndarray | None = None) -> Columns:
    """Return the columns that every row of a generation has. `rows` is the generation of each row."""
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


def member_ids(fleet: Groups, made: Generations, rows: np.ndarray, slot: np.ndarray) -> pa.Array:
    """Return member ids: each process has its own, and the bounced member is a new process."""
    life = (made.number[rows] - slot) // fleet.members[made.group[rows]] + 1
    number = (made.group[rows] * 64 + slot) * 4_096 + life
    different, which = np.unique(number, return_inverse=True)
    names = pa.array(
        [f"consumer-{n // 4096 % 64}-{n * 2654435761 % 2**32:08x}-9abc-{n:017x}" for n in different.tolist()]
    )
    return pa.DictionaryArray.from_arrays(pa.array(which, pa.int32()), names).cast(pa.string())


def slots(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the entry and the position within it for `counts` rows of each entry."""
    rows = np.repeat(np.arange(len(counts)), counts)
    first = np.concatenate(([0], np.cumsum(counts)[:-1])) if len(counts) else np.array([], int)
    return rows, np.arange(len(rows)) - np.repeat(first, counts)
