"""A Python data source of Spark whose rows are bronze rows, in the columns of `jobs.tables.output`."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceStreamReader

from jobs.tables.output import ddl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from schemas.tables import Table


def read_stream(spark: SparkSession, reader: DataSourceStreamReader, tables: Sequence[Table]) -> DataFrame:
    """Return the rows of `reader` as a streaming frame, in the columns of `jobs.tables.output`.

    The reader is pickled, because it may contain secrets: Spark would print them as options of a data source.
    """
    name = f"regroup-{uuid.uuid4().hex}"
    parts = {"stream_reader": reader, "ddl": ddl(tables), "name": classmethod(lambda _: name)}
    spark.dataSource.register(type("Source", (_Source,), parts))
    return spark.readStream.format(name).load()


class _Source(DataSource):
    stream_reader: DataSourceStreamReader
    ddl: str

    def schema(self) -> str:
        return self.ddl

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802 - Spark's interface
        return self.stream_reader
