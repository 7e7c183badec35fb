"""All gold rows of one group from its silver rows. `analyze`, rebuilds and tests use the same function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from pipelines.gold.advice.advice import SavingThreshold, advice_rows
from pipelines.gold.advice.change_rows import change_rows
from pipelines.gold.advice.latencies import BrokerSettings
from pipelines.gold.deploys.deploy_rows import AFTER_MS, deploy_rows
from pipelines.gold.deploys.runs import BEFORE_MS, GAP_MS
from pipelines.gold.diagnosis.causes import context
from pipelines.gold.diagnosis.diagnosis import diagnosis_rows
from pipelines.gold.diagnosis.verdict_rows import verdict_rows
from pipelines.gold.diagnosis.verdicts import Judgment, judgment
from pipelines.gold.health import health_rows
from pipelines.gold.marks_nearby import in_order
from pipelines.gold.memberships import Silver, number
from pipelines.gold.observed_settings import whole_number
from pipelines.gold.patterns.group_patterns import pattern_rows
from pipelines.gold.pod_ends import NO_PODS, PodIndex
from pipelines.gold.rebalance_causes import deploy_departures
from pipelines.gold.window import Windows
from schemas.folded_rows import count_of
from schemas.gold import ADVICE, DEPLOYS, DIAGNOSES, GROUP_HEALTH, GROUP_TABLES, PATTERNS, SETTING_CHANGES, VERDICTS
from schemas.rows import (
    AdviceOfGroup,
    DeployOfGroup,
    DiagnosisOfGroup,
    GroupHealthOfGroup,
    MarkRow,
    PatternOfGroup,
    SettingChangeOfGroup,
    VerdictOfGroup,
)
from schemas.states import GroupEventKind, MarkKind
from schemas.tables import Table
from schemas.thresholds import DAY_MS

REPLAYED = 40_000
"""Maximum product of generations and resources in a window."""

MOST, FEWEST = 400, 40
RowOfGroup = (
    GroupHealthOfGroup
    | AdviceOfGroup
    | SettingChangeOfGroup
    | DiagnosisOfGroup
    | VerdictOfGroup
    | DeployOfGroup
    | PatternOfGroup
)
Rows = dict[str, list[Mapping[str, Any]]]
"""Gold rows by table name. Each has the row type of its table (`schemas.rows`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisConfig:
    """Configuration of an analysis. `window_ms` is the length of the window of advice and diagnoses."""

    quiet_ms: int = 10_000
    window_ms: int = 7 * DAY_MS
    worth: SavingThreshold = field(default_factory=SavingThreshold)


def gold_rows(
    cluster: str,
    group_id: str,
    silver: Silver,
    *,
    broker: BrokerSettings,
    config: AnalysisConfig,
    since_ms: int,
    until_ms: int,
    marks: Sequence[MarkRow] = (),
    tables: Sequence[Table] = GROUP_TABLES,
    pods: PodIndex = NO_PODS,
) -> Rows:
    """Return rows by table name, from the day of `since_ms` on. Timestamps are milliseconds since the epoch.

    Advice, diagnoses and patterns exist once for each day (UTC) on which the group rebalanced, as of the last recorded
    time of that day. Verdicts are as of the end of the rebalance's day, with losses up to the end of its stalls.
    `marks` are the marks of the group and of its whole cluster, `pods` the pods of the cluster. `until_ms` is the end
    of the cluster's history. Deploys are those that began on the day before that of `since_ms` or later, as of the end
    of their windows. `silver` must reach back to the generation before `groups.cut_ms`.
    """
    silver, marks = _ordered(silver), in_order(marks)
    windows, most = Windows.of(silver), _most(silver)
    first_day = since_ms // DAY_MS
    days = sorted({g["joined_at"] // DAY_MS for g in silver["generations"] if g["joined_at"] // DAY_MS >= first_day})
    advice: list[AdviceOfGroup] = []
    changes: dict[int, list[SettingChangeOfGroup]] = {}
    diagnoses: dict[int, list[DiagnosisOfGroup]] = {}
    patterns: dict[int, list[PatternOfGroup]] = {}
    verdicts: dict[int, list[VerdictOfGroup]] = {}
    for day in days:
        end = (day + 1) * DAY_MS
        start = _start(windows, most, end, config)
        analyzed = windows.window(start, end)
        known = context(analyzed, pods)
        is_replayed = ADVICE in tables or SETTING_CHANGES in tables
        whole = _after_folded(windows, analyzed, (start, end)) if is_replayed else analyzed
        if ADVICE in tables:
            deployed = deploy_departures(known)
            advice += advice_rows(whole, broker, config.worth, config.quiet_ms, deployed)
        if SETTING_CHANGES in tables:
            changed = change_rows(whole, broker, config.quiet_ms)
            changes |= {row["as_of"]: changed for row in changed[:1]}
        if VERDICTS in tables or DIAGNOSES in tables:
            judged = judgment(analyzed, start, marks, known)
            found = diagnosis_rows(analyzed, start, marks, judged) if DIAGNOSES in tables else []
            diagnoses |= {row["as_of"]: found for row in found[:1]}
            analyzed_day = _Day(start_ms=start, end_ms=end, silver=analyzed, judged=judged)
            if VERDICTS in tables:
                verdicts[day] = _verdicts(windows, analyzed_day, most, config, marks, pods)
        shown = pattern_rows(analyzed, start, known) if PATTERNS in tables else []
        patterns |= {row["as_of"]: shown for row in shown[:1]}
    if DIAGNOSES in tables:
        for day in sorted(_returned(silver, first_day) - set(days)):
            end = (day + 1) * DAY_MS
            start = _start(windows, most, end, config)
            analyzed = windows.window(start, end)
            found = diagnosis_rows(analyzed, start, marks, judgment(analyzed, start, marks, pods=pods))
            diagnoses |= {row["as_of"]: found for row in found[:1]}
    health = health_rows(silver, until_ms) if GROUP_HEALTH in tables else []

    def verdicts_of(day: int) -> list[VerdictOfGroup]:
        if day not in verdicts:
            end = (day + 1) * DAY_MS
            start = _start(windows, most, end, config)
            analyzed = windows.window(start, end)
            judged = judgment(analyzed, start, marks, pods=pods)
            whole_day = _Day(start_ms=start, end_ms=end, silver=analyzed, judged=judged)
            verdicts[day] = _verdicts(windows, whole_day, most, config, marks, pods)
        return verdicts[day]

    rows: dict[Table, Sequence[RowOfGroup]] = {
        GROUP_HEALTH: [row for row in health if row["hour_at"] >= first_day * DAY_MS],
        ADVICE: list({(row["as_of"], row["action"]): row for row in advice}.values()),
        SETTING_CHANGES: [row for found in changes.values() for row in found],
        DIAGNOSES: [row for found in diagnoses.values() for row in found],
        VERDICTS: [row for day in days for row in verdicts.get(day, ())],
        DEPLOYS: _deploys(windows, marks, verdicts_of, since_ms) if DEPLOYS in tables else [],
        PATTERNS: [row for found in patterns.values() for row in found],
    }
    key = {"cluster": cluster, "group_id": group_id}
    return {table.name: [{**key, **row} for row in rows[table]] for table in tables}


def _after_folded(windows: Windows, analyzed: Silver, limits: tuple[int, int]) -> Silver:
    """Return the part of a window after its last folded row, which cannot be replayed."""
    start, end = limits
    folded = [g["joined_at"] for g in analyzed["generations"] if g["joined_at"] >= start and count_of([g]) > 1]
    return windows.window(folded[-1] + 1, end) if folded else analyzed


def _returned(silver: Silver, first_day: int) -> set[int]:
    """Return the days (UTC) on which a static member returned without a rebalance."""
    times = (e["event_at"] for e in silver["group_events"] if e["kind"] == GroupEventKind.STATIC_RETURNED)
    return {at // DAY_MS for at in times if at // DAY_MS >= first_day}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Day:
    """A day's window of diagnoses, and its judgment."""

    start_ms: int
    end_ms: int
    silver: Silver
    judged: Judgment


def _verdicts(
    windows: Windows, day: _Day, most: int, config: AnalysisConfig, marks: Sequence[MarkRow], pods: PodIndex
) -> list[VerdictOfGroup]:
    """Return the verdicts on a day's rebalances, in parts of half as many generations as a window may have."""
    begin_ms, half = day.end_ms - DAY_MS, most // 2
    joined = [g["joined_at"] for g in windows.generations if begin_ms <= g["joined_at"] < day.end_ms]
    ends = [*sorted(set(joined[half::half])), day.end_ms]
    out: list[VerdictOfGroup] = []
    for begin, end in pairwise([begin_ms, *ends]):
        start = _start(windows, most, end, config)
        is_whole = (start, end) == (day.start_ms, day.end_ms)
        analyzed = day.silver if is_whole else windows.window(start, end)
        stalls = windows.stalls_since(analyzed["generations"], start)
        # Where no stall goes on after the window, the judgment for the diagnoses holds for the verdicts too.
        is_judged = is_whole and stalls == analyzed["stalls"]
        judged = day.judged if is_judged else judgment({**analyzed, "stalls": stalls}, start, marks, pods=pods)
        out += verdict_rows(judged, windows.events, begin, end)
    return out


def _deploys(
    windows: Windows, marks: Sequence[MarkRow], verdicts_of: Callable[[int], list[VerdictOfGroup]], since_ms: int
) -> list[DeployOfGroup]:
    """Return the deploys from the day before that of `since_ms` on.

    A neighboring day is judged only if a rebalance near midnight may belong to a deploy of the day.
    """
    joined = [g["joined_at"] for g in windows.generations]
    announced = [m["marked_at"] for m in marks if m["kind"] == MarkKind.DEPLOY]
    # A deploy may go on after midnight, and the verdicts of a day may change until its end.
    first = since_ms // DAY_MS - 1
    out: list[DeployOfGroup] = []
    for day in sorted({at // DAY_MS for at in (*joined, *announced)} | {at // DAY_MS - 1 for at in joined}):
        begin, end = day * DAY_MS, (day + 1) * DAY_MS
        if day >= first:
            since, until = _chained(joined, begin, -1), _chained(joined, end, 1)
            judged = {at // DAY_MS for at in joined if since <= at <= until}
            near = [row for each in sorted(judged) for row in verdicts_of(each)]
            out += deploy_rows(windows, near, marks, begin, end)
    return out


def _chained(joined: Sequence[int], midnight: int, step: int) -> int:
    """Return how far rebalances without a pause reach from a midnight: backwards (-1) or forwards (1)."""
    limit = BEFORE_MS if step < 0 else AFTER_MS
    at = midnight
    for each in sorted((each for each in joined if 0 < (each - midnight) * step <= limit), reverse=step < 0):
        if abs(each - at) > GAP_MS:
            break
        at = each
    return at


def _ordered(silver: Silver) -> Silver:
    """Return the rows in a fixed order. Tables have no order, and replays draw random numbers in row order."""
    return {
        "generations": sorted(silver["generations"], key=number),
        "generation_members": sorted(silver["generation_members"], key=lambda row: (number(row), row["member_id"])),
        "stalls": sorted(
            silver["stalls"],
            key=lambda row: (row["incarnation"], row["log_epoch"], row["stopped_by_offset"], row["name"], row["index"]),
        ),
        "group_events": sorted(
            silver["group_events"], key=lambda row: (row["event_at"], row["kind"], row["member_id"])
        ),
    }


def _start(windows: Windows, most: int, end_ms: int, config: AnalysisConfig) -> int:
    """Return where a window that ends at `end_ms` begins. A storm shortens it, so that few enough generations are left
    to replay.
    """
    joined = [g["joined_at"] for g in windows.generations if g["joined_at"] < end_ms]
    return max(end_ms - config.window_ms, joined[-most] if len(joined) > most else 0)


def _most(silver: Silver) -> int:
    """Return the largest number of generations in a window."""
    largest = max((g["resources_assigned"] or 0 for g in silver["generations"]), default=0)
    return min(MOST, max(FEWEST, REPLAYED // max(1, largest)))


def broker(observed: Mapping[str, Any]) -> BrokerSettings:
    """Return broker settings from their last observed values by name. A missing or invalid value is unknown."""
    return BrokerSettings(
        heartbeat_ms=whole_number(observed, "group.consumer.heartbeat.interval.ms"),
        session_ms=whole_number(observed, "group.consumer.session.timeout.ms"),
        initial_delay_ms=whole_number(observed, "group.initial.rebalance.delay.ms"),
        assignment_interval_ms=whole_number(observed, "group.consumer.assignment.interval.ms"),
    )
