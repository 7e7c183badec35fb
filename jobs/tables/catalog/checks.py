"""CHECK constraints of tables with names: Delta refuses a row whose estimate lies outside its own hard bounds.

Other rules (`schemas.rules`) are checked by `quality`, which reports rows and stops nothing. A table has at most one
constraint, because each takes a commit.
"""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from dashboards.lake.sql_names import quoted
from jobs.tables.location import TableName
from jobs.tables.transactions import retry_commit
from schemas.gold import ADVICE
from schemas.rules import OUT_OF_BOUNDS, Rule, RuleKind, rules_of
from schemas.tables import Table

MODELLED = ("_low", "_high")
"""Endings of the limits of intervals, which are calculated and may be wrong by a rounding error."""


def condition(table: Table) -> str | None:
    """Return the condition that every row of the table keeps; None if it has no estimates with bounds."""
    return " AND ".join(_kept(rule) for rule in rules_of(table.name) if _is_certain(table, rule)) or None


def _is_certain(table: Table, rule: Rule) -> bool:
    is_measured = table != ADVICE and not any(column.endswith(MODELLED) for column in rule.columns)
    return rule.kind is RuleKind.ORDER and rule.sentence == OUT_OF_BOUNDS and is_measured


def _kept(rule: Rule) -> str:
    first, second = map(quoted, rule.columns)
    # Delta refuses a row for which the condition is NULL.
    return f"coalesce({first} <= {second}, true)"


def add_check(name: TableName, table: Table) -> None:
    """Add the constraint to a table that was just created."""
    if (kept := condition(table)) is None:
        return
    statement = f"ALTER TABLE {name} ADD CONSTRAINT {table.name}_bounds CHECK ({kept})"
    try:
        retry_commit(name, lambda: SparkSession.active().sql(statement).collect(), alone=True)
    except AnalysisException as error:
        # Another process created the table at the same time.
        if error.getCondition() != "DELTA_CONSTRAINT_ALREADY_EXISTS":
            raise
