"""Every rule is broken by a row that is made for it, and kept by valid rows."""

from __future__ import annotations

from functools import cache

import pytest

from schemas.rules import CHECKED, RULES, RuleKind, rules_of
from schemas.states import GenerationOutcome, Trigger
from tests.quality.breaking import flagged, key_of, made

by_table = pytest.mark.parametrize("table", CHECKED, ids=lambda table: table.name)


@cache
def results(name: str):
    given = made(next(table for table in CHECKED if table.name == name))
    return given, flagged(given)


@by_table
def test_rows_that_keep_every_rule_are_not_flagged(table) -> None:
    given, found = results(table.name)
    keys = {key_of(table, row) for row in given.clean}
    assert {} == {rule: sorted(rows & keys) for rule, rows in found.items() if rows & keys}


@by_table
def test_a_row_that_breaks_a_rule_is_flagged_by_that_rule(table) -> None:
    given, found = results(table.name)
    unseen = {
        rule: rows for rule, rows in given.breaking.items() if not {key_of(table, r) for r in rows} <= found[rule]
    }
    assert {} == unseen
    assert all(given.breaking.values())


@by_table
def test_a_row_that_breaks_a_rule_is_flagged_by_no_rule_about_other_columns(table) -> None:
    given, found = results(table.name)
    rules = {rule.name: rule for rule in rules_of(table.name)}

    def about(name: str) -> set[str]:
        rule = rules[name]
        return {*rule.columns, *([rule.when.column] if rule.when else [])}

    strange = {
        (broken, name)
        for broken, rows in given.breaking.items()
        for name, keys in found.items()
        if keys & {key_of(table, row) for row in rows} and not about(name) & about(broken)
    }
    assert set() == strange


def test_every_table_has_its_key_and_its_vocabularies_as_rules() -> None:
    for table in CHECKED:
        rules = rules_of(table.name)
        assert [table.key] == [rule.columns for rule in rules if rule.kind is RuleKind.UNIQUE]
        assert set(table.key) <= {rule.columns[0] for rule in rules if rule.kind is RuleKind.PRESENT and not rule.when}
    known = {(rule.table, rule.columns[0]): rule.known for rule in RULES if rule.kind is RuleKind.ONE_OF}
    assert tuple(GenerationOutcome) == known["generations", "outcome"]
    assert tuple(Trigger) == known["generations", "trigger"]
    evidence = {table.name for table in CHECKED if "evidence" in table.names}
    assert evidence == {table for table, column in known if column == "evidence"}


def test_a_rule_names_columns_that_there_are_and_has_a_name_of_its_own() -> None:
    columns = {table.name: set(table.names) for table in CHECKED}
    assert len(RULES) == len({(rule.table, rule.name) for rule in RULES})
    for rule in RULES:
        assert set(rule.columns) <= columns[rule.table], rule
        assert not rule.other or set(rule.other_columns) <= columns[rule.other], rule
        assert rule.when is None or rule.when.column in columns[rule.table], rule
        assert rule.sentence.endswith("."), rule
