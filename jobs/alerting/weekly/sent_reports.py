"""Which receivers have which report, in the table `job_runs`: a row for each attempt, with its outcome."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass

from dashboards.lake.lake import Lake
from jobs.installation.build_info import version
from jobs.tables.tables import Tables
from schemas.operations import JOB_RUNS
from schemas.rows import JobRunRow
from schemas.states import JobOutcome

MOST_ROWS = 100_000
PART_OF = "notify"
RETRY_MS = 60_000
LONGEST_RETRY_MS = 3_600_000
TRIES = 20

ATTEMPTS = """
SELECT job, count(*) AS tries, max(started_at) AS last_at,
       max(CASE WHEN outcome = 'succeeded' THEN 1 ELSE 0 END) AS is_sent
FROM job_runs WHERE run_id = $report AND part_of = $part_of GROUP BY job LIMIT $cap
"""


@dataclass(frozen=True, slots=True)
class DeliveryAttempts:
    """The attempts to send one report to one receiver."""

    tries: int = 0
    last_ms: int = 0
    is_sent: bool = False

    def is_due(self, now_ms: int) -> bool:
        """Return whether to try (again): after a minute, then twice as long each time, up to an hour, `TRIES` times."""
        if self.is_sent or self.tries >= TRIES:
            return False
        wait = min(RETRY_MS * 2 ** max(0, self.tries - 1), LONGEST_RETRY_MS) if self.tries else 0
        return now_ms - self.last_ms >= wait


def job_of(receiver: str) -> str:
    """Return the name of the deliveries to a receiver in `job_runs`."""
    return f"report to {receiver}"


def report_id(week: str) -> str:
    """Return the `run_id` of the report of a week."""
    return f"week {week}"


def attempts(lake: Lake, week: str) -> dict[str, DeliveryAttempts]:
    """Return the attempts to send the report of a week, by `job_of` the receiver."""
    rows = lake.query(ATTEMPTS, [JOB_RUNS.name], MOST_ROWS, {"report": report_id(week), "part_of": PART_OF}).rows
    return {row["job"]: DeliveryAttempts(row["tries"], row["last_at"], bool(row["is_sent"])) for row in rows}


def record(tables: Tables, receiver: str, week: str, started_ms: int, ended_ms: int, error: str | None) -> None:
    """Store the outcome of an attempt. Raises what writing a table raises."""
    outcome = JobOutcome.SUCCEEDED if error is None else JobOutcome.FAILED
    row: JobRunRow = {
        "job": job_of(receiver),
        "run_id": report_id(week),
        "told_at": ended_ms,
        "started_at": started_ms,
        "ended_at": ended_ms,
        "outcome": outcome.value,
        "error": error,
        "part_of": PART_OF,
        "regroup_version": version(),
        "host": socket.gethostname(),
        "pid": os.getpid(),
    }
    tables.append(JOB_RUNS, [row])
