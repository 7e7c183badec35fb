"""Rows of a table prepared for the rules: batches for pandas, with extra columns for facts from other rows.

DuckDB reads the files; timestamps become milliseconds. A row is compared with all rows of its table and of other
tables, even if only some rows are checked.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import duckdb
import pandas as pd
import pyarrow as pa
from duckdb import DuckDBPyConnection

from schemas.rules import Rule, RuleKind
from schemas.tables import Table

BATCH_ROWS = 50_000
MEMORY = "256MB"
COPIES = "rows with this key"
NULLABLE = {
    pa.int64(): pd.Int64Dtype(),
    pa.int32(): pd.Int32Dtype(),
    pa.float64(): pd.Float64Dtype(),
    pa.bool_(): pd.BooleanDtype(),
    pa.string(): pd.StringDtype(),
}


@contextmanager
def engine() -> Iterator[DuckDBPyConnection]:
    """Yield a DuckDB that leaves no files behind, not even in the current directory.

    It uses one core and `MEMORY` of memory; data beyond that goes to a temporary folder.
    """
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET temp_directory = $folder", {"folder": folder})
        connection.execute(f"SET memory_limit = '{MEMORY}'")
        connection.execute("SET threads = 1")
        yield connection


def dangling_references(connection: DuckDBPyConnection, rule: Rule, rows: str, other: str) -> set[tuple[object, ...]]:
    """Return the keys that rows of the view `rows` refer to by a reference rule and that the view `other` lacks."""
    mine = ", ".join(f'"{name}"' for name in rule.columns)
    theirs = ", ".join(f'"{name}"' for name in rule.other_columns)
    full = " AND ".join(f'"{name}" IS NOT NULL' for name in rule.columns)
    found = connection.sql(
        f"SELECT DISTINCT {mine} FROM {rows} WHERE {full} EXCEPT SELECT {theirs} FROM {other}"  # noqa: S608 - our names
    )
    return set(found.fetchall())


def batches(
    connection: DuckDBPyConnection,
    table: Table,
    rules: Sequence[Rule],
    alone: dict[str, set[tuple[object, ...]]],
) -> Iterator[pd.DataFrame]:
    """Yield the rows of the view `checked`, with the columns that `rules` need.

    Args:
        connection: an engine with the views `whole` (the table) and `checked` (the rows to check).
        table: the table.
        rules: its rules.
        alone: results of `dangling_references`, by name of the reference rule.
    """
    key = ", ".join(f'"{name}"' for name in table.key)
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE copied AS SELECT {key}, count(*) AS copies FROM whole "  # noqa: S608
        f"SEMI JOIN (SELECT {key} FROM checked) USING ({key}) GROUP BY ALL HAVING count(*) > 1"
    )
    same = " AND ".join(f'copied."{name}" = checked."{name}"' for name in table.key)
    extra = [f'coalesce(copied.copies, 1) AS "{COPIES}"']
    joined = [f"LEFT JOIN copied ON {same}"]
    for number, rule in enumerate(rules):
        if rule.kind is RuleKind.REFERENCE and rule.name not in alone:
            extra.append(f'1 AS "{context_column(rule)}"')
        elif rule.kind is RuleKind.REFERENCE:
            joined.append(_alone(connection, rule, f"alone_{number}", alone[rule.name]))
            extra.append(f'CASE WHEN alone_{number}.is_alone THEN 0 ELSE 1 END AS "{context_column(rule)}"')
        elif (derived := _derived(rule)) is not None:
            extra.append(f'{derived} AS "{context_column(rule)}"')
    asked = [_column(table, name) for name in needed(table, rules)]
    found = connection.sql(f"SELECT {', '.join([*asked, *extra])} FROM checked {' '.join(joined)}")  # noqa: S608
    for batch in found.to_arrow_reader(BATCH_ROWS):
        yield batch.to_pandas(types_mapper=NULLABLE.get)


def context_column(rule: Rule) -> str:
    """Return the name of the batch column with the facts that the rule needs beyond its own columns."""
    return COPIES if rule.kind is RuleKind.UNIQUE else f"extra: {rule.name}"


def _alone(connection: DuckDBPyConnection, rule: Rule, name: str, found: set[tuple[object, ...]]) -> str:
    columns = ", ".join(f'"{column}"' for column in rule.columns)
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT {columns}, true AS is_alone FROM checked LIMIT 0"  # noqa: S608
    )
    if found:
        places = ", ".join("?" for _ in rule.columns)
        connection.executemany(f"INSERT INTO {name} VALUES ({places}, true)", [list(each) for each in sorted(found)])  # noqa: S608
    same = " AND ".join(f'{name}."{column}" = checked."{column}"' for column in rule.columns)
    return f"LEFT JOIN {name} ON {same}"


def _derived(rule: Rule) -> str | None:
    match rule.kind:
        case RuleKind.SPAN:
            _, begin, end = rule.columns
            return f'epoch_ms(checked."{end}") - epoch_ms(checked."{begin}")'
        case RuleKind.COUNT:
            return f'len(checked."{rule.columns[1]}")'
        case RuleKind.EACH_OF:
            known = ", ".join(f"'{value}'" for value in rule.known)
            return f'len(list_filter(checked."{rule.columns[0]}", lambda x: x IS NULL OR x NOT IN ({known})))'
        case _:
            return None


def needed(table: Table, rules: Sequence[Rule]) -> list[str]:
    asked = {name for rule in rules for name in (*rule.columns, *([rule.when.column] if rule.when else []))}
    return [name for name in table.names if name in asked | set(table.key)]


def _column(table: Table, name: str) -> str:
    kind = next(column.type for column in table.columns if column.name == name)
    if kind == "TIMESTAMP":
        return f'epoch_ms(checked."{name}") AS "{name}"'
    if kind.startswith(("ARRAY", "MAP")):
        return f'len(checked."{name}") AS "{name}"'
    return f'checked."{name}"'
