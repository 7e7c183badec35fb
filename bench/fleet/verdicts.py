"""Verdicts of a synthetic cluster (`bench.fleet`), as columns of the table: one row per generation."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from bench.fleet.fleet import Columns, Generations, Groups, key_of
from pipelines.arrow_types import TYPES
from schemas.states import DiagnosisCause, Evidence, Verdict

BLAMED = (
    (Verdict.CLIENT_APPLICATION, DiagnosisCause.POLL_TIMEOUT),
    (Verdict.CLIENT_APPLICATION, DiagnosisCause.SESSION_EXPIRY),
    (Verdict.CLIENT_APPLICATION, DiagnosisCause.CRASH_LOOP),
    (Verdict.DEPLOY_OR_SCALING, DiagnosisCause.DEPLOY),
    (Verdict.DEPLOY_OR_SCALING, DiagnosisCause.SCALING),
    (Verdict.CONFIGURATION, DiagnosisCause.TOPIC_CHANGES),
    (Verdict.BROKER, DiagnosisCause.COORDINATOR),
    (Verdict.UNKNOWN, DiagnosisCause.UNKNOWN),
)


def verdicts_of(rng: np.random.Generator, fleet: Groups, made: Generations) -> tuple[Columns, int]:
    """Return the columns of `verdicts` for these generations, and their number."""
    length = len(made.group)
    chosen = rng.integers(0, len(BLAMED), length)
    causes = np.array([cause.value for _, cause in BLAMED])[chosen]
    lost = made.took / 1000 * fleet.members[made.group]
    record = [f"record of generation {number}" for number in made.number]
    columns = key_of(fleet, made) | {
        "joined_at": made.joined_at,
        "verdict": np.array([verdict.value for verdict, _ in BLAMED])[chosen],
        "cause": causes,
        "set_off_by": causes,
        "evidence": np.where(made.grade == 0, Evidence.OBSERVED.value, Evidence.INFERRED.value),
        "instances": pa.array([["app-1"]] * length, TYPES["ARRAY<STRING>"]),
        "hosts": pa.array([["/10.0.0.1"]] * length, TYPES["ARRAY<STRING>"]),
        "lost_resource_seconds_min": lost * 0.8,
        "lost_resource_seconds": lost,
        "lost_resource_seconds_max": lost * 1.3,
        "reason": "app-1 did not poll within its max.poll.interval.ms.",
        "proof": pa.array([[each] for each in record], TYPES["ARRAY<STRING>"]),
    }
    return columns, length
