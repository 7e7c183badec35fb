"""Rules that all rows of silver and gold keep, in a form that a program can check.

Most rules are derived from the tables' definitions: keys, vocabularies, numbers that count or measure something. The
others are written here, each with a sentence that describes the error. NULL breaks only rules about presence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations

from schemas import states
from schemas.gold import (
    ADVICE,
    ALERTS,
    CLUSTER_PATTERNS,
    DEPLOYS,
    DIAGNOSES,
    GOLD,
    GROUP_HEALTH,
    MARKS,
    PATTERNS,
    SETTING_CHANGES,
    STORMS,
    VERDICTS,
)
from schemas.silver import (
    GENERATION_MEMBERS,
    GENERATIONS,
    GROUP_EVENTS,
    GROUPS,
    REASSIGNMENT_SAMPLES,
    REASSIGNMENT_TABLES,
    REASSIGNMENTS,
    REBALANCES,
    SILVER,
    STALLS,
)
from schemas.states import AdviceStatus, GenerationOutcome, ReassignmentState, RuleSeverity
from schemas.tables import Table

CHECKED = (*SILVER, *REASSIGNMENT_TABLES, *GOLD)


class RuleKind(StrEnum):
    """The kind of a rule, which defines the meaning of the rule's `columns`, in this order.

    - `UNIQUE`: columns that together differ in every row.
    - `PRESENT`, `ABSENT`: one column that is not NULL, or is NULL.
    - `ONE_OF`, `EACH_OF`: a column, or a column of lists, with values from `known` only.
    - `RANGE`: a number between `low` and `high`.
    - `ORDER`: two columns, the first at most the second.
    - `SPAN`: a length in milliseconds, its start and its end.
    - `COUNT`: a number and a list with that many elements.
    - `REFERENCE`: columns whose values together occur in a row of the table `other`.
    """

    UNIQUE = "unique"
    PRESENT = "present"
    ABSENT = "absent"
    ONE_OF = "one_of"
    EACH_OF = "each_of"
    RANGE = "range"
    ORDER = "order"
    SPAN = "span"
    COUNT = "count"
    REFERENCE = "reference"


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """The rows that a rule applies to: `column` has a value in `among` or, if `among` is empty, is not NULL."""

    column: str
    among: tuple[str | bool, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule for each row of `table`. `name` is unique in the table. `sentence` describes the error if it is broken."""

    table: str
    name: str
    kind: RuleKind
    columns: tuple[str, ...]
    sentence: str
    severity: RuleSeverity = RuleSeverity.ERROR
    known: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    when: When | None = None
    other: str = ""
    other_columns: tuple[str, ...] = ()


VOCABULARY = re.compile(r"schemas\.states\.(\w+)")
EVIDENCE = ("evidence", "trigger_evidence")
COUNTED = ("INT", "BIGINT", "DOUBLE")
LEAST: dict[str, float | None] = {
    "index": -1,  # -1 is a connector itself
    "previous_generation_id": -1,  # -1 is a new member
    "leader": -1,  # Kafka's value for "no leader"
    "rank": 1,
    "saving": None,
    "saving_high": None,
    "saving_low": None,
    "saving_measured": None,
    "saving_ratio": None,
    "last_committed_offset": None,  # clients may commit any number
    "first_committed_offset": None,
}
"""Lower limits other than 0, by column; None for no limit."""


def _derived(table: Table) -> Iterator[Rule]:
    """Yield the rules that follow from the definition of a table."""
    key = ", ".join(table.key)
    yield Rule(
        table=table.name,
        name="key is unique",
        kind=RuleKind.UNIQUE,
        columns=table.key,
        sentence=f"Two rows have the same {key}: their content is counted twice.",
    )
    for column in table.columns:
        if column.name in table.key:
            yield _present(table, column.name, f"A row has no {column.name}, so its subject is unknown.")
        if column.type == "STRING" and (values := _vocabulary(column.name, column.comment)):
            yield Rule(
                table=table.name,
                name=f"{column.name} is known",
                kind=RuleKind.ONE_OF,
                columns=(column.name,),
                known=values,
                sentence=f"{column.name} has a value that is unknown to pages, alerts and queries.",
            )
        low = LEAST.get(column.name, 0)
        if column.type in COUNTED and low is not None:
            yield _range(table, column.name, low, None, f"{column.name} is less than {low:g}, which is impossible.")


