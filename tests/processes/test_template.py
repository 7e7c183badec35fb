"""Processes that are forked from a template: they share its modules, end with their parent, and are replaced."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from jobs.cli import _forked
from jobs.command_line.parser import parser
from jobs.config.settings import Settings
from jobs.processes.template import address
from schemas.bronze import COORDINATOR_RECORDS
from testing.running import is_running
from testing.waiting import wait_until

BEGIN = """
import json, os, posix, sys, time
from pathlib import Path
from jobs.processes import template
from jobs.processes.worker_process import WorkerProcess
import jobs.gold.replaying
"""
ASKED = """
def ids():
    return [worker.ask(), worker._process.pid]

with WorkerProcess(posix.getppid) as worker:
    first = ids()
    worker._process.kill()
    second = ids()
    os.kill(first[0], 9)
    worker._process.wait()
    print(json.dumps([first, second, ids(), os.getpid(), str(template.folder())]))
"""
OPENED = """
template.start(["jobs.gold.storm_thread"])
with WorkerProcess(posix.getppid, nicer=3) as worker:
    begun = worker.ask()
    of = Path("/proc") / str(worker._process.pid)
    parts = [line.split() for line in of.joinpath("smaps_rollup").read_text().splitlines()[1:]]
    shared = sum(int(size) for name, size, _ in parts if name in ("Shared_Clean:", "Shared_Dirty:"))
    rest = {"shared": shared, "name": of.joinpath("cmdline").read_text(), "nice": os.getpriority(0, worker._process.pid)}
    print(json.dumps(rest | {"files": len(list(of.joinpath("fd").iterdir()))}))
"""
SPARK = """
from jobs.spark.spark import session
from testing.running import is_running
from testing.waiting import wait_until

def parents(batches):
    import os, pyarrow
    for _ in batches:
        daemon = os.getppid()
        of = int(Path(f"/proc/{daemon}/stat").read_text().split()[3])
        yield pyarrow.RecordBatch.from_pydict({"daemon": [daemon], "of": [of]})

def seen():
    return spark.range(1).mapInArrow(parents, "daemon LONG, of LONG").collect()[0]

template.start(["pyspark.worker"])
with WorkerProcess(posix.getppid) as worker:
    forking = worker.ask()
spark = session("test")
first = seen()
os.kill(forking, 9)
wait_until(lambda: not is_running(first.daemon))
print(json.dumps([forking, first.of, seen().of]), flush=True)
os._exit(0)
"""
WAITING = """
template.start()
with WorkerProcess(posix.getppid) as worker:
    print(json.dumps([worker.ask(), worker._process.pid, str(template.folder())]), flush=True)
    time.sleep(600)
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere processes are started in the usual way")


