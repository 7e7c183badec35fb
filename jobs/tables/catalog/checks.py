"""CHECK constraints of tables with names: Delta refuses a row whose estimate lies outside its own hard bounds.

Other rules (`schemas.rules`) are checked by `quality`, which reports rows and stops nothing. A table has at most one
constraint, because each takes a commit.
"""

from __future__ import annotations

from collections.abc import Collection

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from dashboards.lake.sql_names import quoted
from jobs.config.errors import one_line
from jobs.config.terminal import say
from jobs.tables.paths import TableName
from jobs.tables.transactions import retry_commit
from schemas.gold import ADVICE
from schemas.rules import OUT_OF_BOUNDS, Rule, RuleKind, rules_of
from schemas.tables import Table
from schemas.written import count

MODELLED = ("_low", "_high")
"""Endings of the limits of intervals, which are calculated and may be wrong by a rounding error."""

_without: set[TableName] = set()
"""Tables to which this process could not add the constraint. Each attempt reads all rows."""


def condition(table: Table) -> str | None:
    """Return the condition that every row of the table keeps; None if it has no estimates with bounds."""
    return " AND ".join(_kept(rule) for rule in _certain_rules(table)) or None


def _certain_rules(table: Table) -> list[Rule]:
    return [rule for rule in rules_of(table.name) if _is_certain(table, rule)]


def _is_certain(table: Table, rule: Rule) -> bool:
    is_measured = table != ADVICE and not any(column.endswith(MODELLED) for column in rule.columns)
    return rule.kind is RuleKind.ORDER and rule.sentence == OUT_OF_BOUNDS and is_measured


def _kept(rule: Rule) -> str:
    first, second = map(quoted, rule.columns)
    # Delta refuses a row for which the condition is NULL.
    return f"coalesce({first} <= {second}, true)"


def add_check(name: TableName, table: Table, properties: Collection[str]) -> None:
    """Add the constraint to the table unless its `properties` show it; a new table has none. Delta reads all rows.

    If a row breaks the constraint, or Spark refuses it for another reason, the table gets no constraint. That is
    reported in one line, and the next process tries again.
    """
    constraint = f"{table.name}_bounds"
    if (kept := condition(table)) is None or f"delta.constraints.{constraint}" in properties or name in _without:
        return
    if properties and (broken := _broken(name, table)):
        _leave_out(name, table, f", because {' and '.join(broken)}.")
        return
    statement = f"ALTER TABLE {name} ADD CONSTRAINT {constraint} CHECK ({kept})"
    try:
        retry_commit(name, lambda: SparkSession.active().sql(statement).collect(), alone=True)
    except PySparkException as error:
        # Another process may have added it at the same time.
        if error.getCondition() != "DELTA_CONSTRAINT_ALREADY_EXISTS":
            _leave_out(name, table, f": {one_line(error)}")


def _leave_out(name: TableName, table: Table, why: str) -> None:
    _without.add(name)
    say(f"The constraint {table.name}_bounds was not added to the table {table.name}{why}")


def _broken(name: TableName, table: Table) -> list[str]:
    """Return a text for each rule that rows break. Asked first, because Delta's error does not name the rule."""
    rules = _certain_rules(table)
    counts = [F.count_if(F.expr(f"NOT {_kept(rule)}")) for rule in rules]
    found = zip(rules, SparkSession.active().table(name).agg(*counts).collect()[0], strict=True)
    return [f"{count(n, 'row')} {'breaks' if n == 1 else 'break'} the rule {rule.name}" for rule, n in found if n]