def _vocabulary(name: str, comment: str) -> tuple[str, ...]:
    found = VOCABULARY.search(comment)
    if found is None and name not in EVIDENCE:
        return ()
    kind: type[StrEnum] = getattr(states, found[1] if found else "Evidence")
    return tuple(kind)


def _present(table: Table, column: str, sentence: str, when: When | None = None) -> Rule:
    return _presence(table, column, sentence, when, RuleKind.PRESENT, "is there")


def _absent(table: Table, column: str, sentence: str, when: When) -> Rule:
    return _presence(table, column, sentence, when, RuleKind.ABSENT, "is absent")


def _presence(table: Table, column: str, sentence: str, when: When | None, kind: RuleKind, verb: str) -> Rule:
    name = f"{column} {verb}{_where(when)}"
    return Rule(table=table.name, name=name, kind=kind, columns=(column,), sentence=sentence, when=when)


def _where(when: When | None) -> str:
    if when is None:
        return ""
    allowed = ", ".join(str(value).lower() for value in when.among)
    return f" where {when.column} is {allowed or 'there'}"


def _range(table: Table, column: str, low: float | None, high: float | None, sentence: str) -> Rule:
    limits = f"{column} >= {low:g}" if high is None else f"{low:g} <= {column} <= {high:g}"
    return Rule(
        table=table.name, name=limits, kind=RuleKind.RANGE, columns=(column,), low=low, high=high, sentence=sentence
    )


def _order(table: Table, *chain: str, sentence: str) -> Iterator[Rule]:
    """Yield a rule for each pair of columns in the chain: the first is at most the second.

    All pairs are compared, not only neighbours, because a column in between may be NULL.
    """
    for pair in combinations(chain, 2):
        yield Rule(table=table.name, name=" <= ".join(pair), kind=RuleKind.ORDER, columns=pair, sentence=sentence)


def _span(table: Table, length: str, begin: str, end: str) -> Rule:
    sentence = f"{length} is not the time from {begin} to {end}: pages show two different lengths."
    columns = (length, begin, end)
    return Rule(
        table=table.name, name=f"{length} = {end} - {begin}", kind=RuleKind.SPAN, columns=columns, sentence=sentence
    )


def _count(table: Table, number: str, elements: str) -> Rule:
    sentence = f"{number} is not the number of elements in {elements}."
    columns = (number, elements)
    return Rule(
        table=table.name, name=f"{number} counts {elements}", kind=RuleKind.COUNT, columns=columns, sentence=sentence
    )


def _reference(table: Table, other: Table, sentence: str, *columns: str, named: tuple[str, ...] = ()) -> Rule:
    """Return a rule that `columns` refer to a row of `other`.

    `named` holds the names of the other table's columns if they differ. A missing row in `groups` is only a warning,
    because it changes no figure.
    """
    return Rule(
        table=table.name,
        name=f"{columns[-1]} is in {other.name}",
        kind=RuleKind.REFERENCE,
        columns=columns,
        other=other.name,
        other_columns=named or columns,
        sentence=sentence,
        severity=RuleSeverity.WARNING if other is GROUPS else RuleSeverity.ERROR,
    )


def _each_of(table: Table, column: str, values: tuple[str, ...]) -> Rule:
    return Rule(
        table=table.name,
        name=f"each of {column} is known",
        kind=RuleKind.EACH_OF,
        columns=(column,),
        known=values,
        sentence=f"{column} has an element that is unknown to pages, alerts and queries.",
    )


GROUP = ("cluster", "group_id")
INCARNATION = (*GROUP, "incarnation")
DONE = When(column="outcome", among=(GenerationOutcome.COMPLETED, GenerationOutcome.EMPTY))
NOT_DONE = When(column="outcome", among=(GenerationOutcome.OVERTAKEN, GenerationOutcome.OPEN))
ENDED = When(column="state", among=(ReassignmentState.COMPLETED, ReassignmentState.CANCELLED))
UNDER_WAY = When(column="state", among=(ReassignmentState.RUNNING, ReassignmentState.STALLED))
LOST = (
    "lost_resource_seconds_min",
    "lost_resource_seconds_low",
    "lost_resource_seconds",
    "lost_resource_seconds_high",
    "lost_resource_seconds_max",
)
BOUNDS = (LOST[0], LOST[2], LOST[-1])
"""The columns of a table that has no 90 % interval."""

