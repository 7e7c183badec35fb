"""Shared fixtures: one Spark session and one broker for the whole run, a warehouse for each test."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
import time
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from testing.heap import HEAP
from tests.faults import matrix
from tests.slowest import slowest_first

PROGRAMS = frozenset({"spark", "broker", "browser", "page", "alertmanager", "prometheus", "site"})
"""Fixtures that start a program or share one."""

STARTED_BY = frozenset({"Broker", "Brokers", "SparkSession", "session", "subprocess", "Process", "Popen", "serving"})
"""Names in a test's module that start a program."""

INTERPRETED = ("spark.sql.adaptive.enabled", "spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode")
"""Settings of the shared session that run a plan without compiling it: a test has few rows and many plans, and
compiling the plans took longer than running them. Processes that tests start (`ingest`, `build`, `up`, the wheel's
jobs) compile their plans.
"""

OPEN_TABLES = "spark.databricks.delta.delta.log.cacheSize", "100"
"""Tables that Delta keeps open; by default 10,000 for an hour. Each keeps 2 MB of plans, and every test makes up to 40
new ones: the heap was full after 240 tables, and full collections took a tenth of the JVM's time.
"""

# Hypothesis fails a test for an example that takes 200 ms, or for the first ones if they are drawn slowly. A pause of
# the machine is enough for either.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

main = sys.modules["__main__"]
if main.__spec__ is None and not hasattr(main, "__file__"):
    # A process of xdist looks like this, and PySpark mistakes it for its own doctests and ends it on import.
    main.__spec__ = ModuleSpec("__main__", None)


def pytest_addoption(parser):
    parser.addoption(
        "--faults", type=int, nargs="?", const=25, default=0, metavar="N", help="the fault matrix, N times"
    )
    parser.addoption(
        "--hours", type=float, default=0.0, metavar="N", help="with --faults: only faults drawn at random, for N hours"
    )
    parser.addoption("--drawn-from", type=int, default=int(time.time()), metavar="SEED", help="draw these faults again")
    parser.addoption("--fast", action="store_true", help="leave out tests that need Spark, a broker or a browser")


def pytest_configure(config):
    # The JVMs of tests live for seconds or minutes: compiled for hours to come they took twice the processor's time.
    # Most methods run only a few hundred times, which takes less time than compiling them. With this compiler alone,
    # Java keeps 48 MB of compiled code. Spark's plans need 77 MB, so Java would discard methods and compile them again.
    os.environ.setdefault(
        "SPARK_SUBMIT_OPTS",
        "-XX:TieredStopAtLevel=1 -XX:CompileThresholdScaling=4 -XX:ReservedCodeCacheSize=240m",
    )
    # A test that names no warehouse must not use the default warehouse of this folder.
    os.environ["REGROUP_WAREHOUSE"] = str(Path(tempfile.mkdtemp(prefix="regroup-tests-")) / "warehouse")
    config.pluginmanager.register(matrix)
    config.addinivalue_line("markers", "slow: waits for seconds, or starts what no fixture shows; not with --fast")
    config.addinivalue_line("markers", "faults: part of the fault matrix, which runs with --faults only")
    config.addinivalue_line("markers", "drawn: faults drawn at random, the only ones with --hours")


def pytest_unconfigure(config):
    gc.unfreeze()  # DuckDB reports objects that are not collected at the end
    shutil.rmtree(Path(os.environ["REGROUP_WAREHOUSE"]).parent, ignore_errors=True)


def pytest_collection_modifyitems(config, items):
    if config.getoption("--hours"):
        others = [item for item in items if not item.get_closest_marker("drawn")]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in others]
    if not config.getoption("--faults"):
        whole = [item for item in items if item.get_closest_marker("faults")]
        config.hook.pytest_deselected(items=whole)
        items[:] = [item for item in items if item not in whole]
    if config.getoption("--fast"):
        slow = {item.nodeid for item in items if item.get_closest_marker("slow") or needs_programs(item)}
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in slow])
        items[:] = [item for item in items if item.nodeid not in slow]
    if hasattr(config, "workerinput"):
        items[:] = [items[n] for n in slowest_first([item.path for item in items])]


def pytest_collection_finish():
    # Half a million objects of imported modules and of test items stay until the end. Each full collection would go
    # through them for half a second, in the middle of whatever a test times.
    gc.collect()
    gc.freeze()


def needs_programs(item) -> bool:
    """Whether a test starts Spark, a broker, a browser or another program: by its fixtures, or by what its module and
    the functions of its fixtures import.
    """
    modules = {
        item.module.__name__,
        *(each.func.__module__ for name in item.fixturenames for each in _defined(item, name)),
    }
    return not PROGRAMS.isdisjoint(item.fixturenames) or any(
        not STARTED_BY.isdisjoint(vars(sys.modules[name])) for name in modules if name in sys.modules
    )


def _defined(item, name):
    return item._fixtureinfo.name2fixturedefs.get(name, ())


@pytest.fixture(scope="session")
def spark():
    from jobs.spark import spark
    from jobs.spark.spark import FEW_ROWS, session

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(spark, "HEAP", (HEAP,))
        running = session("regroup tests", cores=2, driver_memory="1g")
    for key in INTERPRETED:
        running.conf.set(key, FEW_ROWS[key])
    running.conf.set(*OPEN_TABLES)
    yield running
    running.stop()


@pytest.fixture(scope="session")
def broker(tmp_path_factory):
    """A Kafka broker whose logs keep everything; its topics are shared, so each test makes its own."""
    from jobs.lab.broker import Broker

    overrides = {"log.cleaner.enable": "false", "log.retention.ms": -1}
    with Broker(tmp_path_factory.mktemp("broker"), overrides=overrides) as running:
        yield running


@pytest.fixture
def warehouse(tmp_path) -> Path:
    return tmp_path / "warehouse"
