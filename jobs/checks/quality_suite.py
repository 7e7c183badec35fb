"""Rules as suites of Great Expectations, and their results for batches of rows.

Great Expectations works on pandas frames in memory, or on frames of Spark, in a context without files or network.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

import great_expectations as gx
import pandas as pd
from great_expectations.data_context.types.base import ProgressBarsConfig
from great_expectations.expectations import core as gxe
from great_expectations.expectations.expectation import Expectation
from great_expectations.expectations.metadata_types import FailureSeverity
from great_expectations.expectations.row_conditions import Column

from jobs.checks.quality_rows import context_column
from schemas.rules import Rule, RuleKind, When
from schemas.states import RuleSeverity
from schemas.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

EXAMPLES = 5
EXAMPLE_LENGTH = 300
SEVERITIES = {RuleSeverity.ERROR: FailureSeverity.CRITICAL, RuleSeverity.WARNING: FailureSeverity.WARNING}


@dataclass(slots=True, kw_only=True)
class RuleResult:
    """The result of a rule for the rows checked so far."""

    rule: Rule
    checked: int = 0
    failed: int = 0
    examples: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return not self.failed


class Suite:
    """The rules of one table, checked on one batch of its rows after another."""

    def __init__(self, table: Table, rules: Sequence[Rule], *, examples: int = EXAMPLES) -> None:
        self.table = table
        self._examples = examples
        self.verdicts = {rule.name: RuleResult(rule=rule) for rule in rules}
        self.suite = gx.ExpectationSuite(table.name, expectations=[expectation(rule) for rule in rules])

    def check(self, rows: pd.DataFrame) -> Any:
        """Check a batch. Return the result from Great Expectations.

        Raises:
            RuntimeError: a rule could not be evaluated.
        """
        result = _batch_definition().get_batch({"dataframe": rows}).validate(self.suite, result_format=self._format())
        for each in result.results:
            self._take(each, len(rows))
        return result

    def check_frame(self, rows: DataFrame) -> None:
        """Check the rows of a frame in Spark.

        Raises:
            RuntimeError: a rule could not be evaluated.
        """
        count = rows.count()
        for verdict in self.verdicts.values():
            verdict.checked += count
        if not count:
            return
        batch = _frame_definition().get_batch({"dataframe": rows})
        # One query counts for all rules together; examples take several for each rule.
        found = batch.validate(self.suite, result_format="BOOLEAN_ONLY")
        broken = {_rule_name(each) for each in found.results if not each.success}
        if not broken:
            return
        again = [each for each in self.suite.expectations if (each.meta or {}).get("rule") in broken]
        named = gx.ExpectationSuite(self.table.name, expectations=again)
        for each in batch.validate(named, result_format=self._format()).results:
            self._take(each, 0)

    def _format(self) -> dict[str, Any]:
        return {
            "result_format": "SUMMARY",
            "partial_unexpected_count": self._examples,
            "unexpected_index_column_names": list(self.table.key),
            "return_unexpected_index_query": False,
        }

    def _take(self, outcome: Any, rows: int) -> None:
        name = _rule_name(outcome)
        if outcome.result.get("unexpected_count") is None:
            raise RuntimeError(f"The rule {name!r} of {self.table.name} was not evaluated: {outcome.exception_info}")
        verdict = self.verdicts[name]
        verdict.checked += rows
        verdict.failed += outcome.result["unexpected_count"]
        for key in outcome.result.get("partial_unexpected_index_list") or ():
            example = example_of(self.table, key)
            if len(verdict.examples) < self._examples and example not in verdict.examples:
                verdict.examples.append(example)


def _rule_name(outcome: Any) -> str:
    return str(outcome.expectation_config.meta["rule"])


def expectation(rule: Rule) -> Expectation:
    """Return the rule as an expectation. A NULL in a row violates only rules of presence."""
    kind, asked = _asked(rule)
    if rule.when is not None:
        asked["row_condition"] = _condition(rule.when)
    notes = f"{rule.name}. {rule.sentence}"
    return kind(**asked, meta={"rule": rule.name}, notes=notes, severity=SEVERITIES[rule.severity])


def _asked(rule: Rule) -> tuple[type[Expectation], dict[str, Any]]:
    first, *others = rule.columns
    between, extra = gxe.ExpectColumnValuesToBeBetween, {"column": context_column(rule)}
    both = {"ignore_row_if": "either_value_is_missing"}
    kinds: dict[RuleKind, tuple[type[Expectation], dict[str, Any]]] = {
        RuleKind.UNIQUE: (between, extra | {"min_value": 1, "max_value": 1}),
        RuleKind.REFERENCE: (between, extra | {"min_value": 1, "max_value": 1}),
        RuleKind.EACH_OF: (between, extra | {"min_value": 0, "max_value": 0}),
        RuleKind.RANGE: (between, {"column": first, "min_value": rule.low, "max_value": rule.high}),
        RuleKind.PRESENT: (gxe.ExpectColumnValuesToNotBeNull, {"column": first}),
        RuleKind.ABSENT: (gxe.ExpectColumnValuesToBeNull, {"column": first}),
        RuleKind.ONE_OF: (gxe.ExpectColumnValuesToBeInSet, {"column": first, "value_set": list(rule.known)}),
        RuleKind.ORDER: (
            gxe.ExpectColumnPairValuesAToBeGreaterThanB,
            both | {"column_A": others[0] if others else first, "column_B": first, "or_equal": True},
        ),
        RuleKind.SPAN: (
            gxe.ExpectColumnPairValuesToBeEqual,
            both | {"column_A": first, "column_B": context_column(rule)},
        ),
        RuleKind.COUNT: (
            gxe.ExpectColumnPairValuesToBeEqual,
            both | {"column_A": first, "column_B": context_column(rule)},
        ),
    }
    return kinds[rule.kind]


def _condition(when: When) -> Any:
    column = Column(when.column)
    if not when.among:
        return column.is_not_null()
    if isinstance(when.among[0], bool):
        return column == when.among[0]
    return column.is_in([str(value) for value in when.among])


def context() -> Any:
    """Return a new Great Expectations context without analytics and progress bars."""
    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    made = gx.get_context(mode="ephemeral")
    made.enable_analytics(False)  # noqa: FBT003 - positional in its signature
    made.variables.progress_bars = ProgressBarsConfig(globally=False)
    return made


@cache
def _batch_definition() -> Any:
    asset = context().data_sources.add_pandas("rows").add_dataframe_asset("batch")
    return asset.add_batch_definition_whole_dataframe("whole")


@cache
def _frame_definition() -> Any:
    # Not persisted, because serverless compute of Databricks cannot.
    asset = context().data_sources.add_spark("rows", persist=False).add_dataframe_asset("batch")
    return asset.add_batch_definition_whole_dataframe("whole")


def example_of(table: Table, key: Mapping[str, Any]) -> str:
    """Return the key of a row as text."""
    kinds = {column.name: column.type for column in table.columns}
    text = ", ".join(f"{name} = {_value(kinds[name], key.get(name))}" for name in table.key)
    return text if len(text) <= EXAMPLE_LENGTH else f"{text[: EXAMPLE_LENGTH - 1]}…"


def _value(kind: str, value: Any) -> str:
    if value is None or value is pd.NA or value != value:  # noqa: PLR0124 - NaN
        return "NULL"
    if kind == "TIMESTAMP":
        return datetime.fromtimestamp(int(value) / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return repr(str(value)) if kind == "STRING" else str(value)
