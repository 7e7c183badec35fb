"""`regroup erase`: remove a group or a client host from every table and from the data files, and write a receipt.

Rows of the group are deleted. Other rows that contain the name (a log line about several groups, a list of groups, a
host) keep everything but the name: a random placeholder replaces it. Names never appear in a condition as literals,
because Delta's log would keep them.
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import json
import secrets
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

import deltalake
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from jobs.config.errors import UserError
from jobs.config.settings import Settings
from jobs.config.terminal import say
from jobs.gold.analyze_part import analysed_path
from jobs.gold.storms import memory_path
from jobs.maintain import existing_tables, vacuum
from jobs.processes.process_lock import acquire
from jobs.spark.spark import for_few_rows, session_of
from jobs.tables.delta_io import table_path
from jobs.tables.engine import connect, show
from jobs.tables.location import named_by_path
from jobs.tables.transactions import retry_commit
from schemas.bronze import QUARANTINE
from schemas.gold import BY_GROUP, DIFFERENCES
from schemas.tables import Table

NOT_BEFORE, NOT_AFTER = r"(?<![A-Za-z0-9_-]|[A-Za-z0-9]\.)", r"(?![A-Za-z0-9_-]|\.[A-Za-z0-9])"
"""Regular expressions for the two ends of a name: it must not touch a letter, digit, `_`, `-` or a dot inside a word.
"""

SIDES = ("before", "after")
PASSES = 4

FIELDS = {DIFFERENCES: "value", BY_GROUP: "group_id"}
"""For columns of lists of structs: the field that may contain a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """The changes to one table between two of its versions."""

    version_before: int
    version: int = 0
    rows_deleted: int = 0
    rows_changed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """The name to erase: a `group_id` or a client host of one cluster.

    `mark` is the random placeholder that replaces it, so the name cannot be recovered. It has as many bytes in UTF-8,
    so that raw records can still be decoded.
    """

    cluster: str
    text: str
    is_group: bool
    mark: str

    @classmethod
    def of(cls, cluster: str, *, group: str | None, host: str | None) -> Name:
        """Return the name with a new placeholder. A host is matched with and without the leading slash that Kafka
        stores.

        Raises:
            UserError: the name is empty.
        """
        text = group if group is not None else (host or "").removeprefix("/")
        if not text:
            raise UserError("Nothing to erase: give a group's id with --group, or a host with --host.")
        size = len(text.encode())
        return cls(
            cluster=cluster, text=text, is_group=group is not None, mark="~" + secrets.token_hex(size)[: size - 1]
        )

    def source(self, spark: SparkSession) -> DataFrame:
        """Return one row with the name, the placeholder and the patterns, for use in conditions."""
        name_columns = {"cluster": self.cluster, "text": self.text, "mark": self.mark, "pattern": self._pattern()}
        raw = {f"raw_{i}_{side}": of for i, pair in enumerate(self.raw()) for side, of in zip(SIDES, pair, strict=True)}
        columns = [*(f"name_{key} string" for key in name_columns), *(f"{key} binary" for key in raw)]
        return spark.createDataFrame([(*name_columns.values(), *raw.values())], ", ".join(columns))

    def forms(self) -> set[str]:
        """Return the spellings of the name in text: plain, and escaped in JSON."""
        return {self.text, *(json.dumps(self.text, ensure_ascii=is_ascii)[1:-1] for is_ascii in (True, False))}

    def _pattern(self) -> str:
        quoted = "|".join("\\Q" + form.replace("\\E", "\\E\\\\E\\Q") + "\\E" for form in sorted(self.forms()))
        return f"{NOT_BEFORE}(?:{quoted}){NOT_AFTER}"

    def raw(self) -> list[tuple[bytes, bytes]]:
        """Return pairs of bytes to find and their replacement: the name in a record after its length, and the
        placeholder.
        """
        pairs = [(form, form.replace(self.text, self.mark)) for form in (self.text, f"/{self.text}")]
        encoded = [(before.encode(), after.encode()) for before, after in pairs]
        lengths = (lambda size: size.to_bytes(2, "big"), _varint)
        return [(length(len(b)) + b, length(len(b)) + a) for b, a in encoded for length in lengths]


