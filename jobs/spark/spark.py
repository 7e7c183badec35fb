"""The Spark session: the one that the surroundings provide, or else a local one for a small machine."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, is_remote

from dashboards.lake.allocators import settle_allocators
from jobs.config.settings import Settings
from jobs.config.terminal import say
from jobs.processes import python_launcher, template
from jobs.setup import class_archive_file
from jobs.setup.jars import jars
from jobs.setup.java import java_home
from jobs.spark import s3
from jobs.spark.jvm_failure import leave_out_broken_connections
from jobs.spark.jvm_output import filtered_stderr
from jobs.spark.session_provider import Provider, provider
from jobs.tables.location import location
from jobs.tables.tables import Tables, tables_at

PACKAGES = Path(__file__).absolute().parents[2]
"""The folder or archive with Regroup's packages."""

LOGGING = Path(__file__).with_name("log4j2.properties")
WITHOUT_ARCHIVE = Path(__file__).with_name("python_without_archive.sh")

HEAP = (
    # The heap never shrinks below its initial size, by default a sixty-fourth of the machine's memory.
    "-XX:+UseSerialGC -Xms160m -XX:MinHeapFreeRatio=30 -XX:MaxHeapFreeRatio=40 -XX:-ShrinkHeapInSteps -XX:NewRatio=3",
    # Spark's classes take 160 MB. From 21 MB on, by default, each increase causes a full garbage collection.
    "-XX:MetaspaceSize=192m",
    # Not known to the first releases of Java 17.
    "-XX:+IgnoreUnrecognizedVMOptions -XX:TrimNativeHeapInterval=60000",
)
"""JVM options for a heap that shrinks again after a long history was read, and for a C library that returns free memory
once a minute.
"""

KEPT = "20"
"""Jobs, stages and queries that Spark keeps for its pages, which are off. By default it keeps a thousand of each."""

UTC = {"spark.sql.session.timeZone": "UTC"}
MICROS = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}
"""The default, INT96, has no statistics, so readers could not skip files by time."""

FEW_ROWS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # The source of a merge is a small list of the driver, which is the same at every read and fits into one file.
    "spark.databricks.delta.merge.materializeSource": "none",
    "spark.databricks.delta.merge.repartitionBeforeWrite.enabled": "false",
}


def session(
    app_name: str, *, cores: int = 2, spare: int = 0, driver_memory: str = "2g", with_s3: bool = False
) -> SparkSession:
    """Return the session that `session_provider.provider` finds, or else a local one with Delta on `cores` threads.

    `spare` adds threads, so that a long task leaves threads for others. Timestamps are UTC in all. A session that is
    provided keeps its master and resources, and must have Delta. The local session binds to loopback, logs only errors,
    and starts its Python workers with this interpreter, so the environment need not be activated. It reaches S3 if the
    first one of the process is made `with_s3`.
    """
    by = provider()
    # Serverless compute of Databricks refuses most options.
    options = UTC if by is Provider.DATABRICKS else UTC | MICROS
    builder = SparkSession.builder.appName(app_name)
    for key, value in options.items():
        builder = builder.config(key, value)
    if by is not None:
        return _provided(builder, options, by)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = _worker_python()
    os.environ["JAVA_HOME"] = str(java_home())
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # For a JVM that only makes the command of the next one.
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    # Of the JVM as well: with a hundred threads it would have sixteen arenas.
    settle_allocators()
    for key, value in (_local(cores, driver_memory) | (s3.options() if with_s3 else {})).items():
        builder = builder.config(key, value)
    with filtered_stderr():
        spark = builder.master(f"local[{cores + spare}]").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    leave_out_broken_connections(spark.sparkContext._accumulatorServer)  # noqa: SLF001 - the only way to it
    return spark


def _provided(builder: SparkSession.Builder, options: Mapping[str, str], by: Provider) -> SparkSession:
    if by is Provider.CONNECT:
        # Registers Delta's exceptions for conflicts, which `transactions` waits for, with the client.
        import_module("delta.connect.exceptions")
    if (active := SparkSession.getActiveSession()) is None:
        say(f"Spark's session comes from {by}.")
        spark = builder.getOrCreate()
        if by is Provider.SUBMIT:
            # Spark's process in the driver that plans the batches of a Python source looks for no submitted archive.
            spark.sparkContext.environment.setdefault("PYTHONPATH", str(PACKAGES))
        return spark
    # A builder would ask for the address of Spark Connect again.
    for key, value in options.items():
        active.conf.set(key, value)
    return active


def session_of(settings: Settings, command: str, *, spare: int = 0, others: Sequence[Path] = ()) -> SparkSession:
    """Return the session of a command, as `session` does, with the cores and the memory of its settings.

    It reaches the tables of the settings' warehouse and of these others.
    """
    with_s3 = any(s3.is_in_s3(location(each)) for each in (settings.warehouse, *others))
    memory = settings.driver_memory
    return session(f"regroup {command}", cores=settings.cores, spare=spare, driver_memory=memory, with_s3=with_s3)


