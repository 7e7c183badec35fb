"""A standalone Spark cluster of two workers gives the tables of a local run. Runs with `--faults`: it takes minutes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyspark
import pytest
from deltalake import DeltaTable

from jobs.processes.ports import free_ports
from jobs.setup.jars import jars
from jobs.setup.java import java_home
from jobs.tables.delta_io import table_path
from jobs.tables.transactions import is_local
from schemas.gold import GROUP_TABLES
from schemas.silver import GENERATIONS, SILVER
from testing import wheel
from testing.waiting import wait_until
from testing.warehouses import volume
from tests.faults.process import Job
from tests.faults.tables import content, difference, recorded_content
from tests.jobs.conftest import NAME

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(sys.platform != "linux", reason="hard links are refused by a seccomp filter"),
]

ROOT = Path(__file__).parents[3]
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


def environment() -> dict[str, str]:
    """Of a machine on which only the packages are installed that Regroup needs."""
    given = {
        "JAVA_HOME": str(java_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SCALA_VERSION": "2.13",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | given


@pytest.fixture(scope="module")
def archive(tmp_path_factory) -> Path:
    """The wheel with the ending that executors need."""
    folder = tmp_path_factory.mktemp("wheel")
    return Path(shutil.copy(wheel.build(folder), folder / "regroup.zip"))


@pytest.fixture(scope="module")
def master(tmp_path_factory) -> Iterator[str]:
    """The address of a master with two workers of one core each."""
    folder = tmp_path_factory.mktemp("cluster")
    port, *pages = map(str, free_ports(4))
    url, log = f"spark://127.0.0.1:{port}", folder / "log"
    with ExitStack() as stack:

        def start(name: str, *options: str) -> None:
            command = [str(BIN / "spark-class"), f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", *options]
            printed = stack.enter_context(log.open("ab"))
            # The script becomes the JVM.
            process = subprocess.Popen(command, cwd=folder, env=environment(), stdout=printed, stderr=printed)
            stack.callback(process.wait)
            stack.callback(process.terminate)

        start("master.Master", "--port", port, "--webui-port", pages[0])
        for number, page in enumerate(pages[1:]):
            work = str(folder / str(number))
            start("worker.Worker", "--webui-port", page, "--cores", "1", "--memory", "2g", "--work-dir", work, url)
        wait_until(lambda: 2 == log.read_text(encoding="utf-8").count("Registering worker"))
        yield url


def submit(master: str, archive: Path, folder: Path, *command: str) -> None:
    """Run a command with spark-submit, as on a file system without hard links."""
    options = [option for item in OPTIONS.items() for option in ("--conf", "=".join(item))]
    options += ["--master", master, "--driver-memory", "1g", "--executor-memory", "1g", "--py-files", str(archive)]
    options += ["--jars", ",".join(map(str, jars("delta")))]
    program = [str(BIN / "spark-submit"), *options, str(ROOT / "deploy" / "spark" / "submit.py"), *command]
    ended = subprocess.run(
        [sys.executable, volume.__file__, *program],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST_S,
    )
    assert ended.returncode == 0, f"{command[0]}: {ended.stdout}\n{ended.stderr[-5000:]}"
    assert "Spark's session comes from spark-submit." in ended.stdout


def rows(warehouse: Path) -> dict[str, list[str]]:
    """Every row of silver and gold, in no order that files have."""
    tables = {t: DeltaTable(table_path(warehouse, t)) for t in (*SILVER, *GROUP_TABLES)}
    return {
        t.name: sorted(map(repr, found.to_pyarrow_table(columns=list(t.names)).to_pylist()))
        for t, found in tables.items()
    }


def test_the_wheel_on_two_workers_gives_the_tables_of_a_local_run(master, archive, recorded, tmp_path) -> None:
    local, warehouse = tmp_path / "local" / "warehouse", tmp_path / "submitted" / "warehouse"
    for command in ("ingest", "build", "analyze"):
        assert 0 == Job(command, local, recorded).end()
    # Both have the same cluster in their settings.
    warehouse.parent.mkdir()
    config = shutil.copy(local.parent / "regroup.toml", warehouse.parent)
    named = ("--config", str(config), "--warehouse", str(warehouse))
    for command in ("ingest", "build", "analyze"):
        submit(master, archive, tmp_path, command, "--once", *named)
    assert not is_local(table_path(warehouse, GENERATIONS)), "Spark wrote it"
    assert difference(recorded_content(NAME), content(warehouse)).is_identical
    assert rows(local) == rows(warehouse)
    submit(master, archive, tmp_path, "rebuild", *named)
    assert rows(local) == rows(warehouse)