OUT_OF_BOUNDS = "An estimate lies outside its own bounds, so the estimate or a bound is wrong."
TIMES_CROSSED = "A rebalance, or one of its phases, ends before it begins: its length and its cost are wrong."


def _written() -> Iterator[Rule]:
    """Yield the rules that do not follow from the tables' definitions."""
    yield from _of_generations()
    yield from _of_members()
    yield from _of_stalls()
    yield from _of_groups()
    yield from _of_reassignments()
    yield from _of_gold()


def _of_generations() -> Iterator[Rule]:
    table = GENERATIONS
    yield from _order(table, "prepared_at_earliest", "prepared_at", "prepared_at_latest", sentence=OUT_OF_BOUNDS)
    yield from _order(table, "prepared_at", "joined_at", "completed_at", sentence=TIMES_CROSSED)
    yield from _order(table, "joined_at", "synced_at", sentence=TIMES_CROSSED)
    yield from _order(table, "rebalance_ms_min", "rebalance_ms", "rebalance_ms_max", sentence=OUT_OF_BOUNDS)
    yield from _order(
        table, "static_member_count", "member_count", sentence="There are more static members than members."
    )
    yield from _order(
        table, "resources_moved", "resources_assigned", sentence="More resources moved than were assigned."
    )
    yield _span(table, "join_ms", "prepared_at", "joined_at")
    yield _span(table, "sync_ms", "joined_at", "synced_at")
    yield _span(table, "rebalance_ms", "prepared_at", "completed_at")
    for columns in (("completed_at", "last_completed_at"), ("generation_id", "last_generation_id")):
        yield from _order(table, *columns, sentence="A row of a loop ends before its first generation.")
    for column in ("last_generation_id", "last_completed_at", "unstable_ms"):
        yield _present(table, column, f"A row of a loop has no {column}.", When(column="folded_count"))
    for column in ("joined_at", "outcome", "group_type", "group_protocol", "trigger", "evidence", "member_count"):
        yield _present(table, column, f"A generation has no {column}, although every generation has one.")
    for column in ("completed_at", "rebalance_ms_min", "rebalance_ms_max"):
        yield _present(table, column, f"A completed rebalance has no {column}: sums leave it out.", DONE)
    yield _absent(table, "completed_at", "A rebalance that never completed has an end.", NOT_DONE)
    yield _reference(table, GROUPS, "A generation's group is not in groups, so no page links to it.", *GROUP)


def _of_members() -> Iterator[Rule]:
    table = GENERATION_MEMBERS
    yield from _order(table, "valid_from_at", "valid_to_at", sentence="A member left a generation before entering it.")
    yield from _order(table, "rejoined_at_earliest", "rejoined_at_latest", sentence=OUT_OF_BOUNDS)
    yield _present(table, "valid_from_at", "A member of a generation has no start time, so queries by time miss it.")
    yield _reference(table, GENERATIONS, "A member belongs to a missing generation.", *INCARNATION, "generation_id")


def _of_stalls() -> Iterator[Rule]:
    """Yield the rules of `stalls`.

    Compaction may delete the generation that a stop refers to, and records between its commits. So no rule requires
    that generation, or an order of the commits.
    """
    table = STALLS
    yield from _order(table, "stopped_at_earliest", "stopped_at_latest", sentence=OUT_OF_BOUNDS)
    yield from _order(table, "resumed_at_earliest", "resumed_at_latest", sentence=OUT_OF_BOUNDS)
    yield from _order(
        table, "stopped_at_earliest", "resumed_at_latest", sentence="A resource had an owner again before it had none."
    )
    yield from _order(table, "stopped_ms_min", "stopped_ms", "stopped_ms_max", sentence=OUT_OF_BOUNDS)
    for column in ("stopped_at_earliest", "stopped_at_latest", "cause", "evidence", "generation_id"):
        yield _present(table, column, f"A stop has no {column}, although every stop has one.")
    resumed = When(column="resumed_at_latest")
    for column in ("stopped_ms_min", "stopped_ms", "stopped_ms_max", "resumed_at_earliest", "resumed_generation_id"):
        yield _present(table, column, f"A stop that ended has no {column}: sums leave it out.", resumed)


