"""The part of the Health page about Regroup's own jobs, and the quality rules of its tables."""

from __future__ import annotations

from itertools import groupby

from dash.development.base_component import Component

from dashboards.lake.lake import Row
from dashboards.text import ABSENT, duration, instant, visible
from dashboards.views.components import Cell, table_panel, tile
from dashboards.views.health.jobs_and_rules import LOST, WRONG, JobsAndRules
from schemas.operations import HEARTBEAT_MS
from schemas.states import JobOutcome, RuleSeverity
from schemas.written import count

RUN_HEAD = (
    "Job", "Outcome", "Why", "Started (UTC)", "Ended (UTC)", "For", "Last report (UTC)", "Part of", "Version", "Host",
)  # fmt: skip
RULE_HEAD = ("Table", "Rule", "What is wrong", "Weight", "Rows", "Of", "Examples")
CHECK_HEAD = (
    "Table", "Rules are", "Version now", "Version checked", "Checked at (UTC)", "Kept", "Broken", "Rows checked",
)  # fmt: skip


class Operations(JobsAndRules):
    """The job runs, the latest results of the quality rules, and the current version of each table, as panels."""

    __slots__ = ()

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