def _varint(size: int) -> bytes:
    """Return a size in Kafka's compact encoding: size + 1, seven bits per byte."""
    left, out = size + 1, b""
    while left > 0x7F:
        out, left = out + bytes([left & 0x7F | 0x80]), left >> 7
    return out + bytes([left])


def run(settings: Settings, args: argparse.Namespace) -> int:
    """Erase the name, then print and store the receipt.

    Raises:
        UserError: the warehouse has no tables, `maintain` is running, or other jobs still write the name.
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
    path.parent.mkdir(exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")
    for line in text.splitlines():
        say(line)
    say(f"Receipt: {path}")
    if receipt["still_named_in"]:
        raise UserError(
            f"Other jobs still write the name ({', '.join(receipt['still_named_in'])}): stop them and erase again."
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
        if not changed:
            break
    analysed = analysed_path(warehouse).parent.glob("analysed*.json")
    caches = [path for path in (memory_path(warehouse), *analysed) if path.exists()]
    for path in caches:
        # These files are caches that contain group names.
        path.unlink()
    # Of every table, because an earlier run may have left files with the name, or was killed before it removed them.
    removed = {table: vacuum(warehouse, table, vacuum_days).files for table in existing_tables(warehouse)}
    for table, files in removed.items():
        if files and table not in found:
            version = deltalake.DeltaTable(table_path(warehouse, table)).version()
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
        "tables": [
            {"table": table.name, **asdict(done), "old_files_removed": removed[table]} for table, done in found.items()
        ],
    }


def _erase(spark: SparkSession, warehouse: Path, table: Table, name: Name, found: dict[Table, Changed]) -> bool:
    """Erase the name from one table and add the change to `found`; return whether any row changed."""
    if not _may_contain(warehouse, table, name):
        return False
    path, source = table_path(warehouse, table), name.source(spark)
    is_about, erased = _is_about(table, name), _erased_columns(table, name)
    is_named = reduce(or_, [is_about, *(contains for contains, _ in erased.values())])
    if "cluster" in table.names:
        is_named &= F.col("cluster") == F.col("name_cluster")

    def merge() -> None:
        merge = source.mergeInto(named_by_path(path), is_named).whenMatched(is_about).delete()
        if erased:
            merge = merge.whenMatched().update({column: value for column, (_, value) in erased.items()})
        merge.merge()

    before = deltalake.DeltaTable(path).version()
    retry_commit(path, merge, alone=True)
    after = deltalake.DeltaTable(path)
    ours = (commit for commit in after.history(after.version() - before) if commit["operation"] == "MERGE")
    metrics: dict[str, str] = next((commit["operationMetrics"] for commit in ours), {})
    deleted, changed = (int(metrics.get(f"numTargetRows{kind}", 0)) for kind in ("Deleted", "Updated"))
    if deleted or changed:
        so_far = found.get(table, Changed(version_before=before))
        found[table] = Changed(
            version_before=so_far.version_before,
            version=after.version(),
            rows_deleted=so_far.rows_deleted + deleted,
            rows_changed=so_far.rows_changed + changed,
        )
    return bool(deleted or changed)


def _may_contain(warehouse: Path, table: Table, name: Name) -> bool:
    """Return whether any column contains the name, also as part of another. This check spares most tables Spark's
    merge.
    """
    forms = sorted(form for text in name.forms() for form in (text, json.dumps(text)[1:-1]))
    conditions = [_contains(column.name, column.type, forms) for column in table.columns]
    with connect() as engine:
        show(engine, "stored", warehouse, table)
        where = " OR ".join(condition for condition in conditions if condition)
        query = f"SELECT count(*) FROM (SELECT 1 FROM stored WHERE {where} LIMIT 1)"  # noqa: S608 - quoted
        return bool(engine.sql(query).fetchall()[0][0])


def _contains(column: str, kind: str, forms: Iterable[str]) -> str:
    """Return a condition in DuckDB's SQL, or an empty string if the column contains no text."""
    match kind:
        case "STRING":
            text, words = f'"{column}"', [_quoted(form) for form in forms]
        case "BINARY":
            text, words = f'hex("{column}")', [f"'{form.encode().hex().upper()}'" for form in forms]
        case _ if "STRING" in kind.upper():
            text, words = f'CAST(to_json("{column}") AS VARCHAR)', [_quoted(form) for form in forms]
        case _:
            return ""
    return " OR ".join(f"contains({text}, {word})" for word in words)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _is_about(table: Table, name: Name) -> Column:
    """Return the condition for rows to delete."""
    whole = [F.lit(False)]  # noqa: FBT003 - a literal
    if name.is_group:
        whole += [F.col(column) == F.col("name_text") for column in {"group_id", "subject"} & set(table.names)]
        if "subject" in table.names:
            # `replay` numbers observations in `subject`, so that no two have the same key.
            whole.append(F.regexp_replace("subject", r"#\d+$", "") == F.col("name_text"))
    if table is QUARANTINE:
        # Records that could not be decoded cannot be edited either, so the whole row is deleted.
        whole += [_in_bytes(F.col(column), name) for column in ("raw_key", "raw_value")]
        whole += [F.rlike(F.col(column).cast("string"), F.col("name_pattern")) for column in ("raw_key", "raw_value")]
    return F.coalesce(reduce(or_, (F.coalesce(each, F.lit(False)) for each in whole)), F.lit(False))  # noqa: FBT003


