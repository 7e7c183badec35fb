"""The Spark session: tuned for one small machine, or the one Databricks provides."""

from __future__ import annotations

import os
import sys
import tempfile
from functools import cache
from pathlib import Path

from pyspark.sql import SparkSession

from jobs.setup.jars import jars
from jobs.setup.java import java_home
from jobs.spark import class_archive_file

LOGGING = Path(__file__).with_name("log4j2.properties")

HEAP = "-XX:+UseSerialGC -XX:MinHeapFreeRatio=20 -XX:MaxHeapFreeRatio=50 -XX:-ShrinkHeapInSteps"
"""One that shrinks again after a long history was read."""

ARENAS = "2"
"""Of GNU's C library, which by default gives a JVM of a hundred threads sixteen, and each keeps what was free once."""

FEW_ROWS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # What is merged is a list of the driver's own, the same however often it is read, and small enough for one file.
    "spark.databricks.delta.merge.materializeSource": "none",
    "spark.databricks.delta.merge.repartitionBeforeWrite.enabled": "false",
}


def session(app_name: str, *, cores: int = 2, spare: int = 0, driver_memory: str = "2g") -> SparkSession:
    """The session to use: Databricks' own where its runtime is found, else a local one with Delta on `cores` threads.

    Spark gives its threads to whatever asks first: with `spare` more of them, a long task leaves enough for others.
    Timestamps are UTC in both. The local one binds to loopback, logs errors only and starts its Python workers with
    this very interpreter, so an environment that was not activated works.
    """
    builder = SparkSession.builder.appName(app_name).config("spark.sql.session.timeZone", "UTC")
    if "DATABRICKS_RUNTIME_VERSION" in os.environ:
        return builder.getOrCreate()
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["JAVA_HOME"] = str(java_home())
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("MALLOC_ARENA_MAX", ARENAS)
    for key, value in _local(cores, driver_memory).items():
        builder = builder.config(key, value)
    spark = builder.master(f"local[{cores + spare}]").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


@cache
def for_few_rows(spark: SparkSession, *, tasks: int | None = None) -> SparkSession:
    """A session over the same context for plans over a few thousand rows; Databricks' own is used as it is.

    With `tasks` no more of them shuffle at once, which leaves the other cores to others.

    Of such a plan, adapting and compiling it take longer than running it: without them a MERGE takes half the time.
    """
    if "DATABRICKS_RUNTIME_VERSION" in os.environ:
        return spark
    few = spark.newSession()
    few.conf.set("spark.sql.session.timeZone", "UTC")
    for key, value in (FEW_ROWS if tasks is None else FEW_ROWS | {"spark.sql.shuffle.partitions": str(tasks)}).items():
        few.conf.set(key, value)
    return few


def _local(cores: int, driver_memory: str) -> dict[str, str]:
    return {
        "spark.python.daemon.module": "jobs.spark.worker_daemon",
        # Not `spark.jars`, whose classes no archive has.
        "spark.driver.extraClassPath": os.pathsep.join(str(path) for path in jars("delta")),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.driver.memory": driver_memory,
        "spark.driver.extraJavaOptions": " ".join(
            (f"-Dlog4j2.configurationFile={LOGGING.as_uri()}", HEAP, *class_archive_file.options())
        ),
        # Only a whole collection shrinks the heap and unloads classes, and small batches would never need one.
        "spark.cleaner.periodicGC.interval": "5min",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.default.parallelism": str(cores),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.parquet.compression.codec": "zstd",
        # Nothing is kept there; by default it is made in whatever folder a job was started.
        "spark.sql.warehouse.dir": str(Path(tempfile.gettempdir()) / "spark-warehouse"),
        # The default, INT96, keeps no statistics: readers could not skip by time.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # Unset, each Delta commit runs 50 tasks to rebuild the table's state: 5 s instead of 0.8 s here.
        "spark.databricks.delta.snapshotPartitions": "1",
    }
