"""What the fields of an answer's inner objects hold. Fields that are columns of a table have the column's comment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from dashboards.answers.advise import CHANGE_COLUMNS, COLUMNS
from dashboards.answers.health import KINDS
from dashboards.answers.why_text import ADVISED, PLACE, VERDICT
from schemas.bronze import CLIENT_METRICS
from schemas.gold import ADVICE, DEPLOYS, SETTING_CHANGES, STORMS, VERDICTS
from schemas.silver import GENERATIONS, GROUPS
from schemas.tables import Table

TYPES = {
    "STRING": "string", "TIMESTAMP": "string", "INT": "integer", "BIGINT": "integer", "DOUBLE": "number",
    "BOOLEAN": "boolean",
}  # fmt: skip
"""Types of JSON by type of column. A time is text in ISO 8601."""
_STATES = re.compile(r"schemas\.states\.(\w+)")


class Field(NamedTuple):
    """One field of an object: what it holds, and the schema of its value. Every field may be null."""

    about: str
    schema: Mapping[str, Any]


class Fields(NamedTuple):
    """The fields of an object, or of each object in a list. `may_be_null`: whether there may be no list."""

    of: Mapping[str, Field]
    is_list: bool = True
    may_be_null: bool = False

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the object or the list; an object may be null."""
        properties = {name: {**field.schema, "description": field.about} for name, field in self.of.items()}
        found: dict[str, Any] = {"type": "object", "properties": properties, "required": list(properties)}
        if self.is_list:
            return {"type": ["array", "null"] if self.may_be_null else "array", "items": found}
        return found | {"type": ["object", "null"]}


def of_columns(table: Table, names: Iterable[str]) -> dict[str, Field]:
    """Return the fields that are columns of a table, under their names."""
    known = {column.name: column for column in table.columns}
    return {name: _field(known[name].type, known[name].comment) for name in names}


def words(kind: str, /, **named: str) -> dict[str, Field]:
    """Return fields of one type of column, each with what it holds."""
    return {name: _field(kind, about) for name, about in named.items()}


def _field(kind: str, about: str) -> Field:
    about = _STATES.sub(r"a value of `\1` in docs/states.md", about)
    if kind.startswith("ARRAY<STRING"):
        return Field(about, {"type": ["array", "null"], "items": {"type": "string"}})
    if kind.startswith("MAP<"):
        return Field(about, {"type": ["object", "null"], "additionalProperties": {"type": "string"}})
    found: dict[str, Any] = {"type": [TYPES[kind], "null"]} if kind in TYPES else {}
    return Field(about, found | ({"format": "date-time"} if kind == "TIMESTAMP" else {}))


