"""The part of the Health page about Regroup's own jobs, and the quality rules of its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Self

from dash.development.base_component import Component

from dashboards.lake.lake import Row
from dashboards.queries.health_store import HealthStore
from dashboards.text import ABSENT, duration, instant, visible
from dashboards.views.components import Cell, table_panel, tile
from schemas.operations import HEARTBEAT_MS
from schemas.rules import CHECKED
from schemas.states import JobOutcome, RuleSeverity
from schemas.written import count

SILENT_MS = 2 * HEARTBEAT_MS + 60_000
"""A running job that has not reported for this long has missed two reports."""

LOST = "end not reported"
WRONG = (LOST, JobOutcome.FAILED)
RUN_HEAD = (
    "Job", "Outcome", "Why", "Started (UTC)", "Ended (UTC)", "For", "Last report (UTC)", "Part of", "Version", "Host",
)  # fmt: skip
RULE_HEAD = ("Table", "Rule", "What is wrong", "Weight", "Rows", "Of", "Examples")
CHECK_HEAD = (
    "Table", "Rules are", "Version now", "Version checked", "Checked at (UTC)", "Kept", "Broken", "Rows checked",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Operations:
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

    def tiles(self) -> list[Component]:
        jobs = {run["job"] for run in self.runs}
        checked = {row["table_name"] for row in self.results}
        rules = f"{len(self.broken):,}" if self.results else "unknown"
        note = f"{count(len(checked), 'table')} checked, {self.changed:,} changed since, {len(self.unchecked):,} never"
        return [
            tile("Failed or silent", f"{len(self.wrong):,}" if jobs else "unknown", f"of {count(len(jobs), 'job')}",
                 loud=bool(self.wrong)),
            tile("Rules broken", rules, note, loud=bool(self.broken)),
        ]  # fmt: skip

    def panels(self) -> list[Component]:
        return [self._runs(), *self._quality()]

    def _runs(self) -> Component:
        shown = [
            run for run in self.runs if run["position"] == 1 or (run["position"] == 2 and self.outcome(run) in WRONG)
        ]
        shown.sort(key=lambda run: (self.outcome(run) not in WRONG, run["position"], -run["started_at"], run["job"]))
        return table_panel(
            "Job runs",
            "The last run of each job, and the run before it if that failed or did not report its end. Such runs come "
            f"first. A running job reports every {duration(HEARTBEAT_MS)}.",
            RUN_HEAD,
            [self._run(run) for run in shown],
            nothing="No job run is recorded here, so the state of the jobs is unknown.",
        )

    def _run(self, run: Row) -> list[Cell]:
        outcome = self.outcome(run)
        end = {LOST: None, JobOutcome.RUNNING: self.now}.get(outcome, run["ended_at"])
        return [
            visible(run["job"], 40),
            visible(outcome, 40),
            visible(run["error"], 300),
            instant(run["started_at"])[:19],
            instant(run["ended_at"])[:19],
            ABSENT if end is None else duration(max(0, end - run["started_at"])),
            instant(run["told_at"])[:19],
            visible(run["part_of"], 40),
            visible(run["regroup_version"], 40),
            visible(run["host"], 60),
        ]

    def _quality(self) -> list[Component]:
        broken = sorted(
            self.broken, key=lambda row: (row["severity"] != RuleSeverity.ERROR, row["table_name"], row["rule"])
        )
        checks = table_panel(
            "Data quality",
            "Whether the rows of each table keep the rules of the table; “regroup quality” checks every new version.",
            CHECK_HEAD,
            [*self._never(), *self._checked()],
            nothing="There is no table of silver or gold yet.",
        )
        if not broken:
            return [checks]
        text = "Do not rely on rows that break a rule. The examples are keys of such rows."
        return [table_panel("Broken rules", text, RULE_HEAD, [_rule(row) for row in broken]), checks]

    def _never(self) -> list[list[Cell]]:
        return [
            [name, "never checked", self.versions[name], ABSENT, ABSENT, ABSENT, ABSENT, ABSENT]
            for name in self.unchecked
        ]

    def _checked(self) -> list[list[Cell]]:
        found: list[list[Cell]] = []
        for name, group in groupby(self.results, key=lambda row: row["table_name"]):
            rows = list(group)
            broken, version, now = sum(not row["passed"] for row in rows), rows[0]["version"], self.versions.get(name)
            state = "broken" if broken else "kept" if version == now else "kept, newer rows not checked yet"
            found.append(
                [
                    visible(name, 60),
                    state,
                    "not there" if now is None else now,
                    int(version),
                    instant(rows[0]["checked_at"])[:19],
                    len(rows) - broken,
                    broken,
                    int(rows[0]["rows_checked"]),
                ]
            )
        return sorted(found, key=lambda cells: cells[1] != "broken")


def _rule(row: Row) -> list[Cell]:
    examples = row["examples"] or []
    return [
        visible(row["table_name"], 60),
        visible(row["rule"], 120),
        visible(row["sentence"], 300),
        visible(row["severity"], 20),
        int(row["rows_failed"]),
        int(row["rows_checked"]),
        "; ".join(visible(example, 300) for example in examples) or ABSENT,
    ]
