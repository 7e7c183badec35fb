"""A standalone Spark cluster on loopback, and commands of Regroup that are submitted to it with the wheel alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from jobs.processes.ports import free_ports
from jobs.setup.jars import jars
from jobs.setup.java import java_home
from testing import wheel
from testing.processor_quota import limited
from testing.waiting import wait_until

ROOT = Path(__file__).parents[1]
BIN = Path(pyspark.__file__).parent / "bin"
LONGEST_S = 1800
OPTIONS = {
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "1",
}


@dataclass(frozen=True, slots=True)
class StandaloneCluster:
    """A master, whose workers have one core each. `archive` is the wheel with the ending that executors need."""

    url: str
    folder: Path
    archive: Path

    def submit(
        self,
        *command: str,
        within: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
        libraries: Sequence[str] = ("delta",),
    ) -> str:
        """Run a command with spark-submit and return what it printed. `within` comes before the command line.

        `libraries` are the names of the tables of `jars.lock` whose jars the session gets.

        Raises:
            AssertionError: it failed, or did not use the session of spark-submit.
        """
        found = [jar for name in libraries for jar in jars(name)]
        given = [option for item in {**OPTIONS, **(options or {})}.items() for option in ("--conf", "=".join(item))]
        given += ["--master", self.url, "--driver-memory", "1g", "--executor-memory", "1g"]
        given += ["--py-files", str(self.archive), "--jars", ",".join(map(str, found))]
        ended = subprocess.run(
            [*within, str(BIN / "spark-submit"), *given, str(ROOT / "deploy" / "spark" / "submit.py"), *command],
            cwd=self.folder,
            env=_environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=LONGEST_S,
        )
        assert ended.returncode == 0, f"{command[0]}: {ended.stdout}\n{ended.stderr[-5000:]}"
        assert "Spark's session comes from spark-submit." in ended.stdout
        return ended.stdout


@contextmanager
def standalone(folder: Path, workers: int, cores: float | None = None) -> Iterator[StandaloneCluster]:
    """Run a cluster. Its executors have the environment variables that this process has now.

    With `cores`, each worker and its executors have at most so much of the machine's processor time.
    """
    port, page, *pages = map(str, free_ports(2 + workers))
    url, log = f"spark://127.0.0.1:{port}", folder / "log"
    archive = Path(shutil.copy(wheel.build(folder), folder / "regroup.zip"))
    # The limits end last, after the processes.
    with ExitStack() as limits, ExitStack() as stack:

        def start(name: str, *options: str) -> int:
            command = [str(BIN / "spark-class"), f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", *options]
            printed = stack.enter_context(log.open("ab"))
            # The script becomes the JVM.
            process = subprocess.Popen(command, cwd=folder, env=_environment(), stdout=printed, stderr=printed)
            stack.callback(process.wait)
            stack.callback(process.terminate)
            return process.pid

        start("master.Master", "--port", port, "--webui-port", page)
        for number, each in enumerate(pages):
            work = str(folder / str(number))
            options = ("--webui-port", each, "--cores", "1", "--memory", "2g", "--work-dir", work, url)
            worker = start("worker.Worker", *options)
            if cores is not None:
                limits.enter_context(limited(worker, cores))
        wait_until(lambda: workers == log.read_text(encoding="utf-8").count("Registering worker"))
        yield StandaloneCluster(url, folder, archive)


def _environment() -> dict[str, str]:
    """Return that of a machine on which only the packages are installed that Regroup needs."""
    given = {
        "JAVA_HOME": str(java_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SCALA_VERSION": "2.13",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | given
