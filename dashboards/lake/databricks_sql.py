"""The pages' SQL for Databricks. It is written for DuckDB; sqlglot translates each text once.

Values remain named parameters (`:p_name`, so that no name is a keyword). Lists are passed as JSON, which every
warehouse can parse.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple, TypeGuard

import sqlglot
from sqlglot import exp

from dashboards.lake.lake import TABLES, Parameter
from dashboards.lake.row_filter import filtered_sql, variables
from dashboards.lake.sql_names import PARAMETER, quoted, source
from dashboards.lake.sums import SUMS, table_of

KEPT = 512
MILLIS = exp.UnixToTime.MILLIS
COLUMNS = {table.name: table.names for table in TABLES}


def statement(
    sql: str,
    tables: Mapping[str, int],
    location: str,
    parameters: Mapping[str, Parameter],
    prefixes: Sequence[str] | None,
) -> str:
    """Return the text of `sql` over these versions of the tables in `location`. Some of the tables may be `SUMS`.

    With `prefixes`, the rows are limited by `dashboards.lake.row_filter`.
    """
    lists = frozenset(name for name, value in parameters.items() if _is_list(value))
    stored = {table_of(name): version for name, version in tables.items()}
    named = [
        f"{quoted(name)} AS ({_shown(f'{source(location, name)} VERSION AS OF {version:d}', name, prefixes)})"
        for name, version in stored.items()
    ]
    sums = [(name, SUMS[name]) for name in tables if name in SUMS]
    named += [
        f"{quoted(name)} AS ({translated(each.sums_sql(each.table, '$start', '$end')).rest})" for name, each in sums
    ]
    query = translated(sql, lists)
    return f"WITH {', '.join([*named, *query.named])} {query.rest}"


def bound(text: str, parameters: Mapping[str, Parameter], prefixes: Sequence[str] | None) -> dict[str, Any]:
    """Return the values for exactly the parameters in the text of a `statement`."""
    of_reader = variables(prefixes or ())
    asked = set(PARAMETER.findall(text))
    return {
        name: json.dumps(list(value)) if _is_list(value) else value
        for name, value in ((f"p_{name}", value) for name, value in (*parameters.items(), *of_reader.items()))
        if name in asked
    }


class TranslatedQuery(NamedTuple):
    """A query: its CTEs (`name AS (...)`), and the text after them."""

    named: tuple[str, ...]
    rest: str


@lru_cache(KEPT)
def translated(sql: str, lists: frozenset[str] = frozenset()) -> TranslatedQuery:
    """Return the Databricks SQL. Raises `sqlglot.errors.SqlglotError` if there is no translation."""
    tree = sqlglot.parse_one(sql, read="duckdb").transform(_reworded, lists)
    named = tree.find(exp.With)
    if named is None or named.parent is not tree:
        return TranslatedQuery((), _text(tree))
    named.pop()
    return TranslatedQuery(tuple(_text(each) for each in named.expressions), _text(tree))


def _text(tree: exp.Expr) -> str:
    return tree.sql("databricks", comments=False, unsupported_level=sqlglot.ErrorLevel.RAISE)


def _reworded(node: exp.Expr, lists: frozenset[str]) -> exp.Expr:
    """Translate parameters, and the functions that sqlglot translates incorrectly."""
    if isinstance(node, exp.Placeholder):
        parameter = exp.Placeholder(this=f"p_{node.name}")
        return (
            exp.func("FROM_JSON", parameter, exp.Literal.string("ARRAY<STRING>")) if node.name in lists else parameter
        )
    if isinstance(node, exp.Anonymous) and node.name.lower() == "getvariable":
        return exp.Placeholder(this=f"p_{node.expressions[0].name}")
    # Databricks' own hash has 32 bits.
    if isinstance(node, exp.Anonymous) and node.name.lower() == "hash":
        return exp.Anonymous(this="XXHASH64", expressions=node.expressions)
    if isinstance(node, exp.PercentileCont):
        return exp.Anonymous(this="PERCENTILE", expressions=[node.this, node.expression])
    # DuckDB's epoch_ms converts in both directions; the pages use it only from timestamps to numbers.
    if isinstance(node, exp.UnixToTime) and node.args.get("scale") == MILLIS:
        return exp.Anonymous(this="UNIX_MILLIS", expressions=[node.this])
    return node


def _shown(table: str, name: str, prefixes: Sequence[str] | None) -> str:
    whole = f"SELECT * FROM {table}"
    if prefixes is None:
        return whole
    query = translated(filtered_sql(name, COLUMNS[name], len(prefixes)))
    return f"WITH {quoted(f'{name} whole')} AS ({whole}) {query.rest}"


def _is_list(value: Parameter) -> TypeGuard[Sequence[str]]:
    return not isinstance(value, str | int | float | datetime)
