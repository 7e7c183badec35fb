"""What provides the Spark session of a process: Databricks, Spark Connect, spark-submit, or this process itself."""

from __future__ import annotations

import os
import sys
from enum import StrEnum


class Provider(StrEnum):
    """The provider of a session that Regroup only uses. The provider sets its master, executors and memory."""

    DATABRICKS = "the Databricks runtime"
    CONNECT = "Spark Connect"
    SUBMIT = "spark-submit"
    CONTEXT = "a Spark context of this process"


def provider() -> Provider | None:
    """Return what provides a session to this process; None if Regroup has to start a local one.

    `DATABRICKS_RUNTIME_VERSION` is set by Databricks, `SPARK_REMOTE` by the user of a Spark Connect server,
    `SPARK_CONNECT_MODE_ENABLED` by PySpark once it uses one, and `PYSPARK_GATEWAY_PORT` by spark-submit. A program that
    calls Regroup may have started Spark on a cluster itself.
    """
    if "DATABRICKS_RUNTIME_VERSION" in os.environ:
        return Provider.DATABRICKS
    if "SPARK_REMOTE" in os.environ or "SPARK_CONNECT_MODE_ENABLED" in os.environ:
        return Provider.CONNECT
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return Provider.SUBMIT
    # Not imported, because commands without Spark ask too.
    known = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    context = known and known._active_spark_context  # noqa: SLF001 - does not start one
    return Provider.CONTEXT if context is not None and not context.master.startswith("local") else None