def _of_groups() -> Iterator[Rule]:
    yield _present(GROUP_EVENTS, "evidence", "An event has no evidence.")
    yield _reference(GROUP_EVENTS, GROUPS, "An event's group is not in groups, so no page links to it.", *GROUP)
    for column in ("state", "first_seen_at", "is_deleted", "evidence"):
        yield _present(GROUPS, column, f"A group has no {column}, although every group has one.")
    yield from _order(GROUPS, "first_seen_at", "last_record_at", sentence="A group's last record is before its first.")
    table = REBALANCES
    yield from _order(table, "started_at_earliest", "started_at_latest", "ended_at", sentence=TIMES_CROSSED)
    yield from _order(
        table, "first_generation_id", "last_generation_id", sentence="An episode's generations are in the wrong order."
    )
    yield from _order(table, *LOST, sentence=OUT_OF_BOUNDS)
    yield _each_of(table, "triggers", tuple(states.Trigger))
    for column in ("first_generation_id", "last_generation_id"):
        yield _reference(
            table, GENERATIONS, "An episode refers to a missing generation.", *INCARNATION, column,
            named=(*INCARNATION, "generation_id"),
        )  # fmt: skip


def _of_reassignments() -> Iterator[Rule]:
    table = REASSIGNMENTS
    ends_first = "A reassignment ends before it begins."
    yield from _order(table, "started_at_earliest", "started_at", sentence=OUT_OF_BOUNDS)
    yield from _order(table, "started_at", "completed_at", sentence=ends_first)
    yield from _order(table, "completed_at_earliest", "completed_at", sentence=OUT_OF_BOUNDS)
    yield _each_of(table, "sources", ("poll", "broker_log", "controller_log"))
    yield _present(table, "completed_at", "A reassignment that ended has no end time.", ENDED)
    yield _absent(table, "completed_at", "A reassignment in progress has an end time.", UNDER_WAY)
    stalled = When(column="state", among=(ReassignmentState.STALLED,))
    yield _present(table, "stalled_since_at", "A stalled reassignment has no time since which it is stalled.", stalled)
    for each in REASSIGNMENT_TABLES:
        yield from _order(each, "bytes_done", "bytes_total", sentence="More bytes arrived than the total to copy.")
        yield _range(each, "progress", 0, 1, "Progress is not between 0 and 1.")
    yield _reference(
        REASSIGNMENT_SAMPLES, table, "A sample's partition has no reassignment.", "cluster", "topic", "partition"
    )


