"""Rows of a table that only Spark reads, prepared for the rules: a frame with extra columns for facts from other rows.

Spark computes everything where the data is. The columns are those of `quality_rows.batches`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Column, Window
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from jobs.checks.quality_rows import COPIES, context_column, needed
from schemas.rules import Rule, RuleKind
from schemas.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def frame(rows: DataFrame, table: Table, rules: Sequence[Rule], others: Mapping[str, DataFrame]) -> DataFrame:
    """Return the rows of a table, with the columns that `rules` need.

    Args:
        rows: the rows of one version.
        table: the table's definition.
        rules: its rules.
        others: the tables that reference rules refer to, by name.
    """
    for rule in rules:
        if rule.kind is RuleKind.REFERENCE:
            rows = _with_reference(rows, rule, others[rule.other])
    extra = {COPIES: F.count("*").over(Window.partitionBy(*table.key))}
    extra |= {context_column(rule): made for rule in rules if (made := _derived(rule)) is not None}
    kinds = {column.name: column.type for column in table.columns}
    references = [context_column(rule) for rule in rules if rule.kind is RuleKind.REFERENCE]
    asked = [_plain(kinds[column], column) for column in needed(table, rules)]
    return rows.select(*asked, *map(_quoted, references), *(made.alias(alias) for alias, made in extra.items()))


def _with_reference(rows: DataFrame, rule: Rule, other: DataFrame) -> DataFrame:
    """Add a column that is 0 for a row whose reference the other table lacks, and 1 for any other row."""
    key = [F.col(theirs).alias(f"other {theirs}") for theirs in rule.other_columns]
    there = other.select(*key, F.lit(1).alias("is there")).distinct()
    both = zip(rule.columns, rule.other_columns, strict=True)
    same = [F.col(mine) == F.col(f"`other {theirs}`") for mine, theirs in both]
    is_named = _all([F.col(mine).isNotNull() for mine in rule.columns])
    found = F.when(is_named & F.col("`is there`").isNull(), 0).otherwise(1)
    joined = rows.join(there, _all(same), "left")
    return joined.select(*map(_quoted, rows.columns), found.alias(context_column(rule)))


def _all(conditions: Sequence[Column]) -> Column:
    found = conditions[0]
    for condition in conditions[1:]:
        found &= condition
    return found


def _derived(rule: Rule) -> Column | None:
    match rule.kind:
        case RuleKind.SPAN:
            _, begin, end = rule.columns
            return F.unix_millis(end) - F.unix_millis(begin)
        case RuleKind.COUNT:
            return F.size(rule.columns[1])
        case RuleKind.EACH_OF:
            known = [str(value) for value in rule.known]
            return F.size(F.filter(rule.columns[0], lambda each: each.isNull() | ~each.isin(known)))
        case _:
            return None


def _plain(kind: str, name: str) -> Column:
    if kind == "TIMESTAMP":
        return F.unix_millis(name).alias(name)
    return F.size(name).alias(name) if kind.startswith(("ARRAY", "MAP")) else F.col(name)


def _quoted(name: str) -> Column:
    return F.col(f"`{name}`")
