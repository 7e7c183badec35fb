"""The pages' SQL in the words of Databricks SQL. It is written once, for DuckDB; sqlglot translates each text once.

Values stay named parameters (`:p_name`, so that none is a keyword); lists go in as JSON, which every warehouse reads.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple, TypeGuard

import sqlglot
from sqlglot import exp

from dashboards.lake.lake import TABLES, Parameter
from dashboards.lake.row_filter import filtered_sql, variables

KEPT = 512
PARAMETER = re.compile(r":(p_\w+)")
MILLIS = exp.UnixToTime.MILLIS
COLUMNS = {table.name: table.names for table in TABLES}


def statement(
    sql: str,
    tables: Mapping[str, int],
    place: str,
    parameters: Mapping[str, Parameter],
    prefixes: Sequence[str] | None,
) -> str:
    """The text that asks `sql` of exactly these versions of the tables in `place`, of which a reader of groups with
    `prefixes` sees what `dashboards.lake.row_filter` says.
    """
    lists = frozenset(name for name, value in parameters.items() if _is_list(value))
    named = [
        f"{quoted(name)} AS ({_shown(f'{source(place, name)} VERSION AS OF {version:d}', name, prefixes)})"
        for name, version in tables.items()
    ]
    said = translated(sql, lists)
    return f"WITH {', '.join([*named, *said.named])} {said.rest}"


def bound(text: str, parameters: Mapping[str, Parameter], prefixes: Sequence[str] | None) -> dict[str, Any]:
    """What goes with a `statement`: values for all parameters that it has, and for no other."""
    of_reader = variables(prefixes or ())
    asked = set(PARAMETER.findall(text))
    return {
        name: json.dumps(list(value)) if _is_list(value) else value
        for name, value in ((f"p_{name}", value) for name, value in (*parameters.items(), *of_reader.items()))
        if name in asked
    }


def source(place: str, name: str) -> str:
    """A table in `catalog.schema`, or a Delta table that is a folder in the folder `place`."""
    if "/" in place:
        return f"delta.{quoted(f'{place}/{name}')}"
    return quoted(*place.split("."), name)


def quoted(*names: str) -> str:
    return ".".join("`" + name.replace("`", "``") + "`" for name in names)


class Said(NamedTuple):
    """A query: its named parts (`name AS (...)`), and what comes after them."""

    named: tuple[str, ...]
    rest: str


@lru_cache(KEPT)
def translated(sql: str, lists: frozenset[str] = frozenset()) -> Said:
    """Raises `sqlglot.errors.SqlglotError` for what has no translation."""
    tree = sqlglot.parse_one(sql, read="duckdb").transform(_reworded, lists)
    named = tree.find(exp.With)
    if named is None or named.parent is not tree:
        return Said((), _text(tree))
    named.pop()
    return Said(tuple(_text(each) for each in named.expressions), _text(tree))


def _text(tree: exp.Expr) -> str:
    return tree.sql("databricks", comments=False, unsupported_level=sqlglot.ErrorLevel.RAISE)


def _reworded(node: exp.Expr, lists: frozenset[str]) -> exp.Expr:
    """Parameters, and the two functions that sqlglot takes for others."""
    if isinstance(node, exp.Placeholder):
        parameter = exp.Placeholder(this=f"p_{node.name}")
        return (
            exp.func("FROM_JSON", parameter, exp.Literal.string("ARRAY<STRING>")) if node.name in lists else parameter
        )
    if isinstance(node, exp.Anonymous) and node.name.lower() == "getvariable":
        return exp.Placeholder(this=f"p_{node.expressions[0].name}")
    if isinstance(node, exp.PercentileCont):
        return exp.Anonymous(this="PERCENTILE", expressions=[node.this, node.expression])
    # DuckDB's epoch_ms goes both ways; the pages ask for the number of an instant.
    if isinstance(node, exp.UnixToTime) and node.args.get("scale") == MILLIS:
        return exp.Anonymous(this="UNIX_MILLIS", expressions=[node.this])
    return node


def _shown(table: str, name: str, prefixes: Sequence[str] | None) -> str:
    whole = f"SELECT * FROM {table}"
    if prefixes is None:
        return whole
    said = translated(filtered_sql(name, COLUMNS[name], len(prefixes)))
    return f"WITH {quoted(f'{name} whole')} AS ({whole}) {said.rest}"


def _is_list(value: Parameter) -> TypeGuard[Sequence[str]]:
    return not isinstance(value, str | int | float | datetime)