def _printed(code: str) -> object:
    command = [sys.executable, "-P", "-c", BEGIN + code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    return json.loads(done.stdout.splitlines()[-1])


def test_forks_share_memory_and_have_a_name_and_their_own_priority() -> None:
    found = _printed(OPENED)
    assert found["name"].startswith("python\0-m\0jobs.processes.worker_process\0posix\0")
    assert found["nice"] == os.getpriority(os.PRIO_PROCESS, 0) + 3
    assert found["files"] <= 4, "stdin, stdout, stderr and none of the template's"
    assert found["shared"] > 40_000, "kB that `up`, the template and the fork have once"


def test_a_fork_that_was_killed_is_replaced_and_without_a_template_processes_start_in_the_usual_way() -> None:
    (template, one), (same, two), (usual, three), caller, folder = _printed(f"template.start()\n{ASKED}")
    assert template == same != caller
    assert usual == caller
    assert len({one, two, three}) == 3
    assert folder != "None"


def test_without_a_template_nothing_is_forked() -> None:
    found = _printed("with WorkerProcess(posix.getppid) as worker:\n    print(json.dumps([worker.ask(), os.getpid()]))")
    assert found[0] == found[1]


def test_forks_the_template_and_its_folder_end_with_who_started_them() -> None:
    with subprocess.Popen([sys.executable, "-P", "-c", BEGIN + WAITING], stdout=subprocess.PIPE, text=True) as parent:
        template, fork, folder = json.loads(parent.stdout.readline())
        assert Path(folder).stat().st_mode & 0o077 == 0, "others could start processes in our name"
        os.kill(parent.pid, signal.SIGKILL)
    wait_until(lambda: not any(map(is_running, (template, fork))))
    wait_until(lambda: not Path(folder).exists())


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder whose path leaves room for that of a socket."""
    with tempfile.TemporaryDirectory(prefix="t-") as folder:
        yield Path(folder)


def listens(folder: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(address(folder)))
        except ConnectionRefusedError:
            return False
    return True


def test_without_a_place_for_its_socket_there_is_no_template(tmp_path) -> None:
    folder = tmp_path / ("x" * 100)
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-P", "-c", BEGIN + "template.start()\nprint(template.folder())"],
        env={**os.environ, "TMPDIR": str(folder)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ("None\n", "") == (done.stdout, done.stderr)
    assert not list(folder.iterdir())


def test_the_folder_of_a_template_that_was_killed_is_removed_at_the_next_start(short_path) -> None:
    code = BEGIN + "template.start()\nprint(template.folder(), flush=True)\ntime.sleep(600)"
    command, kept = [sys.executable, "-P", "-c", code], {**os.environ, "TMPDIR": str(short_path)}
    running, folders = [], []
    for _ in range(2):
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=kept, start_new_session=True))
        folders.append(Path(running[-1].stdout.readline().strip()))
        assert folders[-1].parent == short_path
    assert len(list(short_path.iterdir())) == 2, "the template of a running program keeps its folder"
    os.killpg(running[0].pid, signal.SIGKILL)
    running[0].wait()
    # The template is killed too, but may end later than the program.
    wait_until(lambda: not listens(folders[0]))
    third = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=kept, start_new_session=True)
    assert Path(third.stdout.readline().strip()) in (left := set(short_path.iterdir()))
    assert folders[1] in left
    assert len(left) == 2
    for each in (running[1], third):
        os.killpg(each.pid, signal.SIGKILL)
        each.wait()
    for each in (*running, third):
        each.stdout.close()


def test_workers_of_spark_are_forked_and_still_start_after_the_template_was_killed() -> None:
    template, first, second = _printed(SPARK)
    assert first == template, "the daemon of Spark's workers is a fork"
    assert second != template


def test_the_program_has_no_thread_that_a_fork_would_break_when_up_is_loaded() -> None:
    code = (
        "import os, pathlib; from dashboards.lake.allocators import settle_allocators; settle_allocators(); "
        "os.environ['OPENBLAS_NUM_THREADS'] = '1'; from jobs import cli; cli._command('up'); "
        "print(*(path.read_text().strip() for path in pathlib.Path('/proc/self/task').glob('[0-9]*/comm')))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    # jemalloc is notified of a fork, and continues without its background thread.
    assert len([name for name in done.stdout.split() if name != "jemalloc_bg_thd"]) == 1, done.stdout


def test_commands_that_read_with_spark_have_a_template_but_not_a_first_read_without_it(tmp_path):
    settings = Settings(warehouse=tmp_path)

    def modules(*arguments: str) -> set[str]:
        return set(_forked(settings, parser().parse_args(arguments)))

    runner = "pyspark.sql.streaming.python_streaming_source_runner"
    assert runner in modules("ingest")
    assert modules("ingest") < modules("up")
    assert not modules("ingest", "--once")
    assert not modules("build")
    (tmp_path / COORDINATOR_RECORDS.name).mkdir()
    assert modules("ingest", "--once") == modules("ingest")
    for module in modules("up"):
        assert find_spec(module), module
