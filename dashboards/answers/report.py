"""What rebalances cost in a range: by cause, cluster, team, group and storm, and against the range before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from dashboards.answers.blocks import Block, Heading, Paragraph, TextTable
from dashboards.answers.group_advice import advice_of, recommended
from dashboards.answers.why import known_span
from dashboards.answers.written import VERDICT_OF_GROUP, at, newest_records, verdict_values
from dashboards.lake.lake import Lake, Row
from dashboards.queries.causes import Causes, Pending, Scope, compared
from dashboards.queries.store import KnownSpan, Store
from dashboards.teams import NO_TEAM, Teams
from dashboards.text import duration, instant, visible
from dashboards.urlstate import Window
from dashboards.views import sentences
from dashboards.views.verdict_words import blamed
from dashboards.zone import zone
from schemas import loss_interval, written
from schemas.written import amount, count

GROUPS = 10
STORMS = 5


class WorstGroup(NamedTuple):
    """A group, its sums by verdict and cause (the greatest loss first), and its recommended change, if any."""

    row: Row
    verdicts: list[Row]
    advice: Row | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A range of time, and the range before it. `groups` are those that lost most.

    `team` limits it to the groups of a team. `clusters` and `by_team` are rows of `compared`; `by_team` is None without
    the setting [teams]. `pending` are the rebalances that are not analyzed yet, with their loss. `week` is the name of
    a calendar week, or empty. `has_all_storms`: the storms were not too many to be read.
    """

    window: Window
    totals: Row
    verdicts: list[Row]
    before: Window
    totals_before: Row
    verdicts_before: list[Row]
    groups: list[WorstGroup]
    storms: list[Row]
    has_all_storms: bool
    seen: KnownSpan
    teams: Teams
    team: str
    week: str
    clusters: list[Row]
    by_team: list[Row] | None
    pending: Pending
    pending_lost: float

    @property
    def is_observed(self) -> bool:
        """Return whether anything is known of the range."""
        return self.seen.reaches(self.window)

    @property
    def has_before(self) -> bool:
        """Return whether all of the range before it lies after the first known record."""
        return self.seen.first_at <= self.before.start


def report(
    lake: Lake,
    window: Window,
    *,
    before: Window | None = None,
    week: str = "",
    teams: Teams | None = None,
    team: str = "",
) -> Report:
    """Return the report of a range; `before` is by default the range of the same length before it.

    Raises:
        NoAnswerError: no group is known.
        LakeError: the tables cannot be read.
    """
    store = Store(lake, teams)
    seen = known_span(store)
    before = before or Window(window.start - window.width, window.start, is_live=False)
    scope = Scope(team=team, teams=store.teams)
    now, earlier = Causes(store, window, scope), Causes(store, before, scope)
    pending = now.pending()
    clusters = compared(store, window, before, scope, "cluster", pending).rows
    has_teams = bool(store.teams) and not team
    storms = store.storms(window)
    return Report(
        window=window,
        totals=now.totals() if team else store.totals(window),
        verdicts=now.verdicts(),
        before=before,
        totals_before=earlier.totals() if team else store.totals(before),
        verdicts_before=earlier.verdicts(),
        groups=[_group(store, row, window) for row in now.worst(GROUPS)],
        storms=[row for row in storms.rows if not team or _hit(row, store.teams, team)],
        has_all_storms=not storms.is_capped,
        seen=seen,
        teams=store.teams,
        team=team,
        week=week,
        clusters=clusters,
        by_team=compared(store, window, before, scope, "team", pending).rows if has_teams else None,
        pending=pending,
        pending_lost=sum(row["pending_lost"] for row in clusters),
    )


def _hit(storm: Row, teams: Teams, team: str) -> bool:
    """Return whether a storm hit a group of the team, as far as the reader may see its groups."""
    wanted = None if team == NO_TEAM else team
    return any(teams.of_group(storm["cluster"], name) == wanted for name in storm["group_ids"] or ())


def _group(store: Store, row: Row, window: Window) -> WorstGroup:
    cluster, name = row["cluster"], row["group_id"]
    advice = recommended(advice_of(store, cluster, name))
    return WorstGroup(row, store.group_verdicts(cluster, name, window), advice[0] if advice else None)