def _erased_columns(table: Table, name: Name) -> dict[str, tuple[Column, Column]]:
    """Return for each column the condition that it contains the name, and its new value."""
    pattern, mark = F.col("name_pattern"), F.col("name_mark")

    def instead(text: Column) -> Column:
        return F.regexp_replace(text, pattern, mark)

    def is_among(texts: Column) -> Column:
        return F.exists(texts, lambda text: F.coalesce(F.rlike(text, pattern), F.lit(False)))  # noqa: FBT003

    found: dict[str, tuple[Column, Column]] = {}
    for column in table.columns:
        old = F.col(column.name)
        match column.type:
            case "STRING" if column.name != "cluster":
                found[column.name] = (F.rlike(old, pattern), instead(old))
            case "ARRAY<STRING>":
                found[column.name] = (is_among(old), F.transform(old, instead))
            case "MAP<STRING,STRING>":
                found[column.name] = (
                    is_among(F.map_values(old)),
                    F.transform_values(old, lambda _, text: instead(text)),
                )
            case "BINARY":
                found[column.name] = (_in_bytes(old, name), _bytes_instead(old, name))
            case kind if kind in FIELDS:
                found[column.name] = (is_among(_fields(old, FIELDS[kind])), _fields_instead(old, FIELDS[kind], instead))
    no = F.lit(False)  # noqa: FBT003 - a literal
    return {column: (F.coalesce(contains, no), value) for column, (contains, value) in found.items()}


def _fields(structs: Column, field: str) -> Column:
    return F.transform(structs, lambda each: each[field])


def _fields_instead(structs: Column, field: str, instead: Callable[[Column], Column]) -> Column:
    return F.transform(structs, lambda each: each.withField(field, instead(each[field])))


def _in_bytes(raw: Column, name: Name) -> Column:
    return reduce(or_, (F.contains(raw, F.col(f"raw_{i}_before")) for i in range(len(name.raw()))))


def _bytes_instead(raw: Column, name: Name) -> Column:
    r"""Replace the name in bytes. The bytes are hex text: \G and the lazy pairs keep matches on whole bytes."""
    text = F.hex(raw)
    for i in range(len(name.raw())):
        before, after = (F.hex(F.col(f"raw_{i}_{side}")) for side in SIDES)
        text = F.regexp_replace(
            text, F.concat(F.lit(r"\G(?<pairs>(?:..)*?)"), before), F.concat(F.lit("${pairs}"), after)
        )
    return F.unhex(text)