def _of_gold() -> Iterator[Rule]:
    health = GROUP_HEALTH
    yield from _order(health, *LOST, sentence=OUT_OF_BOUNDS)
    yield from _order(health, "rebalance_ms_p50", "rebalance_ms_p95", "rebalance_ms_max", sentence=OUT_OF_BOUNDS)
    yield _range(health, "availability", 0, 1, "Availability is not between 0 and 1.")
    yield _range(health, "unstable_ms", 0, 3_600_000, "A group was unstable for more than an hour within one hour.")
    predicted = ("lost_predicted_low", "lost_predicted", "lost_predicted_high")
    yield from _order(ADVICE, *predicted, sentence=OUT_OF_BOUNDS)
    yield from _order(ADVICE, "saving_low", "saving", "saving_high", sentence=OUT_OF_BOUNDS)
    yield from _order(ADVICE, "window_start_at", "window_end_at", sentence="A window ends before it begins.")
    for column in ("is_recommended", "rank", "status"):
        yield _present(ADVICE, column, f"An advice has no {column}, so it cannot be ranked.")
    changes = SETTING_CHANGES
    yield from _order(changes, "rollout_at", "changed_at", "as_of", sentence="A rollout ends before it begins.")
    for saved in ("saving_measured", "saving_predicted"):
        yield from _order(changes, f"{saved}_low", saved, f"{saved}_high", sentence=OUT_OF_BOUNDS)
    judged = When(column="status", among=(AdviceStatus.VERIFIED, AdviceStatus.REFUTED))
    yield _present(changes, "saving_measured", "A change was judged without a measured saving.", judged)
    yield from _order(DIAGNOSES, "window_start_at", "as_of", sentence="A window ends before it begins.")
    yield from _order(DIAGNOSES, "first_at", "last_at", sentence="The last rebalance of a cause is before its first.")
    yield _range(DIAGNOSES, "share", 0, 1, "A cause's share is not between 0 and 1.")
    yield from _order(VERDICTS, *BOUNDS, sentence=OUT_OF_BOUNDS)
    yield from _of_deploys()
    yield from _order(PATTERNS, "started_at", "last_at", "as_of", sentence="A pattern ends before it begins.")
    yield from _order(PATTERNS, "started_at", "ended_at", sentence="A pattern is over before it begins.")
    for table in (GROUP_HEALTH, ADVICE, SETTING_CHANGES, DIAGNOSES, VERDICTS, DEPLOYS, PATTERNS):
        yield _reference(table, GROUPS, f"A row of {table.name} is about a group that is not in groups.", *GROUP)
    yield from _of_storms()
    patterns = CLUSTER_PATTERNS
    yield from _order(patterns, "started_at", "last_at", sentence="A pattern of a cluster ends before it begins.")
    yield from _order(patterns, "started_at", "ended_at", sentence="A pattern of a cluster is over before it begins.")
    yield _count(patterns, "groups", "group_ids")
    for column in ("severity", "raised_at"):
        yield _present(ALERTS, column, f"An alert has no {column}, so receivers cannot sort it.")
    yield from _order(ALERTS, "raised_at", "last_sent_at", sentence="An alert was sent before it was raised.")
    yield _present(MARKS, "text", "A mark has no text.")


def _of_deploys() -> Iterator[Rule]:
    table = DEPLOYS
    yield from _order(table, *LOST, sentence=OUT_OF_BOUNDS)
    yield from _order(table, "started_at", "ended_at", "stable_at", sentence="A deploy ends before it begins.")
    yield _span(table, "stable_ms", "started_at", "stable_at")
    yield from _order(table, "window_start_at", "window_end_at", sentence="A window ends before it begins.")
    yield _present(table, "text", "An announced deploy has no text.", When(column="evidence", among=("observed",)))
    for column in ("slowest", "slowest_host"):
        waited = When(column="slowest_waited_ms")
        yield _present(table, column, f"A wait for the slowest member has no {column}.", waited)


def _of_storms() -> Iterator[Rule]:
    table = STORMS
    yield from _order(table, "started_at", "detected_at", sentence="A storm was detected before it began.")
    yield from _order(table, "started_at", "ended_at", sentence="A storm ends before it begins.")
    yield from _order(table, *LOST, sentence=OUT_OF_BOUNDS)
    yield from _order(
        table, "unexplained_rebalances", "rebalances", sentence="More rebalances are unexplained than there were."
    )
    yield _count(table, "groups", "group_ids")
    yield _range(table, "score", 0, 1, "A cause's share is not between 0 and 1.")
    yield _present(table, "is_open", "A storm is neither open nor closed.")
    yield _present(table, "ended_at", "A closed storm has no end time.", When(column="is_open", among=(False,)))
    yield _absent(table, "ended_at", "An open storm has an end time.", When(column="is_open", among=(True,)))


def _all() -> Iterator[Rule]:
    written = {(rule.table, rule.name): rule for rule in _written()}
    bounded = {(rule.table, rule.columns) for rule in written.values() if rule.kind is RuleKind.RANGE}
    for table in CHECKED:
        for rule in _derived(table):
            is_narrower = rule.kind is RuleKind.RANGE and (rule.table, rule.columns) in bounded
            if (rule.table, rule.name) not in written and not is_narrower:
                yield rule
    yield from written.values()


RULES = tuple(_all())
"""Every rule of every table."""


def rules_of(table: str) -> tuple[Rule, ...]:
    """Return the rules of the table with this name."""
    return tuple(rule for rule in RULES if rule.table == table)
