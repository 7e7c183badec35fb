"""Rows that keep all rules of a table, and for each rule rows that break it, made from the rules alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from jobs.checks.quality_rows import batches, dangling_references, engine
from jobs.checks.quality_suite import Suite, example_of
from pipelines.arrow_types import stored
from schemas.rules import CHECKED, Rule, RuleKind, rules_of
from schemas.tables import Table
from tests.whole_rows import whole

Row = dict[str, Any]
MANY = 10_000
NOON = 1_700_000_000_000
ODD = "no such value"


@dataclass(kw_only=True)
class Made:
    """Rows of a table by the rule that they break, and the rows of other tables that they refer to."""

    table: Table
    clean: list[Row] = field(default_factory=list)
    breaking: dict[str, list[Row]] = field(default_factory=dict)

    @property
    def rows(self) -> list[Row]:
        return [*self.clean, *(row for rows in self.breaking.values() for row in rows)]


def made(table: Table) -> Made:
    out = Made(table=table)
    numbers = iter(range(MANY))
    out.clean = [_marked(table, _full(table), next(numbers)) for _ in range(3)]
    out.clean.append(_marked(table, _bare(table), next(numbers)))
    for rule in rules_of(table.name):
        sound = _full(table) | _satisfying(rule)
        rows = [_marked(table, sound, next(numbers)) | change for change in _changes(table, rule)]
        out.breaking[rule.name] = rows * 2 if rule.kind is RuleKind.UNIQUE else rows
    return out


def flagged(given: Made) -> dict[str, set[str]]:
    """Return by rule the keys of the rows that break it, according to Great Expectations."""
    rules = rules_of(given.table.name)
    rows = stored(given.rows, given.table)
    suite = Suite(given.table, rules, examples=MANY)
    with engine() as connection:
        connection.register("whole", rows)
        connection.register("checked", rows)
        alone = {}
        for rule in rules:
            if rule.kind is RuleKind.REFERENCE:
                connection.register("other", _others(given, rule))
                if found := dangling_references(connection, rule, "whole", "other"):
                    alone[rule.name] = found
        for batch in batches(connection, given.table, rules, alone):
            suite.check(batch)
    assert {name: verdict.failed for name, verdict in suite.verdicts.items() if not verdict.passed}.keys() == {
        name for name, verdict in suite.verdicts.items() if verdict.examples
    }
    return {name: set(verdict.examples) for name, verdict in suite.verdicts.items()}


def key_of(table: Table, row: Row) -> str:
    return example_of(table, row)


def _others(given: Made, rule: Rule) -> pa.Table:
    """Return the referenced rows, except those that are to be missing."""
    other = next(table for table in CHECKED if table.name == rule.other)
    kept = [row for row in given.rows if row not in given.breaking[rule.name]]
    keys = [dict(zip(rule.other_columns, (row[c] for c in rule.columns), strict=True)) for row in kept]
    return stored([whole(key, other) for key in keys], other)


def _changes(table: Table, rule: Rule) -> Iterator[Row]:
    """Yield the changes that make a row break the rule, in every possible way."""
    full = _full(table) | _satisfying(rule)
    first, *others = rule.columns
    match rule.kind:
        case RuleKind.UNIQUE | RuleKind.REFERENCE:
            yield {}
        case RuleKind.PRESENT:
            yield {first: None}
        case RuleKind.ABSENT:
            yield {first: NOON}
        case RuleKind.ONE_OF:
            yield {first: ODD}
        case RuleKind.EACH_OF:
            yield {first: [*full[first], ODD]}
            yield {first: [None]}
        case RuleKind.RANGE:
            limits = ((rule.low, -1), (rule.high, 1))
            yield from ({first: int(limit) + beyond} for limit, beyond in limits if limit is not None)
        case RuleKind.ORDER:
            yield {first: full[others[0]] + 1}
        case RuleKind.SPAN | RuleKind.COUNT:
            yield {first: full[first] + 1}


def _full(table: Table) -> Row:
    """Return a row with a value in every column, all consistent."""
    kinds = {"STRING": "x", "INT": 0, "BIGINT": 0, "DOUBLE": 0.0, "BOOLEAN": False, "TIMESTAMP": NOON}
    row: Row = {column.name: kinds.get(column.type, []) for column in table.columns}
    rules = rules_of(table.name)
    row |= {rule.columns[0]: rule.known[0] for rule in rules if rule.kind is RuleKind.ONE_OF}
    row |= {rule.columns[0]: max(0, rule.low or 0) for rule in rules if rule.kind is RuleKind.RANGE}
    # If a column must be NULL only in some rows, this row is not one of them.
    for rule in rules:
        if rule.kind in (RuleKind.PRESENT, RuleKind.ABSENT) and rule.when and rule.when.among:
            present = (r for r in rules if r.kind is RuleKind.PRESENT and r.when and r.when.among)
            row[rule.when.column] = next(present).when.among[0]
    return row


def _bare(table: Table) -> Row:
    """Return a row with values only in columns that must have one."""
    full = _full(table)
    needed = {
        r.columns[0] for r in rules_of(table.name) if r.kind is RuleKind.PRESENT and (not r.when or _is_about(r, full))
    }
    return {name: value if name in needed else None for name, value in full.items()}


def _is_about(rule: Rule, row: Row) -> bool:
    return bool(rule.when and rule.when.among and row[rule.when.column] in rule.when.among)


def _satisfying(rule: Rule) -> Row:
    """Return the change that makes the rule apply to the row."""
    return {rule.when.column: rule.when.among[0]} if rule.when and rule.when.among else {}


def _marked(table: Table, row: Row, number: int) -> Row:
    """Return the same row with a unique key."""
    kinds = {column.name: column.type for column in table.columns}
    mark = next(name for name in table.key[1:] if kinds[name] == "STRING" and not _is_one_of(table, name))
    return row | {mark: f"row {number}"}


def _is_one_of(table: Table, column: str) -> bool:
    return any(rule.kind is RuleKind.ONE_OF and rule.columns == (column,) for rule in rules_of(table.name))
