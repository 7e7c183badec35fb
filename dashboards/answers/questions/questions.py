"""All questions. Their answers are those of the commands and the pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dashboards.answers.advise import advise, advise_values
from dashboards.answers.health import health, health_values
from dashboards.answers.incidents.document import values
from dashboards.answers.incidents.incident import Incident
from dashboards.answers.incidents.of_episode import of_episode
from dashboards.answers.incidents.of_rebalance import of_rebalance, rebalance_path
from dashboards.answers.incidents.of_storm import of_storm, storm_at
from dashboards.answers.questions.deploys import DEPLOYS
from dashboards.answers.questions.fields import (
    ADVICE_CHANGES,
    ADVICE_FIELDS,
    BY_CLUSTER,
    BY_TEAM,
    BY_VERDICT,
    CHANGES_MADE,
    EPISODE,
    GROUP_ROWS,
    MEASURED,
    NOT_ANALYZED,
    PROBLEMS,
    REBALANCE_OF_WHY,
    REBALANCE_ROWS,
    REPORT_BEFORE,
    REPORT_GROUPS,
    SENTENCES,
    SOURCES,
    STORM_ROWS,
    TIMELINE,
    TOTALS,
    VERDICT_FIELDS,
)
from dashboards.answers.questions.parameters import (
    CLUSTER,
    GROUP,
    OF_GROUP,
    RANGE,
    SEEN,
    limit_of,
    offset_of,
    window_of,
)
from dashboards.answers.questions.question import (
    ApiQuestion,
    BadRequestError,
    Given,
    Parameter,
    QuestionContext,
    milliseconds,
)
from dashboards.answers.report import report, report_values, storm_values
from dashboards.answers.top import top, top_values
from dashboards.answers.weekly import WEEK_FORM, check_team, of_days, of_week
from dashboards.answers.why import Why, group_of, known_span, why, why_generation
from dashboards.answers.why_text import why_values
from dashboards.answers.written import at
from dashboards.queries.store import GENERATION_ROWS, Store
from schemas.states import GroupProtocol

GROUPS_MOST, DAYS_MOST = 1_000, 366
STORMS_MOST, STORMS_SKIPPED = 500, 10_000
INT32 = 2**31 - 1

REBALANCE = (
    Parameter(name="at", about="time of the rebalance; by default what cost most in the newest episode", is_time=True),
    Parameter(name="generation", about="its generation or epoch, instead of at", kind="integer", least=0, most=INT32),
    Parameter(
        name="incarnation",
        about="number of times the group was deleted before; by default that of the present group",
        kind="integer",
        least=0,
        most=INT32,
    ),
)

AGE = {
    "newest_record_at": "time of the cluster's newest record",
    "is_stale": "whether that is old: nothing is known of the time since",
}
REBALANCES = (
    "incarnation", "generation_id", "last_generation_id", "group_protocol", "assignor", "rebalance_mode", "outcome",
    "member_count", "trigger", "trigger_evidence", "trigger_member_id", "rebalance_ms", "rebalance_ms_min",
    "rebalance_ms_max", "resources_assigned", "resources_moved", "evidence",
)  # fmt: skip
"""Columns of `generations` in the answer."""

LOSSES = ("lost", "lost_min", "lost_max", "lost_low", "lost_high")


def _groups(asked: QuestionContext, given: Given) -> dict[str, Any]:
    found = top(asked.lake, window_of(asked, given), given["limit"], skip=given["offset"], named=given["named"] or "")
    return top_values(found, **asked.state)


def _health(asked: QuestionContext, _: Given) -> dict[str, Any]:
    return health_values(health(asked.lake, **asked.state))


def _why(asked: QuestionContext, given: Given) -> dict[str, Any]:
    found = _rebalance(asked, given)
    return why_values(found, f"{asked.base_url}{rebalance_path(found)}", **asked.state)


def _rebalance(asked: QuestionContext, given: Given) -> Why:
    cluster = given["cluster"] or ""
    if given["generation"] is not None:
        if given["at"] is not None:
            raise BadRequestError("Name the rebalance by at or by generation, not by both.")
        return why_generation(
            asked.lake, given["group"], given["generation"], cluster=cluster, incarnation=given["incarnation"]
        )
    first = None if given["at"] is None else milliseconds(given["at"])
    return why(asked.lake, given["group"], cluster=cluster, at=None if first is None else (first, first + 999))


def _rebalances(asked: QuestionContext, given: Given) -> dict[str, Any]:
    store = Store(asked.lake)
    group, seen = group_of(store, given["group"], given["cluster"] or ""), known_span(store)
    window = window_of(asked, given) or seen.whole
    found = store.generations(group["cluster"], group["group_id"], window)
    rows = [row for row in found.rows if window.start <= row["joined_at"] < window.end]
    shown = _whole_milliseconds(rows, given["limit"], is_capped=found.is_capped)
    is_whole = len(shown) == len(rows) and not found.is_capped
    return {
        "cluster": group["cluster"],
        "group_id": group["group_id"],
        "from": at(window.start),
        "to": at(window.end),
        "rebalances": [_values(row) for row in shown],
        "next_to": None if is_whole or not shown else at(shown[-1]["joined_at"]),
    }


def _whole_milliseconds(rows: list[dict[str, Any]], limit: int, *, is_capped: bool) -> list[dict[str, Any]]:
    """Return the first `limit` rebalances and those of the same millisecond as the last, so that none is on two pages.

    If not all rebalances were read, the last millisecond may not be complete.
    """
    if is_capped:
        rows = [row for row in rows if row["joined_at"] > rows[-1]["joined_at"]] or rows
    return [row for row in rows if row["joined_at"] >= rows[limit - 1]["joined_at"]] if len(rows) > limit else rows


def _values(row: dict[str, Any]) -> dict[str, Any]:
    is_share = row["group_protocol"] == GroupProtocol.SHARE
    return {
        **{name: row[name] for name in REBALANCES},
        **{name: at(row[name]) for name in ("prepared_at", "joined_at", "completed_at")},
        **{name: None if is_share else row[name] for name in LOSSES},
    }


def _advice(asked: QuestionContext, given: Given) -> dict[str, Any]:
    return advise_values(advise(asked.lake, given["group"], cluster=given["cluster"] or ""))


def _report(asked: QuestionContext, given: Given) -> dict[str, Any]:
    try:
        check_team(asked.teams, given["team"] or "")
        chosen = of_days(given["days"], asked.now_ms) if given["week"] is None else of_week(given["week"], asked.now_ms)
    except ValueError as error:
        raise BadRequestError(str(error)) from None
    found = report(
        asked.lake,
        chosen.window,
        before=chosen.before,
        week=chosen.name,
        teams=asked.teams,
        team=given["team"] or "",
    )
    return report_values(found, **asked.state)


def _storms(asked: QuestionContext, given: Given) -> dict[str, Any]:
    store = Store(asked.lake)
    seen = known_span(store)
    window = window_of(asked, given) or seen.whole
    found = store.storms(window, given["offset"] + given["limit"])
    return {
        "from": at(window.start),
        "to": at(window.end),
        "storms": [storm_values(row) for row in found.rows[given["offset"] :]],
        "is_whole": not found.is_capped,
    }


def _incident(asked: QuestionContext, given: Given) -> dict[str, Any]:
    return values(_found(asked, given), asked.base_url, **asked.state)


def _found(asked: QuestionContext, given: Given) -> Incident:
    if (given["group"] is None) == (given["storm"] is None):
        raise BadRequestError("incident needs either group or storm.")
    if given["storm"] is None:
        found = _rebalance(asked, given)
        return of_episode(asked.lake, found) if given["episode"] else of_rebalance(asked.lake, found)
    try:
        first = milliseconds(given["storm"])
    except ValueError:
        return of_storm(asked.lake, given["storm"])
    return of_storm(asked.lake, storm_at(asked.lake, first, first + 999))


QUESTIONS: Sequence[ApiQuestion] = (
    ApiQuestion(
        name="groups",
        about="Which groups lost most to rebalances in a range of time, and what their losses are blamed on.",
        parameters=(
            *RANGE,
            Parameter(name="named", about="only groups whose id contains this text"),
            limit_of(GROUPS_MOST),
            offset_of(10**9),
        ),
        keys=SEEN
        | {
            "is_observed": "whether anything is known of the range",
            "totals": "rebalances and loss of all groups, in resource-seconds; null if nothing is known",
            "verdicts": "their sums by verdict and cause",
            "total": "number of groups, with those that are not listed",
            "groups": "the groups: those that are rebalancing first, then those that lost most",
        },
        answer=_groups,
        fields={"totals": TOTALS, "verdicts": BY_VERDICT, "groups": GROUP_ROWS},
    ),
    ApiQuestion(
        name="why",
        about="Why a group rebalanced: verdict, culprit and host, cost, proof, and what would have avoided it.",
        parameters=(GROUP, CLUSTER, *REBALANCE),
        keys=OF_GROUP
        | {
            "state": "state of the group at the newest record",
            "open_rebalance_since_at": "begin of a rebalance that is not over",
            **AGE,
            "away_ms": "milliseconds between the time that was asked for and the rebalance",
            "rebalance": "the rebalance, with its duration and how it is known",
            "verdict": "what is to blame, with cause, instances, hosts, proof and loss; null if not judged",
            "episode": "sums of all rebalances of its episode by verdict",
            "advice": "the best recommended change; null if there is none",
            "measured": "what the members pushed last before its end and first after it (KIP-714); empty if none did",
            "url": "the page of the rebalance",
        },
        answer=_why,
        fields={
            "rebalance": REBALANCE_OF_WHY,
            "verdict": VERDICT_FIELDS,
            "episode": EPISODE,
            "advice": ADVICE_FIELDS,
            "measured": MEASURED,
        },
    ),
    ApiQuestion(
        name="rebalances",
        about="The rebalances of a group in a range of time, the newest first, each with its duration and loss.",
        parameters=(GROUP, CLUSTER, *RANGE, limit_of(GENERATION_ROWS)),
        keys=OF_GROUP
        | {
            "from": SEEN["from"],
            "to": SEEN["to"],
            "rebalances": "the rebalances; more than limit if several joined in the last millisecond of a page. The "
            "loss of a share group is null, because it is not observed",
            "next_to": "value of to for the next older ones; null if all are listed",
        },
        answer=_rebalances,
        fields={"rebalances": REBALANCE_ROWS},
    ),
    ApiQuestion(
        name="advice",
        about="What a group should change, what that saves, and the settings to paste.",
        parameters=(GROUP, CLUSTER),
        keys=OF_GROUP
        | {
            "from": "begin of the history that was replayed",
            "to": "its end",
            "client_libraries": "libraries that the group's members use",
            "changes": "all changes that were evaluated, the best first",
            "setting_changes": "changes that the group made, newest first, with what each saved",
        },
        answer=_advice,
        fields={"changes": ADVICE_CHANGES, "setting_changes": CHANGES_MADE},
    ),
    ApiQuestion(
        name="report",
        about="What rebalances cost in days or a week, by cause, cluster, team, group and storm, beside those before.",
        parameters=(
            Parameter(name="days", about="number of days", kind="integer", default=7, least=1, most=DAYS_MOST),
            Parameter(name="week", about=f"calendar week in UTC, instead of days: {WEEK_FORM}"),
            Parameter(name="team", about="only groups of this team of the settings; none: groups without a team"),
        ),
        keys=SEEN
        | {
            "is_observed": "whether anything is known of the range",
            "totals": "rebalances and loss of all groups; null if nothing is known",
            "verdicts": "their sums by verdict and cause",
            "week": "name of the calendar week; null for days",
            "team": "the team; null for all groups",
            "not_analyzed": "rebalances and loss without a verdict yet, which no sum by cause has",
            "clusters": "sums by cluster, with the costliest verdict and cause",
            "teams": "the same by team, null for no team; null for a report of one team, or without the setting",
            "before": "the same of as many days before; null sums if they were not recorded as a whole",
            "groups": "the groups that lost most, with main cause and recommended change",
            "storms": "the storms, at most 200",
            "has_all_storms": "whether there are no more",
        },
        answer=_report,
        fields={
            "totals": TOTALS,
            "verdicts": BY_VERDICT,
            "not_analyzed": NOT_ANALYZED,
            "clusters": BY_CLUSTER,
            "teams": BY_TEAM,
            "before": REPORT_BEFORE,
            "groups": REPORT_GROUPS,
            "storms": STORM_ROWS,
        },
    ),
    ApiQuestion(
        name="storms",
        about="Rebalance storms in a range of time: open ones first, then those that cost most.",
        parameters=(*RANGE, limit_of(STORMS_MOST), offset_of(STORMS_SKIPPED)),
        keys={
            "from": SEEN["from"],
            "to": SEEN["to"],
            "storms": "the storms",
            "is_whole": "whether none follows; if not, ask with a greater offset",
        },
        answer=_storms,
        fields={"storms": STORM_ROWS},
    ),
    DEPLOYS,
    ApiQuestion(
        name="health",
        about="Whether the tables can be trusted now: how current they are, what was not read, and what failed.",
        parameters=(),
        keys={
            "is_sound": "whether something was read and no problem with the tables was found",
            "newest_records": "time of the newest record of each cluster; null if none has a time",
            "sources": "what was read, by cluster and source",
            "problems": "the problems with the tables: kind, cluster (empty: Regroup itself) and a sentence",
            "unknown": "what is not known because an optional source is not read",
            "jobs_and_rules": "the state of Regroup's jobs and of the rules of its tables, in words",
        },
        answer=_health,
        fields={"sources": SOURCES, "problems": PROBLEMS},
    ),
    ApiQuestion(
        name="incident",
        about="All that is known of a rebalance, an episode or a storm: story, members, cost, timeline of evidence.",
        parameters=(
            Parameter(name="group", about="id of the consumer group; or give storm"),
            CLUSTER,
            *REBALANCE,
            Parameter(
                name="episode", about="describe the whole episode of the rebalance", kind="boolean", default=False
            ),
            Parameter(name="storm", about="id of a storm, or a time, for which the costliest storm is chosen"),
        ),
        keys={
            "kind": "rebalance, episode or storm",
            "cluster": "name of the cluster",
            "from": "begin",
            "to": "end, or newest record if it is not over",
            **AGE,
            "is_answered": "whether the verdict blames something",
            "sentences": "verdict, story and notices in sentences",
            "timeline": "records, log lines and marks in order of time, each with how it is known",
            "cost": "the cost, with bounds: names and values, which depend on the kind",
            "advice": "for each group, the answer to the question advice; null if it has none",
            "pages": "addresses of the pages",
            "capture": "always null: only the command attaches one",
        },
        answer=_incident,
        fields={"sentences": SENTENCES, "timeline": TIMELINE},
    ),
)

BY_NAME = {question.name: question for question in QUESTIONS}
