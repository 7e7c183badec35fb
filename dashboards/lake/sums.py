"""Tables that the lake computes: sums of another table's rows per group, within the range of a query.

A query names such a table like any other, and has the range as its parameters `start` and `end`. A SQL warehouse
computes the sums from the rows (`sums_sql`). A folder's files never change, so `dashboards.lake.file_sums` keeps the
sums of each file (`parts_sql`), and adds them up for each query (`added_sql`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from schemas.folded_rows import counted
from schemas.loss_interval import OF_SUM, ONE_STOP

HASHED = "hash(cluster, group_id)"
"""A group as 64 bits, because 100,000 ids of a kilobyte would fill the memory of the pages.

Two of 100,000 groups have the same hash with a probability of 3e-10.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Sums of the rows of `table` whose time `at` is within the range, by group (`hashed`) and `keys`.

    `measures` maps columns to aggregates of a part of the rows, from which `result`, the columns of the sums, is
    computed. With an `item`, the measures must be sums: those of one item are added up before `result` is computed.
    """

    table: str
    at: str
    keys: tuple[str, ...] = ()
    item: str = ""
    condition: str = "true"
    measures: Mapping[str, str] = field(default_factory=dict)
    result: str

    def in_range(self, start: str, end: str) -> str:
        """Return the condition for rows from `start` until before `end`, both SQL."""
        return f"{self.condition} AND {self.at} >= {start} AND {self.at} < {end}"

    def sums_sql(self, rows: str, start: str, end: str) -> str:
        """Return the query of the sums over rows of the table."""
        names = ", ".join(("hashed", *self.keys))
        item = f", hash({self.item})" if self.item else ""
        return f"""SELECT {names}, {self.result}
            FROM (SELECT {", ".join((f"{HASHED} AS hashed", *self.keys))}, {self._measured} FROM {rows}
                  WHERE {self.in_range(start, end)} GROUP BY {names}{item}) AS items
            GROUP BY {names}"""  # noqa: S608 - our own names

    def parts_sql(self, rows: str, condition: str, more: Mapping[str, str] | None = None) -> str:
        """Return the query of the parts of sums: `owner` (the group and keys), `item` and measures.

        `more` maps further columns to aggregates. Owners and items are hashes: two of a million have the same with a
        probability of 3e-8.
        """
        item = f"hash(cluster, group_id, {self.item})" if self.item else "0::UBIGINT"
        named = "".join(f"{text} AS {name}, " for name, text in (more or {}).items())
        return f"""SELECT {named}{self._owner} AS owner, {item} AS item, {self._measured}
            FROM {rows} WHERE {condition} GROUP BY owner, item"""  # noqa: S608 - our own names

    def owners_sql(self, rows: str) -> str:
        """Return the query of the group and keys of each owner."""
        names = ", ".join((f"{self._owner} AS owner", f"{HASHED} AS hashed", *self.keys))
        return f"SELECT DISTINCT {names} FROM {rows}"  # noqa: S608 - our own names

    def added_sql(self, kept: str, edges: str, owners: str, shared: str) -> str:
        """Return the query of the sums from parts of whole files (`kept`) and other parts (`edges`).

        Items that fulfil the condition `shared` have parts in several of these. Sums without an item need no condition.
        """
        measures = ", ".join(self.measures)
        found = f"SELECT owner, {measures} FROM {kept} UNION ALL SELECT owner, {measures} FROM {edges}"  # noqa: S608 - our own names
        if self.item:
            found = f"""SELECT owner, {self._added} FROM (
                SELECT owner, item, {measures} FROM {kept} WHERE {shared}
                UNION ALL SELECT owner, item, {measures} FROM {edges}
            ) GROUP BY owner, item
            UNION ALL SELECT owner, {measures} FROM {kept} WHERE NOT {shared}"""  # noqa: S608 - our own names
        return f"""SELECT {", ".join(("hashed", *self.keys))}, sums.* EXCLUDE (owner)
            FROM (SELECT owner, {self.result} FROM ({found}) GROUP BY owner) AS sums
            JOIN {owners} USING (owner)"""  # noqa: S608 - our own names

    @property
    def _owner(self) -> str:
        return f"hash({', '.join(('cluster', 'group_id', *self.keys))})"

    @property
    def _measured(self) -> str:
        return ", ".join(f"{text} AS {name}" for name, text in self.measures.items())

    @property
    def _added(self) -> str:
        return ", ".join(f"sum({name}) AS {name}" for name in self.measures)


SUMS = {
    "group_rebalances": Sums(
        table="generations",
        at="joined_at",
        measures={"made": counted(), "newest_at": "max(joined_at)"},
        result="CAST(sum(made) AS BIGINT) AS rebalances, max(newest_at) AS last_rebalance_at",
    ),
    "group_losses": Sums(
        table="stalls",
        at="stopped_at_latest",
        item=ONE_STOP,
        condition="cause <> 'no_member' AND resumed_at_earliest IS NOT NULL",
        measures={
            "least_ms": "sum(stopped_ms_min)::DOUBLE",
            "estimate_ms": "sum(stopped_ms)::DOUBLE",
            "most_ms": "sum(stopped_ms_max)::DOUBLE",
        },
        result=OF_SUM,
    ),
    "verdict_sums": Sums(
        table="verdicts",
        at="joined_at",
        keys=("verdict", "cause"),
        measures={
            "judged": counted(),
            "seen": counted("evidence = 'observed'"),
            "least": "sum(lost_resource_seconds_min)",
            "estimate": "sum(lost_resource_seconds)",
            "most": "sum(lost_resource_seconds_max)",
        },
        result="""CAST(sum(judged) AS BIGINT) AS rebalances, CAST(sum(seen) AS BIGINT) AS observed,
            sum(least) AS lost_min, sum(estimate) AS lost, sum(most) AS lost_max""",
    ),
}
"""The rebalances of each group, its loss (`schemas.loss_interval`), and its rebalances by verdict and cause."""


def table_of(name: str) -> str:
    """Return the stored table from which this one is computed, or the name itself."""
    return SUMS[name].table if name in SUMS else name
