"""`regroup erase`: a group, or a client's host, out of every table and out of the files behind them, with a receipt.

Rows of the group go. Where other rows name it (a line about several groups, a list of groups) or name the host, a mark
without meaning takes the name's place. Names are never part of a condition: Delta's log would keep them.
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
from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from jobs.config.errors import UserError
from jobs.config.settings import Settings
from jobs.config.terminal import say
from jobs.gold.analyze_part import analysed_path
from jobs.gold.storms import memory_path
from jobs.maintain import existing_tables, vacuum
from jobs.processes.process_lock import acquire
from jobs.spark.spark import for_few_rows, session
from jobs.tables.delta_io import table_path
from jobs.tables.engine import connect, show
from jobs.tables.transactions import retry_commit
from schemas.bronze import QUARANTINE
from schemas.gold import BY_GROUP, DIFFERENCES
from schemas.tables import Table

NOT_BEFORE, NOT_AFTER = r"(?<![A-Za-z0-9_-]|[A-Za-z0-9]\.)", r"(?![A-Za-z0-9_-]|\.[A-Za-z0-9])"
"""A name ends where neither a letter, a digit, a dash nor a dot within a word follows."""

SIDES = ("before", "after")
PASSES = 4

FIELDS = {DIFFERENCES: "value", BY_GROUP: "group_id"}
"""Of columns of lists of structs, the field that may hold a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """What was done to a table, between two of its versions."""

    version_before: int
    version: int = 0
    rows_deleted: int = 0
    rows_changed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """What is erased: a `group_id` or a client's host, of one cluster. `mark` takes its place: as many bytes of UTF-8,
    so that raw records can still be read, and made at random, so that nobody can come back from it.
    """

    cluster: str
    text: str
    is_group: bool
    mark: str

    @classmethod
    def of(cls, cluster: str, *, group: str | None, host: str | None) -> Name:
        """A host goes with and without the slash in front of it that Kafka stores.

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
        """One row that conditions may refer to."""
        told = {"cluster": self.cluster, "text": self.text, "mark": self.mark, "pattern": self._pattern()}
        raw = {f"raw_{i}_{side}": of for i, pair in enumerate(self.raw()) for side, of in zip(SIDES, pair, strict=True)}
        columns = [*(f"name_{key} string" for key in told), *(f"{key} binary" for key in raw)]
        return spark.createDataFrame([(*told.values(), *raw.values())], ", ".join(columns))

    def forms(self) -> set[str]:
        """How text holds the name: as it is, or within JSON."""
        return {self.text, *(json.dumps(self.text, ensure_ascii=is_ascii)[1:-1] for is_ascii in (True, False))}

    def _pattern(self) -> str:
        quoted = "|".join("\\Q" + form.replace("\\E", "\\E\\\\E\\Q") + "\\E" for form in sorted(self.forms()))
        return f"{NOT_BEFORE}(?:{quoted}){NOT_AFTER}"

    def raw(self) -> list[tuple[bytes, bytes]]:
        """How records hold the name, behind its length, and what takes the place of that."""
        pairs = [(form, form.replace(self.text, self.mark)) for form in (self.text, f"/{self.text}")]
        encoded = [(before.encode(), after.encode()) for before, after in pairs]
        lengths = (lambda size: size.to_bytes(2, "big"), _varint)
        return [(length(len(b)) + b, length(len(b)) + a) for b, a in encoded for length in lengths]


def _varint(size: int) -> bytes:
    """Kafka's compact length: one more than the size, seven bits a byte."""
    left, out = size + 1, b""
    while left > 0x7F:
        out, left = out + bytes([left & 0x7F | 0x80]), left >> 7
    return out + bytes([left])


def run(settings: Settings, args: argparse.Namespace) -> int:
    """Erase, print the receipt and where it is kept.

    Raises:
        UserError: there is nothing to erase from, `maintain` is at work, or others go on writing the name.
    """
    name = Name.of(args.cluster, group=args.group, host=args.host)
    if not existing_tables(settings.warehouse):
        raise UserError(f"The warehouse {settings.warehouse} has no tables: name another with --warehouse.")
    spark = session("regroup erase", cores=settings.cores, driver_memory=settings.driver_memory)
    # What `maintain` has read it would write again.
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
            f"Other jobs go on writing the name ({', '.join(receipt['still_named_in'])}): stop them and erase again."
        )
    return 0


