"""A Python data source whose rows are bronze rows: one struct column per table, of which each row fills one."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader

from pipelines.arrow_types import row_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from schemas.tables import Table


def read_stream(spark: SparkSession, reader: DataSourceStreamReader, tables: Sequence[Table]) -> DataFrame:
    """What `reader` yields with `union`, as a stream.

    The reader travels pickled, and may hold secrets: as options of a data source Spark would print them.
    """
    name = f"regroup-{uuid.uuid4().hex}"
    ddl = ", ".join(f"{table.name} STRUCT<{_fields(table)}>" for table in tables)
    parts = {"stream_reader": reader, "ddl": ddl, "name": classmethod(lambda _: name)}
    spark.dataSource.register(type("Source", (_Source,), parts))
    return spark.readStream.format(name).load()


def union(rows: Mapping[str, pa.Array], tables: Sequence[Table]) -> Iterator[pa.RecordBatch]:
    """Rows by table name, as batches of all tables' columns."""
    types = [(table.name, row_type(table)) for table in tables]
    for name, array in rows.items():
        if len(array):
            columns = [array if column == name else pa.nulls(len(array), kind) for column, kind in types]
            yield pa.RecordBatch.from_arrays(columns, schema=pa.schema(types))


def _fields(table: Table) -> str:
    return ", ".join(f"`{c.name}`: {c.type}" for c in table.columns)


class _Source(DataSource):
    stream_reader: DataSourceStreamReader
    ddl: str

    def schema(self) -> str:
        return self.ddl

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802 - Spark's interface
        return self.stream_reader
