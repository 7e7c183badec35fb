"""The name that `regroup erase` removes, and the conditions for rows with it and their new values, in Spark.

Names never appear in a condition as literals, because Delta's log would keep them: they are columns of a frame.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from jobs.config.errors import UserError
from schemas.bronze import QUARANTINE
from schemas.gold import BY_GROUP, DIFFERENCES, POD_CHANGES
from schemas.tables import Table

NOT_BEFORE, NOT_AFTER = r"(?<![A-Za-z0-9_-]|[A-Za-z0-9]\.)", r"(?![A-Za-z0-9_-]|\.[A-Za-z0-9])"
"""Regular expressions for the two ends of a name: it must not touch a letter, digit, `_`, `-` or a dot inside a word.
"""

SIDES = ("before", "after")

FIELDS = {DIFFERENCES: ("value",), BY_GROUP: ("group_id",), POD_CHANGES: ("text", "detail", "instance")}
"""For columns of lists of structs: the fields that may contain a name."""


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


def is_named(table: Table, name: Name) -> Column:
    """Return the condition for rows to delete or to change. Its columns are those of the table and of `Name.source`."""
    found = reduce(or_, [is_about(table, name), *(contains for contains, _ in erased_columns(table, name).values())])
    return found & (F.col("cluster") == F.col("name_cluster")) if "cluster" in table.names else found


def is_about(table: Table, name: Name) -> Column:
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


def erased_columns(table: Table, name: Name) -> dict[str, tuple[Column, Column]]:
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
                contains = reduce(or_, (is_among(_fields(old, field)) for field in FIELDS[kind]))
                found[column.name] = (contains, _fields_instead(old, FIELDS[kind], instead))
    no = F.lit(False)  # noqa: FBT003 - a literal
    return {column: (F.coalesce(contains, no), value) for column, (contains, value) in found.items()}


def _fields(structs: Column, field: str) -> Column:
    return F.transform(structs, lambda each: each[field])


def _fields_instead(structs: Column, fields: Sequence[str], instead: Callable[[Column], Column]) -> Column:
    def changed(each: Column) -> Column:
        return reduce(lambda struct, field: struct.withField(field, instead(each[field])), fields, each)

    return F.transform(structs, changed)


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
