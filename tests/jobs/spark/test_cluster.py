"""A standalone Spark cluster of two workers gives the tables of a local run. Runs with `--faults`: it takes minutes."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.tables.paths import table_path
from jobs.tables.transactions import is_local
from schemas.gold import GROUP_TABLES
from schemas.silver import GENERATIONS, SILVER
from testing.spark_cluster import StandaloneCluster, standalone
from testing.warehouses import volume
from tests.faults.process import Job
from tests.faults.tables import content, difference, recorded_content
from tests.jobs.conftest import NAME
from tests.jobs.s3.conftest import BUCKET, serving
from tests.jobs.s3.test_s3_address import rows

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(sys.platform != "linux", reason="hard links are refused by a seccomp filter"),
]

TABLES = (*SILVER, *GROUP_TABLES)
WITHOUT_HARD_LINKS = (sys.executable, volume.__file__)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[StandaloneCluster]:
    with standalone(tmp_path_factory.mktemp("cluster"), workers=2) as running:
        yield running


@pytest.fixture
def local(recorded, tmp_path) -> Path:
    """A folder with the tables of local runs, beside the settings of the cluster that they read."""
    warehouse = tmp_path / "local" / "warehouse"
    for command in ("ingest", "build", "analyze"):
        assert 0 == Job(command, warehouse, recorded).end()
    return warehouse


def test_the_wheel_on_two_workers_gives_the_tables_of_a_local_run(cluster, local, tmp_path) -> None:
    warehouse = tmp_path / "submitted" / "warehouse"
    warehouse.parent.mkdir()
    config = shutil.copy(local.parent / "regroup.toml", warehouse.parent)
    named = ("--config", str(config), "--warehouse", str(warehouse))
    for command in ("ingest", "build", "analyze"):
        cluster.submit(command, "--once", *named, within=WITHOUT_HARD_LINKS)
    assert not is_local(table_path(warehouse, GENERATIONS)), "Spark wrote it"
    assert difference(recorded_content(NAME), content(warehouse)).is_identical
    assert rows(str(local), TABLES) == rows(str(warehouse), TABLES)
    cluster.submit("rebuild", *named, within=WITHOUT_HARD_LINKS)
    assert rows(str(local), TABLES) == rows(str(warehouse), TABLES)


def test_executors_write_the_same_tables_to_s3(local, tmp_path) -> None:
    """With nothing but the address of the warehouse; the workers have no credentials."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    address = f"s3a://{BUCKET}/of/a/cluster"
    named = ("--config", str(local.parent / "regroup.toml"), "--warehouse", address)
    with standalone(folder, workers=2) as cluster, serving() as server:
        options = {
            "spark.hadoop.fs.s3a.endpoint": server.endpoint,
            "spark.hadoop.fs.s3a.endpoint.region": server.environment["AWS_REGION"],
            "spark.hadoop.fs.s3a.path.style.access": "true",
        }
        for command in ("ingest", "build", "analyze"):
            cluster.submit(command, "--once", *named, options=options, libraries=("delta", "s3"))
        assert rows(str(local), TABLES) == rows(address, TABLES)
