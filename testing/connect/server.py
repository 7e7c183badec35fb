"""A Spark Connect server with Delta on loopback, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pyspark

from jobs.processes.ports import free_ports
from jobs.setup.jars import jars
from jobs.setup.java import java_home
from testing.heap import HEAP
from testing.waiting import wait_until

SPARK = Path(pyspark.__file__).parent
LOGGING = Path(__file__).with_name("log4j2.properties")
OPTIONS = {
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    "spark.ui.enabled": "false",
}
"""Few rows and many plans: compiling a plan would take longer than running it."""


@contextmanager
def connect_server(folder: Path, packages: Path, *, interceptor: Path | None = None) -> Iterator[str]:
    """Run a server, and yield its address, the value of `SPARK_REMOTE`.

    `folder` gets what it prints. Its Python workers find Regroup in `packages`. `interceptor` is a compiled Java class
    that sees each request.
    """
    (port,) = free_ports(1)
    path = [*jars("delta"), *([interceptor.parent] if interceptor else [])]
    given = {
        **OPTIONS,
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.extraClassPath": os.pathsep.join(map(str, path)),
        "spark.driver.extraJavaOptions": f"{HEAP} -Dlog4j2.configurationFile={LOGGING.as_uri()}",
        "spark.sql.warehouse.dir": str(folder / "spark-warehouse"),
    }
    if interceptor:
        given["spark.connect.grpc.interceptor.classes"] = interceptor.stem
    command = [str(SPARK / "bin" / "spark-submit"), "--master", "local[2]", "--driver-memory", "1g"]
    command += [word for item in given.items() for word in ("--conf", "=".join(item))]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    environment = os.environ | {
        "JAVA_HOME": str(java_home()),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(packages),
        "SPARK_HOME": str(SPARK),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SCALA_VERSION": "2.13",
    }
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "server.log"
    with log.open("ab") as printed:
        # The script becomes the JVM.
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=printed, stderr=printed)
    try:
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            ready = grpc.channel_ready_future(channel)
            wait_until(lambda: ready.done() or process.poll() is not None)
            assert process.poll() is None, log.read_text(encoding="utf-8")[-5000:]
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()