def erase(spark: SparkSession, warehouse: Path, name: Name, *, vacuum_days: float) -> dict[str, Any]:
    """Erase the name from every table that is there, bronze first; returns the receipt, which does not hold it."""
    # Conditions this long take longer to compile than to evaluate.
    spark = for_few_rows(spark)
    found: dict[Table, Changed] = {}
    changed: list[Table] = []
    for _ in range(PASSES):
        # Looked at again: a batch that was under way may have written rows of before.
        changed = [table for table in existing_tables(warehouse) if _erase(spark, warehouse, table, name, found)]
        if not changed:
            break
    analysed = analysed_path(warehouse).parent.glob("analysed*.json")
    caches = [path for path in (memory_path(warehouse), *analysed) if path.exists()]
    for path in caches:
        # They only save work, and name groups.
        path.unlink()
    removed = {table: vacuum(warehouse, table, vacuum_days).files for table in found}
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
    """Erase from one table, and add to what was `found`; whether any row was changed."""
    if not _may_hold(warehouse, table, name):
        return False
    path, source = table_path(warehouse, table), name.source(spark)
    is_about, told = _is_about(table, name), _erased_columns(table, name)
    is_named = reduce(or_, [is_about, *(holds for holds, _ in told.values())])
    if "cluster" in table.names:
        is_named &= F.col("old.cluster") == F.col("name_cluster")

    def merge() -> None:
        target = DeltaTable.forPath(spark, path).alias("old")
        merge = target.merge(source, is_named).whenMatchedDelete(is_about)
        if told:
            merge = merge.whenMatchedUpdate(set={f"`{column}`": value for column, (_, value) in told.items()})
        merge.execute()

    before = deltalake.DeltaTable(path).version()
    retry_commit(path, merge, by_spark=True)
    after = deltalake.DeltaTable(path)
    ours = (commit for commit in after.history(after.version() - before) if commit["operation"] == "MERGE")
    metrics: dict[str, str] = next((commit["operationMetrics"] for commit in ours), {})
    deleted, changed = (int(metrics.get(f"numTargetRows{what}", 0)) for what in ("Deleted", "Updated"))
    if deleted or changed:
        so_far = found.get(table, Changed(version_before=before))
        found[table] = Changed(
            version_before=so_far.version_before,
            version=after.version(),
            rows_deleted=so_far.rows_deleted + deleted,
            rows_changed=so_far.rows_changed + changed,
        )
    return bool(deleted or changed)


def _may_hold(warehouse: Path, table: Table, name: Name) -> bool:
    """Whether the name is in any column, be it as part of another. Most tables do not hold it, and Spark is slow."""
    forms = sorted(form for text in name.forms() for form in (text, json.dumps(text)[1:-1]))
    conditions = [_contains(column.name, column.type, forms) for column in table.columns]
    with connect() as engine:
        show(engine, "stored", warehouse, table)
        where = " OR ".join(condition for condition in conditions if condition)
        query = f"SELECT count(*) FROM (SELECT 1 FROM stored WHERE {where} LIMIT 1)"  # noqa: S608 - quoted
        return bool(engine.sql(query).fetchall()[0][0])


def _contains(column: str, kind: str, forms: Iterable[str]) -> str:
    """A condition in DuckDB's SQL; empty where the column holds no text."""
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
    """Rows that go."""
    whole = [F.lit(False)]  # noqa: FBT003 - a literal
    if name.is_group:
        whole += [F.col(f"old.{column}") == F.col("name_text") for column in {"group_id", "subject"} & set(table.names)]
        if "subject" in table.names:
            # A capture's observations are numbered, so that no two are one.
            whole.append(F.regexp_replace("old.subject", r"#\d+$", "") == F.col("name_text"))
    if table is QUARANTINE:
        # What could not be read cannot be changed either: it goes as a whole.
        whole += [_in_bytes(F.col(f"old.{column}"), name) for column in ("raw_key", "raw_value")]
        whole += [
            F.rlike(F.col(f"old.{column}").cast("string"), F.col("name_pattern")) for column in ("raw_key", "raw_value")
        ]
    return F.coalesce(reduce(or_, (F.coalesce(each, F.lit(False)) for each in whole)), F.lit(False))  # noqa: FBT003


def _erased_columns(table: Table, name: Name) -> dict[str, tuple[Column, Column]]:
    """By column: whether it names what is erased, and what it says instead."""
    pattern, mark = F.col("name_pattern"), F.col("name_mark")

    def instead(text: Column) -> Column:
        return F.regexp_replace(text, pattern, mark)

    def is_among(texts: Column) -> Column:
        return F.exists(texts, lambda text: F.coalesce(F.rlike(text, pattern), F.lit(False)))  # noqa: FBT003

    found: dict[str, tuple[Column, Column]] = {}
    for column in table.columns:
        old = F.col(f"old.{column.name}")
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
    return {column: (F.coalesce(holds, no), value) for column, (holds, value) in found.items()}


def _fields(structs: Column, field: str) -> Column:
    return F.transform(structs, lambda each: each[field])


def _fields_instead(structs: Column, field: str, instead: Callable[[Column], Column]) -> Column:
    return F.transform(structs, lambda each: each.withField(field, instead(each[field])))


def _in_bytes(raw: Column, name: Name) -> Column:
    return reduce(or_, (F.contains(raw, F.col(f"raw_{i}_before")) for i in range(len(name.raw()))))


def _bytes_instead(raw: Column, name: Name) -> Column:
    r"""Bytes as text of two digits each: \G and the lazy pairs keep matches on whole bytes."""
    text = F.hex(raw)
    for i in range(len(name.raw())):
        before, after = (F.hex(F.col(f"raw_{i}_{side}")) for side in SIDES)
        text = F.regexp_replace(
            text, F.concat(F.lit(r"\G(?<pairs>(?:..)*?)"), before), F.concat(F.lit("${pairs}"), after)
        )
    return F.unhex(text)
