"""`regroup quality`: check each new version of the silver and gold tables against the rules of `schemas.rules`.

If a table's last check passed, only rows in newer files are checked. Keys and references are still compared with all
rows, so no row stays unchecked because it is older. If a rule of a table failed, all its rows are checked until every
rule passes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

from duckdb import DuckDBPyConnection
from pyspark.sql import SparkSession

from dashboards.lake.quality_results import newest_results
from jobs.checks import quality_frames
from jobs.checks.quality_docs import CheckedVersion, escaped, write_docs
from jobs.checks.quality_rows import batches, dangling_references, engine
from jobs.checks.quality_suite import Suite
from jobs.config.errors import UserError
from jobs.config.settings import Settings
from jobs.config.terminal import say
from jobs.spark.spark import persisted, tables_of
from jobs.spark.spark_lake import lake_of
from jobs.tables.delta_io import read
from jobs.tables.engine import show_files
from jobs.tables.location import is_elsewhere, location
from jobs.tables.table_facts import TableVersion, exists
from jobs.tables.tables import Tables
from schemas.operations import QUALITY_RESULTS
from schemas.rows import QualityResultRow
from schemas.rules import CHECKED, Rule, RuleKind, rules_of
from schemas.states import RuleSeverity
from schemas.tables import Table

SETTLE_SECONDS = 10.0
"""Wait before references are checked again, in seconds. Related tables are written one after the other within it."""

AT_ONCE = 4
"""Tables that are opened at once. Spark takes a second for each."""

Alone = dict[str, set[tuple[object, ...]]]
Say = Callable[[str], None]


def run(settings: Settings, args: argparse.Namespace) -> int:
    """Check until stopped; with `--once`, check once and return 1 if the newest version of a table breaks a rule.

    Raises:
        UserError: the warehouse has no silver or gold table, or data docs are asked for that cannot be written.
    """
    quality = Quality(tables=tables_of(settings, "quality"), say=say)
    if not quality.there():
        raise UserError(
            f"The warehouse {settings.warehouse} has no table of silver or gold yet: run `regroup build` or "
            "`regroup replay` first, or name another with --warehouse."
        )
    if args.data_docs is not None:
        if (there := location(settings.warehouse)) is not None:
            raise UserError(f"`quality --data-docs` does not work with tables in {there}: leave the option out.")
        say(f"Data docs: {quality.docs(args.data_docs)}")
    while True:
        quality.round()
        if args.once:
            return 1 if quality.is_broken() else 0
        time.sleep(settings.quality_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """The checks of one warehouse. `settle_seconds`: time after which a missing referenced row counts as missing."""

    tables: Tables
    say: Say
    settle_seconds: float = SETTLE_SECONDS

    @property
    def warehouse(self) -> Path:
        return self.tables.warehouse

    def there(self) -> list[Table]:
        """Return the existing tables that have rules."""
        return [table for table in CHECKED if exists(self.warehouse, table)]

    def round(self) -> list[QualityResultRow]:
        """Check every unchecked version, report and store the results, and return them."""
        last_results = self._last_results()
        results: list[QualityResultRow] = []
        there = self.there()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            newest = list(pool.map(partial(TableVersion.of, self.warehouse), there))
        for table, version in zip(there, newest, strict=True):
            known = [row for row in last_results if row["table_name"] == table.name]
            found = self.check(table, known, version=version)
            self._report(table, found)
            results += found
        if results:
            self.tables.append(QUALITY_RESULTS, results)
        return results

    def is_broken(self) -> bool:
        """Return whether the last checked version of any table breaks a rule of severity `error`."""
        return any(not row["passed"] and row["severity"] == RuleSeverity.ERROR for row in self._last_results())

    def check(
        self,
        table: Table,
        known: Sequence[QualityResultRow] = (),
        rules: Sequence[Rule] | None = None,
        version: TableVersion | None = None,
    ) -> list[QualityResultRow]:
        """Return rows of `quality_results` for a version of a table; none if that version is already checked.

        `known` are the results of the table's last check. By default, the newest version is checked.
        """
        rules = rules_of(table.name) if rules is None else rules
        version = version or TableVersion.of(self.warehouse, table)
        if version is None or _is_checked(version, known, rules):
            return []
        suite = Suite(table, rules)
        if is_elsewhere(self.warehouse):
            version, suite = self._checked_by_spark(version, rules)
            return _results(version, suite)
        with engine() as connection:
            version, alone = self._opened(connection, version, rules)
            since = None if alone else self._passed(table, known, rules, version)
            self._show(connection, version, since)
            for batch in batches(connection, table, rules, alone):
                suite.check(batch)
        return _results(version, suite)

    def _checked_by_spark(self, version: TableVersion, rules: Sequence[Rule]) -> tuple[TableVersion, Suite]:
        """Check all rows of a table in Spark.

        If a reference dangles, wait and check the newest version, because the referenced rows may still be written.
        """
        suite = self._suite_by_spark(version, rules)
        if all(each.passed for each in suite.verdicts.values() if each.rule.kind is RuleKind.REFERENCE):
            return version, suite
        time.sleep(self.settle_seconds)
        version = TableVersion.of(self.warehouse, version.table) or version
        return version, self._suite_by_spark(version, rules)

    def _suite_by_spark(self, version: TableVersion, rules: Sequence[Rule]) -> Suite:
        spark, suite = SparkSession.active(), Suite(version.table, rules)
        referred = {rule.other for rule in rules if rule.kind is RuleKind.REFERENCE}
        others = {other.name: read(spark, self.warehouse, other) for other in CHECKED if other.name in referred}
        checked = read(spark, self.warehouse, version.table, version.version)
        # Kept, because each query of a rule would join the other tables again.
        with persisted(quality_frames.frame(checked, version.table, rules, others)) as rows:
            suite.check_frame(rows)
        return suite

    def docs(self, folder: Path) -> Path:
        """Write Great Expectations data docs for all rows of all tables; return the path of the first page."""
        found = []
        for table in self.there():
            suite, rules = Suite(table, rules_of(table.name)), rules_of(table.name)
            version = TableVersion.of(self.warehouse, table)
            assert version is not None
            with engine() as connection:
                version, alone = self._opened(connection, version, rules)
                self._show(connection, version, None)
                results = [suite.check(escaped(batch)) for batch in batches(connection, table, rules, alone)]
            found.append(CheckedVersion(suite=suite, version=version.version, results=results))
        return write_docs(folder, found)

    def _opened(
        self, connection: DuckDBPyConnection, version: TableVersion, rules: Sequence[Rule]
    ) -> tuple[TableVersion, Alone]:
        """Open the table and find its dangling references.

        If there are any, wait and open the tables again, because the referenced rows may still be written. Return the
        table version and the references that dangle both times, by rule.
        """
        alone = self._alone(connection, version, rules)
        if not alone:
            return version, {}
        time.sleep(self.settle_seconds)
        version = TableVersion.of(self.warehouse, version.table) or version
        still = self._alone(connection, version, rules)
        return version, {name: both for name, found in still.items() if (both := found & alone.get(name, set()))}

    def _alone(self, connection: DuckDBPyConnection, version: TableVersion, rules: Sequence[Rule]) -> Alone:
        show_files(connection, "whole", version.table, sorted(version.files))
        found: Alone = {}
        for rule in rules:
            if rule.kind is RuleKind.REFERENCE:
                other = next(table for table in CHECKED if table.name == rule.other)
                there = TableVersion.of(self.warehouse, other)
                show_files(connection, "other", other, sorted(there.files) if there else ())
                if missing := dangling_references(connection, rule, "whole", "other"):
                    found[rule.name] = missing
        return found

    def _passed(
        self, table: Table, known: Sequence[QualityResultRow], rules: Sequence[Rule], version: TableVersion
    ) -> TableVersion | None:
        """Return the last checked version if all its rows pass these same rules, else None."""
        if not known or _rules(known) != {(rule.name, rule.sentence) for rule in rules}:
            return None
        if known[0]["table_id"] != version.table_id or not all(row["passed"] for row in known):
            return None
        return TableVersion.of(self.warehouse, table, known[0]["version"])

    @staticmethod
    def _show(connection: DuckDBPyConnection, version: TableVersion, since: TableVersion | None) -> None:
        show_files(connection, "whole", version.table, sorted(version.files))
        files = version.files - since.files if since else version.files
        show_files(connection, "checked", version.table, sorted(files))

    def _last_results(self) -> list[QualityResultRow]:
        found = newest_results(lake_of(self.warehouse, only=[QUALITY_RESULTS.name]))
        return cast("list[QualityResultRow]", found)

    def _report(self, table: Table, found: Iterable[QualityResultRow]) -> None:
        rows = list(found)
        if not rows:
            return
        broken = [row for row in rows if not row["passed"]]
        kept = f"{len(rows) - len(broken)} of {len(rows)} rules kept, {rows[0]['rows_checked']:,} rows checked"
        self.say(f"{table.name} version {rows[0]['version']}: {kept}")
        for row in broken:
            self.say(
                f"  broken by {row['rows_failed']:,}: {row['rule']}. {row['sentence']} {'; '.join(row['examples'])}"
            )


def _is_checked(version: TableVersion, known: Sequence[QualityResultRow], rules: Sequence[Rule]) -> bool:
    same = (known[0]["table_id"], known[0]["version"]) == (version.table_id, version.version) if known else False
    return same and _rules(known) == {(rule.name, rule.sentence) for rule in rules}


def _rules(known: Sequence[QualityResultRow]) -> set[tuple[str, str]]:
    return {(row["rule"], row["sentence"]) for row in known}


def _results(version: TableVersion, suite: Suite) -> list[QualityResultRow]:
    at = time.time_ns() // 1_000_000
    return [
        {
            "table_name": version.table.name,
            "checked_at": at,
            "rule": name,
            "table_id": version.table_id,
            "version": version.version,
            "severity": verdict.rule.severity.value,
            "sentence": verdict.rule.sentence,
            "passed": verdict.passed,
            "rows_checked": verdict.checked,
            "rows_failed": verdict.failed,
            "examples": verdict.examples,
        }
        for name, verdict in suite.verdicts.items()
    ]
