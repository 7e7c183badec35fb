"""Primary and foreign keys of tables in Unity Catalog: information for people and tools, which nothing enforces.

A catalog without an information schema has no keys. Open-source Delta refuses them.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dashboards.lake.sql_names import literal, quoted, source
from jobs.config.errors import one_line
from jobs.config.terminal import say
from jobs.tables.location import is_address, location
from schemas.bronze import BRONZE
from schemas.gold import GOLD
from schemas.operations import OPERATIONS
from schemas.rules import RULES, Rule, RuleKind
from schemas.silver import REASSIGNMENT_TABLES, SILVER
from schemas.tables import Table

KEYED = {table.name: table for table in (*BRONZE, *SILVER, *REASSIGNMENT_TABLES, *GOLD, *OPERATIONS)}


class Key(NamedTuple):
    """A key to add to a table, whose name is unique in the schema."""

    table: str
    name: str
    clause: str


def add_keys(warehouse: Path) -> None:
    """Add the missing keys of the existing tables, if their catalog has keys. Report a key that cannot be added."""
    place = location(warehouse)
    if place is None or is_address(place):
        return
    spark = SparkSession.active()
    *catalog, schema = place.split(".")
    information = quoted(*(catalog or [spark.catalog.currentCatalog()]), "information_schema")
    where = f"WHERE lower(table_schema) = {literal(schema.lower())}"
    constraints = f"{information}.table_constraints"
    # Asked first, because PySpark logs a failed query with its traces.
    if not spark.catalog.tableExists(constraints):
        return
    tables = spark.sql(f"SELECT table_name FROM {information}.tables {where}").collect()  # noqa: S608 - our own names
    known = spark.sql(f"SELECT constraint_name FROM {constraints} {where}").collect()  # noqa: S608 - our own names
    for key in missing(place, {row["table_name"] for row in tables}, {row["constraint_name"] for row in known}):
        try:
            spark.sql(f"ALTER TABLE {source(place, key.table)} ADD CONSTRAINT {key.name} {key.clause}").collect()
        except PySparkException as error:
            say(f"The key {key.name} of the table {key.table} was not added: {one_line(error)}")


def missing(place: str, tables: Collection[str], known: Collection[str]) -> list[Key]:
    """Return the keys of these tables in the schema `place` that are not `known`: first the primary keys, to which the
    others refer.
    """
    keys = [_primary(KEYED[name]) for name in sorted(tables) if name in KEYED]
    keys += [_foreign(rule, place) for rule in RULES if _refers_to_key(rule) and {rule.table, rule.other} <= {*tables}]
    return [key for key in keys if key.name not in known]


def _primary(table: Table) -> Key:
    return Key(table.name, f"{table.name}_key", f"PRIMARY KEY ({_columns(table.key)})")


def _refers_to_key(rule: Rule) -> bool:
    return rule.kind is RuleKind.REFERENCE and rule.other_columns == KEYED[rule.other].key


def _foreign(rule: Rule, place: str) -> Key:
    return Key(
        rule.table,
        f"{rule.table}_{rule.columns[-1]}_in_{rule.other}",
        f"FOREIGN KEY ({_columns(rule.columns)}) REFERENCES {source(place, rule.other)} "
        f"({_columns(rule.other_columns)})",
    )


def _columns(names: Collection[str]) -> str:
    return ", ".join(map(quoted, names))