def blocks(found: Report, *, now_ms: int, stale_ms: int) -> Iterator[Block]:
    """Yield the report as headings, paragraphs and tables of plain text."""
    yield Heading(1, title(found))
    for name, until in sorted(found.seen.until.items()):
        if found.window.end - until > stale_ms:
            age = duration(max(0, now_ms - until))
            yield Paragraph(
                f"The newest record of {visible(name, 60)} is {age} old: nothing is known of the time since."
            )
    if not found.is_observed:
        yield Paragraph("Nothing is known of this range.")
        return
    if (begin := found.seen.first_at) > found.window.start:
        yield Paragraph(f"The first record is of {instant(begin)[:19]} {zone()}: nothing is known of the time before.")
    totals = found.totals
    lost = loss_interval.written(totals["lost"], totals["lost_low"], totals["lost_high"])
    yield Paragraph(f"{count(totals['rebalances'], 'rebalance')}, {lost} resource-seconds lost. {_change(found)}")
    if found.pending.rebalances:
        yield Paragraph(pending_sentence(found))
    yield Heading(2, "By cause")
    yield TextTable(("Blamed on", "Cause", "Lost", "Before", "Rebalances", "Before"), causes(found))
    if found.by_team is not None:
        yield Heading(2, "By team")
        yield TextTable(("Team", *SPLIT_HEAD), [_split(found, team_of(found, row), row) for row in found.by_team])
    yield Heading(2, "By cluster")
    yield TextTable(
        ("Cluster", *SPLIT_HEAD), [_split(found, visible(row["cluster"], 40), row) for row in found.clusters]
    )
    yield Heading(2, "Groups that lost most")
    yield TextTable(
        ("Group", "Cluster", "Lost resource-seconds", "Rebalances", "Mostly", "Recommended change"),
        [_cells(group) for group in found.groups],
    )
    yield Heading(2, "Storms")
    if found.has_all_storms:
        yield Paragraph(f"{count(len(found.storms), 'storm')}." if found.storms else "None.")
    else:
        yield Paragraph(f"At least {count(len(found.storms), 'storm')}.")
    if found.storms:
        yield TextTable(("From", "Groups", "Lost resource-seconds"), [_storm(row) for row in found.storms[:STORMS]])


def title(found: Report) -> str:
    """Return what the report is about: its team, its week, and its range."""
    first, last = (instant(ms)[:16] for ms in (found.window.start, found.window.end))
    of = of_team(found)
    span = f"from {first} to {last} {zone()}"
    return f"Rebalances{of} in week {found.week}, {span}" if found.week else f"Rebalances{of} {span}"


def of_team(found: Report) -> str:
    """Return the words that name the report's groups after `Rebalances`; empty for all groups."""
    return "" if not found.team else " of groups without a team" if found.team == NO_TEAM else f" of team {found.team}"


def pending_sentence(found: Report) -> str:
    """Return what is not analyzed yet, and is therefore in no sum by cause."""
    number = found.pending.rebalances
    return (
        f"{count(number, 'rebalance')} {'is' if number == 1 else 'are'} not analyzed yet, in which "
        f"{amount(found.pending_lost)} was lost: no sum by cause has them."
    )


def team_of(found: Report, row: Row) -> str:
    """Return the name of the team of a row of `by_team`."""
    name = found.teams.name_at(row["team"])
    return "no team" if name is None else visible(name, 60)


SPLIT_HEAD = ("Lost", "Before", "Rebalances", "Before", "Mostly", "Not analyzed yet")


def _split(found: Report, name: str, row: Row) -> tuple[str, ...]:
    before = (amount(row["lost_before"]), f"{row['rebalances_before']:,}") if found.has_before else ("not known",) * 2
    mostly = "not analyzed yet" if row["pending_rebalances"] else "nothing"
    if row["main_verdict"] is not None:
        mostly = f"{blamed(row['main_verdict'])}: {sentences.cause(row['main_cause'])}"
    waiting = f"{amount(row['pending_lost'])} in {row['pending_rebalances']:,}" if row["pending_rebalances"] else "none"
    lost = amount(row["lost"]) if row["rebalances"] or not row["pending_rebalances"] else "not analyzed yet"
    return (name, lost, before[0], f"{row['rebalances']:,}", before[1], mostly, waiting)


def _change(found: Report) -> str:
    length = f"In the {duration(found.before.width)} before, "
    if not found.has_before:
        return f"{length}not everything was recorded, so there is no comparison."
    before = found.totals_before
    return f"{length}{count(before['rebalances'], 'rebalance')} lost {amount(before['lost'])}."


