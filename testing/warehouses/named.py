"""Tables of recorded clusters under names, with the views over them, in the catalog of a Spark session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jobs.tables.catalog.views import create_views
from jobs.tables.location import bind
from testing.warehouses import recorded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class NamedWarehouse(NamedTuple):
    """A warehouse whose tables are in `schema`, and the folder that has the same tables."""

    warehouse: Path
    schema: str
    tables: Path


@contextmanager
def named(spark: SparkSession, folder: Path, schema: str) -> Iterator[NamedWarehouse]:
    """Yield the tables of `recorded` in this new schema, with the views."""
    found = NamedWarehouse(folder / "warehouse", f"spark_catalog.{schema}", folder / "tables")
    recorded.write(found.tables)
    spark.sql(f"CREATE SCHEMA {found.schema} LOCATION '{folder}/schema'")
    try:
        for log in found.tables.glob("*/_delta_log"):
            spark.sql(f"CREATE TABLE {found.schema}.{log.parent.name} USING delta LOCATION '{log.parent}'")
        bind(found.warehouse, found.schema)
        create_views(found.warehouse)
        yield found
    finally:
        spark.sql(f"DROP SCHEMA {found.schema} CASCADE")
