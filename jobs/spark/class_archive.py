"""Creates an archive of the loaded classes of Spark and Delta, which later JVMs map into memory (Java's AppCDS).

Loading, verifying and linking these classes takes a third of the processor time of a start. The archive belongs to one
environment: a JVM ignores it if Java, a jar or the path differs, and then starts as usual.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from jobs.config.errors import one_line
from jobs.setup.class_archive_file import SILENT, create
from jobs.spark.session_provider import provider

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LONGEST_S = 300


def make() -> None:
    """Create the archive for local sessions, unless it exists, from a JVM that reads, writes and follows a table.

    Raises:
        OSError: the environment cannot be written.
    """
    if provider() is not None:
        return
    notice = "creating an archive of Spark's classes, once (a minute); later starts take a third less"
    create("delta", notice, _exercised)


def _exercised(part: Path, folder: Path) -> None:
    from jobs.spark.spark import session  # noqa: PLC0415 - this import takes longer than finding an existing archive

    # Only the quick compiler, because the default one would take twice as long.
    dump = (f"-XX:ArchiveClassesAtExit={part}", "-XX:TieredStopAtLevel=1", *SILENT)
    os.environ["SPARK_SUBMIT_OPTS"] = " ".join(dump)
    spark = session("regroup classes", driver_memory="1g")
    gateway = spark.sparkContext._gateway  # noqa: SLF001 - the only way to the process
    assert gateway is not None
    _exercise(spark, folder)
    spark.stop()
    with suppress(Exception):
        # The exit ends the connection before a response.
        gateway.jvm.java.lang.System.exit(0)
    gateway.proc.wait(LONGEST_S)


def _exercise(spark: SparkSession, folder: Path) -> None:
    import pyarrow as pa  # noqa: PLC0415 - this import takes longer than finding an existing archive

    table, rows = str(folder / "table"), pa.table({"key": list(range(10)), "text": ["a"] * 10})
    frame = spark.createDataFrame(rows)
    frame.mapInArrow(lambda batches: batches, frame.schema).write.format("delta").save(table)
    read = spark.read.format("delta").load(table)
    read.join(frame, "key").groupBy("key").count().toArrow()

    def collected(batch: DataFrame, _: int) -> None:
        batch.write.format("delta").mode("append").option("txnAppId", "a").option("txnVersion", 1).save(table)

    follow = spark.readStream.format("delta").load(table).writeStream.foreachBatch(collected)
    writer = follow.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
    writer.start().awaitTermination()


if __name__ == "__main__":
    try:
        make()
    except Exception as error:  # noqa: BLE001 - the archive is optional
        sys.exit(f"regroup: no archive of Spark's classes, so each start takes longer: {one_line(error)}")