def tables_of(settings: Settings, command: str, *, spare: int = 0) -> Tables:
    """Return the tables of the warehouse in the settings. Start the command's session if the warehouse needs it."""
    return tables_at(settings.warehouse, partial(session_of, settings, command, spare=spare))


@cache
def for_few_rows(spark: SparkSession, *, tasks: int | None = None) -> SparkSession:
    """Return a session of the same context for plans over a few thousand rows.

    On Databricks and with Spark Connect, return `spark`, because they have no further session of the same context.

    `tasks` limits the number of shuffle tasks, so that other work keeps the other cores. Adaptive execution and code
    generation are off, because they take longer than running such a plan: a MERGE takes half the time without them.
    """
    if is_remote() or provider() is Provider.DATABRICKS:
        return spark
    few = spark.newSession()
    options = UTC | MICROS | FEW_ROWS | ({} if tasks is None else {"spark.sql.shuffle.partitions": str(tasks)})
    for key, value in options.items():
        few.conf.set(key, value)
    return few


def tasks_at_once(spark: SparkSession) -> int:
    """Return the number of tasks that the session runs at the same time; its shuffle tasks if it does not say."""
    if is_remote():  # Spark Connect has no context.
        return int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    return int(spark.sparkContext.defaultParallelism)


@contextmanager
def persisted(frame: DataFrame) -> Iterator[DataFrame]:
    """Yield the frame with its rows kept for several reads. Serverless compute keeps none, and evaluates each read."""
    is_kept = _persists(frame)
    try:
        yield frame
    finally:
        if is_kept:
            frame.unpersist()


def _persists(frame: DataFrame) -> bool:
    try:
        frame.persist()
    except PySparkException as error:
        if "NOT_SUPPORTED_WITH_SERVERLESS" not in str(error):
            raise
        return False
    return True


def _worker_python() -> str:
    """Return the path of a script that runs this interpreter without Spark's own archive, or of one that first asks the
    template of this process for a fork; of the interpreter itself if scripts cannot be run.
    """
    os.environ["WORKER_PYTHON"] = sys.executable
    # Some archives of this package lose permissions, and some machines run no programs from the temporary folder.
    python = str(WITHOUT_ARCHIVE) if os.access(WITHOUT_ARCHIVE, os.X_OK) else sys.executable
    if (folder := template.folder()) is None:
        return python
    words = [sys.executable, "-I", "-S", python_launcher.__file__, python, template.address(folder)]
    script = folder / "python"
    script.write_text(f'#!/bin/sh\nexec {shlex.join(map(str, words))} "$@"\n', encoding="utf-8")
    script.chmod(0o700)
    return str(script) if os.access(script, os.X_OK) else python


def _local(cores: int, driver_memory: str) -> dict[str, str]:
    return {
        "spark.python.daemon.module": "jobs.spark.worker_daemon",
        # Not `spark.jars`, because a class archive does not contain classes from there.
        "spark.driver.extraClassPath": os.pathsep.join(str(path) for path in jars("delta")),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.driver.memory": driver_memory,
        "spark.driver.extraJavaOptions": " ".join(
            (f"-Dlog4j2.configurationFile={LOGGING.as_uri()}", *HEAP, *map(shlex.quote, class_archive_file.options()))
        ),
        # Only a full garbage collection shrinks the heap and unloads classes, and small batches never cause one.
        "spark.cleaner.periodicGC.interval": "5min",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.ui.retainedJobs": KEPT,
        "spark.ui.retainedStages": KEPT,
        "spark.ui.retainedTasks": KEPT,
        "spark.sql.ui.retainedExecutions": KEPT,
        "spark.sql.shuffle.partitions": str(cores),
        "spark.default.parallelism": str(cores),
        # VACUUM lists a table's files in so many tasks, by default 10,000: 60 s instead of 10 s for a few files.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(cores),
        # With it PySpark finds the line of Python behind every column, which is half of Python's time for a plan.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.parquet.compression.codec": "zstd",
        # Nothing is stored there, but Spark creates it, by default in the current folder.
        "spark.sql.warehouse.dir": str(Path(tempfile.gettempdir()) / "spark-warehouse"),
        # By default each Delta commit rebuilds the table's state with 50 tasks: 5 s instead of 0.8 s here.
        "spark.databricks.delta.snapshotPartitions": "1",
        # Without Hadoop's native library, the default, `FileContext`, starts a process of `readlink` for each file that
        # it renames or checks on a local disk: six for each file of a stream's progress. `FileSystem` starts none.
        "spark.sql.streaming.checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
        ),
        # Delta commits with `FileContext` and without checksum files. Checking for them would start twice as many.
        "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
    }
