"""`regroup erase`: remove a group or a client host from every table and from the data files, and write a receipt.

Rows of the group are deleted. Other rows that contain the name (a log line about several groups, a list of groups, a
host) keep everything but the name: a random placeholder replaces it.
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from jobs.config.errors import UserError, one_line
from jobs.config.settings import Settings
from jobs.config.terminal import say
from jobs.gold.analyze_part import analysed_path
from jobs.gold.storms import memory_path
from jobs.maintain import TABLES, existing_tables, spark_days
from jobs.processes.process_lock import acquire
from jobs.retention.erased_name import Name, erased_columns, is_about, is_named
from jobs.retention.folder_files import vacuum
from jobs.retention.name_search import may_contain
from jobs.retention.tidy import DEFAULT_DAYS, RETENTION, remove_old_files
from jobs.silver.staging import STAGING, empty
from jobs.spark.checkpoint import start_over_if_behind
from jobs.spark.spark import for_few_rows, session_of
from jobs.states.kept import as_stored
from jobs.tables.changed_rows import snapshot
from jobs.tables.delta_io import WRITERS, checkpoint_path, read
from jobs.tables.disk.durability import write_whole
from jobs.tables.location import is_elsewhere
from jobs.tables.spark_commit import commit_by_spark
from jobs.tables.table_facts import commits_after, exists
from schemas.bronze import BRONZE
from schemas.tables import Table

PASSES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """The changes to one table between two of its versions."""

    version_before: int
    version: int = 0
    rows_deleted: int = 0
    rows_changed: int = 0


def run(settings: Settings, args: argparse.Namespace) -> int:
    """Erase the name, then print and store the receipt.

    Raises:
        UserError: the warehouse has no tables, `maintain` is running, other jobs still write the name, or Spark refused
            to remove old files of tables elsewhere.
    """
    name = Name.of(args.cluster, group=args.group, host=args.host)
    if not existing_tables(settings.warehouse):
        raise UserError(f"The warehouse {settings.warehouse} has no tables: name another with --warehouse.")
    spark = session_of(settings, "erase")
    # `maintain` would write rows again that it read before the erasure.
    with acquire(settings.warehouse, "maintain"):
        receipt = erase(spark, settings.warehouse, name, vacuum_days=0.0 if args.now else settings.vacuum_days)
    text = json.dumps(receipt, indent=2)
    path = settings.warehouse / "_receipts" / f"erase-{receipt['erased_at'].replace(':', '')}.json"
    write_whole(path, text + "\n")
    for line in text.splitlines():
        say(line)
    say(f"Receipt: {as_stored(path)}")
    if receipt["still_named_in"]:
        raise UserError(
            f"Other jobs still write the name ({', '.join(receipt['still_named_in'])}): stop them and erase again."
        )
    if refused := receipt["old_files_not_removed"]:
        raise UserError(
            f"No row has the name any more, but old files of {', '.join(refused)} still may, because Spark did not "
            f"remove them ({next(iter(refused.values()))}): erase again, or run VACUUM when they are older than the "
            f"table's property {RETENTION} ({DEFAULT_DAYS} days unless it is set)."
        )
    return 0


def erase(spark: SparkSession, warehouse: Path, name: Name, *, vacuum_days: float) -> dict[str, Any]:
    """Erase the name from every existing table, bronze first, and return the receipt. The receipt omits the name."""
    # Spark compiles conditions of this length for longer than it evaluates them.
    spark = for_few_rows(spark)
    found: dict[Table, Changed] = {}
    changed: list[Table] = []
    for _ in range(PASSES):
        # Checked again, because a running batch may still have written rows with the name.
        changed = [table for table in existing_tables(warehouse) if _erase(spark, warehouse, table, name, found)]
        if exists(warehouse, STAGING):
            _empty_staging(spark, warehouse, found)
        if not changed:
            break
    caches = [file for path in (memory_path(warehouse), analysed_path(warehouse)) for file in _with_unfinished(path)]
    for path in caches:
        # These files are caches that contain group names.
        path.unlink()
    # Of every table, because an earlier run may have left files with the name, or was killed before it removed them.
    if not vacuum_days and is_elsewhere(warehouse):
        followed = existing_tables(warehouse, BRONZE)
        start_over_if_behind(checkpoint_path(warehouse, "build").parent, warehouse, followed)
    removed, refused = _without_old_files(warehouse, vacuum_days)
    for table, files in removed.items():
        if files and table not in found:
            version = snapshot(warehouse, table).version
            found[table] = Changed(version_before=version, version=version)
    now, salt = datetime.now(UTC), secrets.token_hex(16)
    return {
        "erased_at": now.isoformat(timespec="milliseconds"),
        "cluster": name.cluster,
        "kind": "group" if name.is_group else "host",
        "salt": salt,
        "hmac_sha256_of_name": hmac.new(salt.encode(), name.text.encode(), hashlib.sha256).hexdigest(),
        "old_files_kept_until": (now + timedelta(days=vacuum_days)).isoformat(timespec="seconds"),
        "caches_removed": [str(path.relative_to(warehouse)) for path in caches],
        "still_named_in": [table.name for table in changed],
        "old_files_not_removed": {table.name: reason for table, reason in refused.items()},
        "tables": [
            {"table": table.name, **asdict(done), "old_files_removed": removed.get(table)}
            for table, done in found.items()
        ],
    }


def _without_old_files(warehouse: Path, days: float) -> tuple[dict[Table, int | None], dict[Table, str]]:
    """Remove the files of every table that no version of the last `days` days needs.

    Return the numbers of removed files, None where Spark does not tell it, and for the other tables why Spark refused.
    """
    now_ms = time.time_ns() // 1_000_000

    def removed(table: Table) -> int | PySparkException | None:
        if not is_elsewhere(warehouse):
            return vacuum(warehouse, table, days).files
        try:
            return remove_old_files(warehouse, table, spark_days(table, days), now_ms)
        except PySparkException as error:
            return error

    tables = existing_tables(warehouse, (*TABLES, STAGING))
    with ThreadPoolExecutor(WRITERS) as pool:
        found = dict(zip(tables, pool.map(removed, tables), strict=True))
    refused = {table: one_line(done) for table, done in found.items() if isinstance(done, PySparkException)}
    return {table: done for table, done in found.items() if not isinstance(done, PySparkException)}, refused


def _with_unfinished(cache: Path) -> Iterator[Path]:
    """Yield a cache, others whose names begin like its own, and what a killed process left of them."""
    return cache.parent.glob(f"{cache.stem}*")


def _empty_staging(spark: SparkSession, warehouse: Path, found: dict[Table, Changed]) -> None:
    """Delete all rows of the staging table, because any may have the name, and no job needs them later."""
    before = snapshot(warehouse, STAGING).version
    if rows := empty(spark, warehouse):
        deleted = rows + found.get(STAGING, Changed(version_before=before)).rows_deleted
        found[STAGING] = Changed(
            version_before=before, version=snapshot(warehouse, STAGING).version, rows_deleted=deleted
        )


def _erase(spark: SparkSession, warehouse: Path, table: Table, name: Name, found: dict[Table, Changed]) -> bool:
    """Erase the name from one table and add the change to `found`; return whether any row changed."""
    source = name.source(spark)
    if is_elsewhere(warehouse):
        is_possible = (
            not read(spark, warehouse, table).join(F.broadcast(source), is_named(table, name), "left_semi").isEmpty()
        )
    else:
        is_possible = may_contain(warehouse, table, name)
    if not is_possible:
        return False

    erased = erased_columns(table, name)

    def merge(stored: str) -> None:
        merge = source.mergeInto(stored, is_named(table, name)).whenMatched(is_about(table, name)).delete()
        if erased:
            merge = merge.whenMatched().update({column: value for column, (_, value) in erased.items()})
        merge.merge()

    before = snapshot(warehouse, table).version
    commit_by_spark(warehouse, table, merge)
    after, commits = commits_after(warehouse, table, before)
    merges = (commit["operationMetrics"] for commit in commits if commit["operation"] == "MERGE")
    metrics: Mapping[str, str] = next(merges, {})
    deleted, changed = (int(metrics.get(f"numTargetRows{kind}", 0)) for kind in ("Deleted", "Updated"))
    if deleted or changed:
        so_far = found.get(table, Changed(version_before=before))
        found[table] = Changed(
            version_before=so_far.version_before,
            version=after,
            rows_deleted=so_far.rows_deleted + deleted,
            rows_changed=so_far.rows_changed + changed,
        )
    return bool(deleted or changed)
