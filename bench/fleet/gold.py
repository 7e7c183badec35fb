"""Gold of a synthetic cluster (`bench.fleet`), and the other tables that the pages read, as columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from bench.fleet.fleet import CLUSTER, DAY, HOUR, TEAMS, Columns, Groups, slots
from pipelines.arrow_types import TYPES
from schemas.bronze import COVERAGE
from schemas.gold import ADVICE, DIAGNOSES, MARKS, STORMS
from schemas.silver import REASSIGNMENT_SAMPLES, REASSIGNMENTS
from schemas.states import AdviceAction, AdviceStatus, DiagnosisCause
from schemas.tables import Table


def gold_of(rng: np.random.Generator, fleet: Groups, days: int, end: int) -> list[tuple[Table, Columns, int]]:
    """Return the rows of every table except silver tables with generations."""
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
    rows, rank = slots(np.full(len(churning), len(actions)))
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
        "lost_replayed": lost,
        "saving": lost - left,
        "saving_low": lost - left * 1.2,
        "saving_high": lost - left * 0.8,
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
    """Return two causes a day for each group that churns."""
    causes = np.array([cause.value for cause in DiagnosisCause])
    rows, number = slots(np.full(len(churning), 2 * days))
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
    """Return ten storms a day; the last one is open."""
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
    """Return a deploy mark every half an hour."""
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
    """Return reassignments: four partitions a day move for ten minutes, observed every ten seconds."""
    count, polls = 4 * days, 60
    started = end - rng.integers(HOUR, days * DAY, count)
    topics = np.array([f"{TEAMS[n % len(TEAMS)]}-topic" for n in range(count)])
    key = {"cluster": CLUSTER, "topic": topics, "partition": np.arange(count), "leader": 1}
    rows, poll = slots(np.full(count, polls))
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
