"""The wheel alone: every scheduled job runs from it with the bundle's own parameters, far from the repository."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from deltalake import DeltaTable

from jobs.lab.broker import Broker
from testing import wheel
from testing.connect import serverless
from testing.connect.server import connect_server
from testing.waiting import wait_until
from testing.warehouses import volume
from tests.setup.test_bundle import ROOT, tasks

SCHEMA = "spark_catalog.default"
"""A schema of the server's only catalog, which exists as long as the server runs."""

ORDER = ("ingest", "build", "analyze", "quality", "maintain", "notify")


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The wheel as pip installs it, without its dependencies."""
    folder = tmp_path_factory.mktemp("wheel")
    with ZipFile(wheel.build(folder)) as packed:
        packed.extractall(folder / "site")
        for each in packed.infolist():
            if each.external_attr >> 16 & 0o111:
                (folder / "site" / each.filename).chmod(0o755)
    return folder / "site"


def run(
    site: Path, folder: Path, *arguments: str, on_a_volume: bool = False, **environment: str
) -> subprocess.CompletedProcess[str]:
    """With `on_a_volume`, its file system has no hard links, as a volume of Databricks."""
    environment = os.environ | {"PYTHONPATH": str(site)} | environment
    command = (
        [sys.executable, "-P", *arguments]
        if arguments[0] == "-c"
        else [sys.executable, "-P", "-m", "jobs.cli", *arguments]
    )
    if on_a_volume:
        command = [sys.executable, volume.__file__, *command]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def parameters(name: str, config: Path, warehouse: Path) -> list[str]:
    """Return the parameters of the bundle's task for this machine: with its paths, and with one run if the job is
    continuous.
    """
    *_, task = tasks()[name]
    given = list(task["python_wheel_task"]["parameters"])
    given[given.index("--config") + 1] = str(config)
    given[given.index("--warehouse") + 1] = str(warehouse)
    given[given.index("--tables") + 1] = SCHEMA
    return given if "--once" in given else [*given, "--once"]


@pytest.fixture
def config(tmp_path) -> Iterator[Path]:
    """A settings file that names a broker in which one group has rebalanced and committed."""
    with Broker(tmp_path / "broker") as broker:
        there = {"bootstrap.servers": broker.bootstrap_servers}
        admin = AdminClient(there)
        admin.create_topics([NewTopic("orders", 2, 1)])["orders"].result(120)
        member = Consumer(there | {"group.id": "billing", "auto.offset.reset": "earliest"})
        member.subscribe(["orders"])
        wait_until(lambda: member.poll(0.2) or member.assignment())
        member.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)
        member.close()
        file = tmp_path / "regroup.toml"
        lines = ("[clusters.kafka]", f'bootstrap_servers = "{broker.bootstrap_servers}"')
        # The broker requires no secret, and serverless compute has none.
        lines += ("[clusters.kafka.kafka]", '"sasl.password" = "env:KAFKA_PASSWORD"')
        file.write_text("\n".join(lines), encoding="utf-8")
        yield file


def test_every_scheduled_job_runs_from_the_wheel_alone_and_says_nothing_odd(site, config, tmp_path) -> None:
    """All through Spark Connect, those on serverless compute in sessions that refuse what it refuses."""
    warehouse, folder = tmp_path / "warehouse", tmp_path / "elsewhere"
    folder.mkdir()
    with connect_server(tmp_path / "server", site, interceptor=serverless.interceptor(tmp_path / "classes")) as address:
        classic = {"SPARK_REMOTE": address, "KAFKA_PASSWORD": "open sesame"}
        for name in ORDER:
            given = parameters(name, config, warehouse)
            session = serverless.environment(address) if "environments" in tasks()[name][1] else classic
            ended = run(site, folder, *given, on_a_volume=sys.platform == "linux", **session)
            assert ended.returncode == 0, (name, ended.stderr)
            odd = [word for word in ("Traceback", "Exception", "leaked") if word in ended.stderr]
            assert not odd, (name, ended.stderr)
    assert {*ORDER} == {*tasks()}
    assert [] == list(warehouse.glob("*/_delta_log")), "all tables have names"
    tables = tmp_path / "server" / "spark-warehouse"
    described = DeltaTable(tables / "generations").to_pyarrow_table(columns=["group_id", "member_count"]).to_pylist()
    assert {"group_id": "billing", "member_count": 1} in described
    runs = DeltaTable(tables / "job_runs").to_pyarrow_table(columns=["job", "outcome"]).to_pylist()
    assert {(name, "succeeded") for name in ORDER} <= {(row["job"], row["outcome"]) for row in runs}
    assert [] == list(folder.iterdir()), "a job leaves its things in the warehouse, not where it was started"


def test_a_command_without_spark_says_what_to_install(site, tmp_path) -> None:
    hidden = "import sys; sys.modules['pyspark'] = None; from jobs.cli import main; sys.exit(main(['build', '--once']))"
    ended = run(site, tmp_path, "-c", hidden)
    sentence = (
        "regroup build: `build` needs Spark, and pyspark is not installed here: install regroup[spark], or run the"
    )
    assert (2, True) == (ended.returncode, ended.stderr.startswith(sentence)), ended.stderr
    assert "Traceback" not in ended.stderr


def test_the_pages_of_the_wheel_have_their_files_and_runbooks(site, tmp_path) -> None:
    asked = (
        "from pathlib import Path; from dashboards.app import create_app; from dashboards.lake.lake import LocalLake;"
        "import dashboards; client = create_app(LocalLake(Path('.'))).server.test_client();"
        "print(dashboards.__file__, *(client.get(path, base_url='http://127.0.0.1').status_code for path in"
        " ('/', '/assets/regroup.css', '/assets/plotly/plotly-cartesian.min.js', '/runbooks/KafkaRebalanceStorm')))"
    )
    environment = os.environ | {"PYTHONPATH": str(site)}
    command = [sys.executable, "-P", "-c", asked]
    described = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert described.split() == [str(site / "dashboards" / "__init__.py"), "200", "200", "200", "200"]


def test_every_package_of_the_wheel_says_that_it_is_typed(site) -> None:
    packages = ("schemas", "pipelines", "jobs", "dashboards")
    assert [] == [name for name in packages if not (site / name / "py.typed").is_file()]


def test_the_script_that_spark_starts_as_python_can_be_run(site) -> None:
    assert os.access(site / "jobs" / "spark" / "python_without_archive.sh", os.X_OK)


def test_the_programs_of_the_lab_are_in_the_wheel_with_their_locks(site) -> None:
    lab = {str(path.relative_to(ROOT)) for path in (ROOT / "jobs" / "lab").glob("*/*") if path.is_file()}
    assert {"jobs/lab/go/go.sum", "jobs/lab/node/package-lock.json", "jobs/lab/python/aiokafka.lock"} <= lab
    assert [] == sorted(name for name in lab if not name.endswith(".pyc") and not (site / name).is_file())


def test_the_messages_that_kafka_python_lacks_are_in_the_wheel(site) -> None:
    messages = {str(path.relative_to(ROOT)) for path in (ROOT / "jobs" / "kafka" / "messages").glob("*.json")}
    assert 4 == len(messages)
    assert [] == sorted(name for name in messages if not (site / name).is_file())


def test_the_decoder_of_the_wheel_runs_alone(site, tmp_path) -> None:
    ended = run(site, tmp_path, "decode", str(ROOT / "tests" / "captures" / "eager_churn"), "--max-records", "3")
    assert (0, "", 3) == (ended.returncode, ended.stderr, len(ended.stdout.splitlines()))
