"""The state of Regroup's own jobs and of the quality rules of its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from dashboards.lake.lake import Row
from dashboards.queries.health_store import HealthStore
from schemas.operations import HEARTBEAT_MS
from schemas.rules import CHECKED
from schemas.states import JobOutcome
from schemas.written import count

SILENT_MS = 2 * HEARTBEAT_MS + 60_000
"""A running job that has not reported for this long has missed two reports."""

LOST = "end not reported"
WRONG = (LOST, JobOutcome.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsAndRules:
    """The job runs, the latest results of the quality rules, and the current version of each table."""

    runs: Sequence[Row]
    results: Sequence[Row]
    versions: Mapping[str, int]
    now: int

    @classmethod
    def of(cls, health: HealthStore, now: int) -> Self:
        return cls(runs=health.runs(now), results=health.results(), versions=health.versions(), now=now)

    @property
    def wrong(self) -> list[Row]:
        """Return jobs whose last run failed, or whose end was not reported."""
        return [run for run in self.runs if run["position"] == 1 and self.outcome(run) in WRONG]

    @property
    def broken(self) -> list[Row]:
        return [row for row in self.results if not row["passed"]]

    @property
    def unchecked(self) -> list[str]:
        """Return existing tables that have rules but were never checked."""
        checked = {row["table_name"] for row in self.results}
        return [table.name for table in CHECKED if table.name in self.versions and table.name not in checked]

    @property
    def changed(self) -> int:
        """Return how many tables differ from their checked version, or no longer exist."""
        checked = {row["table_name"]: row["version"] for row in self.results}
        return sum(self.versions.get(name) != version for name, version in checked.items())

    def outcome(self, run: Row) -> str:
        """Return the run's last reported outcome, or LOST if it must have ended without a report."""
        if run["outcome"] != JobOutcome.RUNNING:
            return str(run["outcome"])
        next_at = run["next_started_at"]
        is_followed = next_at is not None and next_at > run["told_at"]
        return LOST if is_followed or self.now - run["told_at"] > SILENT_MS else str(run["outcome"])

    def summary(self) -> list[str]:
        """Return one part of a sentence about the jobs, and one about the rules."""
        if not self.runs:
            jobs = "no job run is recorded"
        elif self.wrong:
            jobs = f"{count(len(self.wrong), 'job')} failed or stopped reporting in the last run"
        else:
            jobs = "no job's last run failed"
        if not self.results:
            rules = "no table was checked against its rules"
        elif self.broken:
            rules = f"{count(len(self.broken), 'rule')} broken"
        else:
            rules = "every checked rule is kept"
        if self.results and self.unchecked:
            rules += f", {count(len(self.unchecked), 'table')} never checked"
        if self.changed:
            rules += f", {count(self.changed, 'table')} changed since"
        return [jobs, rules]