LOSSES = words(
    "DOUBLE",
    lost="resource-seconds lost: the estimate; null if it is not observed",
    lost_min="the least that is certain",
    lost_max="the most that is possible",
    lost_low="lower end of the 90 % interval",
    lost_high="upper end of the 90 % interval",
)
BOUNDED = {name: LOSSES[name] for name in ("lost", "lost_min", "lost_max")}
TOTALS = Fields(words("BIGINT", rebalances="number of rebalances") | LOSSES, is_list=False)
BY_VERDICT = Fields(
    of_columns(VERDICTS, ("verdict", "cause"))
    | words("BIGINT", rebalances="number of rebalances", groups="number of groups", observed="how many are observed")
    | BOUNDED
)
GROUP_ROWS = Fields(
    of_columns(GROUPS, ("cluster", "group_id", "state", "group_protocol", "state_since_at", "open_rebalance_since_at"))
    | words("BIGINT", rebalances="number of rebalances in the range")
    | words("TIMESTAMP", last_rebalance_at="when the last of them began its new generation")
    | LOSSES
)
_OF_REBALANCE = (
    "incarnation", "generation_id", "group_protocol", "assignor", "outcome", "member_count", "trigger",
    "trigger_evidence", "trigger_member_id", "rebalance_ms", "rebalance_ms_min", "rebalance_ms_max", "evidence",
    "prepared_at", "joined_at", "completed_at",
)  # fmt: skip
REBALANCE_OF_WHY = Fields(
    of_columns(GENERATIONS, (*_OF_REBALANCE, "prepared_at_earliest", "prepared_at_latest"))
    | words("STRING", sentence="the rebalance in a sentence"),
    is_list=False,
)
REBALANCE_ROWS = Fields(
    of_columns(
        GENERATIONS,
        (*_OF_REBALANCE, "last_generation_id", "rebalance_mode", "resources_assigned", "resources_moved"),
    )
    | LOSSES
)
VERDICT_FIELDS = Fields(of_columns(VERDICTS, VERDICT), is_list=False)
EPISODE = Fields(
    of_columns(VERDICTS, ("verdict",)) | words("BIGINT", rebalances="number of rebalances") | {"lost": LOSSES["lost"]}
)
ADVICE_FIELDS = Fields(of_columns(ADVICE, (*ADVISED, "settings")), is_list=False)
MEASURED = Fields(of_columns(CLIENT_METRICS, (name for name in CLIENT_METRICS.names if name not in PLACE)))
STORM_ROWS = Fields(
    of_columns(STORMS, ("storm_id", "cluster", "scope", "started_at", "ended_at", "groups", "rebalances",
                        "lost_resource_seconds", "suspected_cause"))
)  # fmt: skip
PROBLEMS = Fields(
    words(
        "STRING",
        kind="; ".join(f"`{kind}`: {about}" for kind, about in KINDS.items()),
        cluster="name of the cluster; empty for Regroup itself",
        sentence="what is wrong, in a sentence",
    )
)
SOURCES = Fields(
    words("STRING", cluster="name of the cluster", source="topic, log file, or poll of the brokers")
    | words(
        "BIGINT",
        partitions="number of partitions",
        records="records or lines read",
        skipped="of these, those that say nothing about groups",
        quarantined="of these, those that could not be read",
        gaps="spans that were not read",
    )
    | words("TIMESTAMP", first_at="time of the first record", last_at="time of the newest record")
)
ADVICE_CHANGES = Fields(of_columns(ADVICE, (*COLUMNS, "settings")))
CHANGES_MADE = Fields(of_columns(SETTING_CHANGES, (*CHANGE_COLUMNS, "changed_at", "rollout_at")))

DEPLOY = Fields(
    of_columns(DEPLOYS, DEPLOYS.names)
    | words("DOUBLE", median_before="median loss of the group's last deploys before it, in resource-seconds")
    | words("BIGINT", deploys_before="number of these deploys")
    | words("TIMESTAMP", before_at="begin of the deploy before it; null if none is known"),
    is_list=False,
)

_OBJECT = {"type": ["object", "null"]}
_SPLIT = {
    **words("BIGINT", rebalances="number of rebalances", observed="how many have an observed verdict"),
    **BOUNDED,
    **words("STRING", main_verdict="the costliest verdict", main_cause="the costliest cause"),
    "before": Field("rebalances and loss of as many days before; null if they were not recorded as a whole", _OBJECT),
    "not_analyzed": Field("rebalances and loss without a verdict yet", _OBJECT),
}
BY_CLUSTER = Fields(of_columns(VERDICTS, ("cluster",)) | _SPLIT)
BY_TEAM = Fields(words("STRING", team="name of the team; null for no team") | _SPLIT, may_be_null=True)
NOT_ANALYZED = Fields({name: TOTALS.of[name] for name in ("rebalances", "lost")}, is_list=False)
REPORT_BEFORE = Fields(
    {"from": Field("begin of the days before", {"type": "string", "format": "date-time"})}
    | {
        "totals": Field("as totals; null if the days were not recorded as a whole", _OBJECT),
        "verdicts": Field("as verdicts; null as above", {"type": ["array", "null"]}),
    },
    is_list=False,
)
REPORT_GROUPS = Fields(
    of_columns(VERDICTS, ("cluster", "group_id"))
    | dict(TOTALS.of)
    | {
        "verdicts": Field("sums of the group by verdict and cause", {"type": "array"}),
        "advice": Field("the recommended change with its saving; null if there is none", _OBJECT),
    }
)
TIMELINE = Fields(
    words("TIMESTAMP", **{"from": "the earliest time at which it happened", "to": "the latest; equal if exactly known"})
    | words(
        "STRING",
        text="what happened, in a sentence, or the log line",
        evidence="observed, bounded, inferred, or announced by people",
        place="where the record or log line is; empty if it is derived from several",
    )
)
SENTENCES = Fields(
    words("STRING", verdict="the verdict")
    | words("ARRAY<STRING>", story="what happened, one sentence each", notices="what a reader must know of the data"),
    is_list=False,
)