def causes(found: Report) -> list[tuple[str, ...]]:
    """Return verdict, cause, loss now and before, and rebalances now and before, the costliest verdict first."""
    before = {(row["verdict"], row["cause"]): row for row in found.verdicts_before}
    now = {(row["verdict"], row["cause"]): row for row in found.verdicts}
    rows = []
    for key in [*now, *(key for key in before if key not in now)]:
        pair = [of.get(key, {"lost": 0.0, "rebalances": 0}) for of in (now, before)]
        lost, rebalances = [amount(each["lost"]) for each in pair], [f"{each['rebalances']:,}" for each in pair]
        if not found.has_before:
            lost[1] = rebalances[1] = "not known"
        rows.append((blamed(key[0]), sentences.cause(key[1]), *lost, *rebalances))
    return rows


def _cells(group: WorstGroup) -> tuple[str, ...]:
    row, advice = group.row, group.advice
    mostly = sentences.cause(group.verdicts[0]["cause"]) if group.verdicts else "not analyzed yet"
    lost = loss_interval.written(row["lost"], row["lost_low"], row["lost_high"])
    change = "none"
    if advice is not None:
        saving = advice["saving"] if advice["saving_measured"] is None else advice["saving_measured"]
        grade = "modelled" if advice["saving_measured"] is None else "measured"
        change = sentences.action(advice["action"])
        change += "" if saving is None else f", {written.signed(saving)} ({grade})"
    names = (visible(row["group_id"], 80), visible(row["cluster"], 40))
    return (*names, lost, f"{row['rebalances']:,}", mostly, change)


def _storm(row: Row) -> tuple[str, ...]:
    return (f"{instant(row['started_at'])[:19]} {zone()}", f"{row['groups']:,}", loss_interval.of_row(row))


def report_values(found: Report, *, now_ms: int, stale_ms: int) -> dict[str, Any]:
    """Return the report as values of JSON, with times in ISO 8601 (UTC). Sums that are not known are null."""
    losses = ("rebalances", "lost", "lost_min", "lost_max", "lost_low", "lost_high")
    advised = ("action", "saving", "saving_low", "saving_high", "saving_measured")
    return {
        "from": at(found.window.start),
        "to": at(found.window.end),
        "week": found.week or None,
        "team": found.team or None,
        "is_observed": found.is_observed,
        "newest_records": newest_records(found.seen, now_ms, stale_ms),
        "totals": found.totals if found.is_observed else None,
        "verdicts": verdict_values(found.verdicts),
        "not_analyzed": {"rebalances": found.pending.rebalances, "lost": found.pending_lost},
        "clusters": [{"cluster": row["cluster"], **_split_values(found, row)} for row in found.clusters],
        "teams": None
        if found.by_team is None
        else [{"team": found.teams.name_at(row["team"]), **_split_values(found, row)} for row in found.by_team],
        "before": {
            "from": at(found.before.start),
            "totals": found.totals_before if found.has_before else None,
            "verdicts": verdict_values(found.verdicts_before) if found.has_before else None,
        },
        "groups": [
            {
                **{name: group.row[name] for name in ("cluster", "group_id", *losses)},
                "verdicts": verdict_values(group.verdicts, VERDICT_OF_GROUP),
                "advice": None if group.advice is None else {name: group.advice.get(name) for name in advised},
            }
            for group in found.groups
        ],
        "storms": [storm_values(row) for row in found.storms],
        "has_all_storms": found.has_all_storms,
    }


def _split_values(found: Report, row: Row) -> dict[str, Any]:
    names = ("rebalances", "lost", "lost_min", "lost_max", "observed")
    before = {"rebalances": row["rebalances_before"], "lost": row["lost_before"]}
    return {
        **{name: row[name] for name in names},
        "main_verdict": row["main_verdict"],
        "main_cause": row["main_cause"],
        "before": before if found.has_before else None,
        "not_analyzed": {"rebalances": row["pending_rebalances"], "lost": row["pending_lost"]},
    }


def storm_values(row: Row) -> dict[str, Any]:
    """Return a storm as values of JSON, with times in ISO 8601 (UTC)."""
    names = ("cluster", "storm_id", "scope", "groups", "rebalances", "lost_resource_seconds", "suspected_cause")
    return {name: row[name] for name in names} | {name: at(row[name]) for name in ("started_at", "ended_at")}
