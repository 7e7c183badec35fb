"""Updates `cluster_patterns`: all rows of the last seven days are made again, and only differences are written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

from pyspark.sql import SparkSession

from jobs.gold.cluster_facts import cluster_facts, clusters
from jobs.spark.spark import for_few_rows
from jobs.tables.create_tables import create_tables
from jobs.tables.replace import replace_rows
from jobs.tables.silver_rows import rows
from pipelines.arrow_types import stored
from pipelines.gold.patterns.cluster_patterns import cluster_patterns
from schemas.gold import CLUSTER_PATTERNS
from schemas.rows import ClusterPatternRow


def update_cluster_patterns(spark: SparkSession | None, warehouse: Path) -> None:
    """Update the table. If nothing changed, nothing is written. The rows depend only on bronze and silver."""
    create_tables(spark, warehouse, (CLUSTER_PATTERNS,))
    store_cluster_patterns(spark, warehouse, scan_clusters(warehouse))


def scan_clusters(warehouse: Path) -> list[ClusterPatternRow]:
    """Return the rows of all clusters, without Spark."""
    found = (cluster_facts(warehouse, cluster) for cluster in clusters(warehouse))
    return [row for facts in found if facts is not None for row in cluster_patterns(facts)]


def store_cluster_patterns(spark: SparkSession | None, warehouse: Path, found: Sequence[ClusterPatternRow]) -> None:
    """Make these the rows of the table."""
    few = spark and for_few_rows(spark)
    old = cast("list[ClusterPatternRow]", rows(warehouse, CLUSTER_PATTERNS, CLUSTER_PATTERNS.names))
    replace_rows(few, warehouse, CLUSTER_PATTERNS, stored(old, CLUSTER_PATTERNS), stored(found, CLUSTER_PATTERNS))
