"""Whether a table of a folder may contain a name that `regroup erase` removes, found without Spark."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from jobs.retention.erased_name import Name
from jobs.tables.engine import connect, show
from schemas.tables import Table


def may_contain(warehouse: Path, table: Table, name: Name) -> bool:
    """Return whether any column contains the name, also as part of another. This check spares most tables Spark's
    merge.
    """
    conditions = [condition(column.name, column.type, name.forms()) for column in table.columns]
    with connect() as engine:
        show(engine, "stored", warehouse, table)
        where = " OR ".join(each for each in conditions if each)
        query = f"SELECT count(*) FROM (SELECT 1 FROM stored WHERE {where} LIMIT 1)"  # noqa: S608 - quoted
        return bool(engine.sql(query).fetchall()[0][0])


def condition(column: str, kind: str, forms: Iterable[str]) -> str:
    """Return a condition in DuckDB's SQL, or an empty string if the column contains no text.

    Args:
        column: name of the column.
        kind: its type, as Spark spells it.
        forms: the spellings of the name in text (`Name.forms`).
    """
    ordered = sorted(forms)
    match kind:
        case "STRING":
            text, words = f'"{column}"', [_quoted(form) for form in ordered]
        case "BINARY":
            text, words = f'hex("{column}")', [f"'{form.encode().hex().upper()}'" for form in ordered]
        case _ if "STRING" in kind.upper():
            # DuckDB escapes the name too, because writers of JSON differ in what they escape, and how.
            escaped = (f"CAST(to_json({_quoted(form)}) AS VARCHAR)" for form in ordered)
            text, words = f'CAST(to_json("{column}") AS VARCHAR)', [f"{each}[2:-2]" for each in escaped]
        case _:
            return ""
    return " OR ".join(f"contains({text}, {word})" for word in words)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
