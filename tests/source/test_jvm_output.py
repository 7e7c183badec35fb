"""The output of the JVM and its Python workers: only tracebacks of workers that connected too late are dropped."""

from __future__ import annotations

import subprocess
import sys

from jobs.spark.jvm_output import INCUBATOR, filtered_stderr, passed_on
from testing.waiting import wait_until

LATE = """\
Traceback (most recent call last):
  File "<frozen runpy>", line 198, in _run_module_as_main
    with get_sock_file_to_executor() as file:

pyspark.errors.exceptions.base.PySparkRuntimeError: [CANNOT_OPEN_SOCKET] Can not open socket: ["timed out"].
"""
OTHER = """\
Traceback (most recent call last):
  File "worker.py", line 1, in main
ValueError: broken
"""


def passed(text: str) -> str:
    return "".join(passed_on(text.splitlines(keepends=True)))


def test_the_traceback_of_a_late_worker_is_left_out():
    assert "" == passed(LATE + LATE)
    assert "before\nafter\n" == passed(f"before\n{LATE}after\n")


def test_every_other_line_is_passed_on():
    assert OTHER + "after\n" == passed(OTHER + "after\n")
    assert OTHER + OTHER == passed(OTHER + LATE + OTHER)
    assert "OutOfMemoryError\n" == passed(f"{INCUBATOR}\nOutOfMemoryError\n")


def test_an_unfinished_traceback_is_passed_on():
    begun = "".join(LATE.splitlines(keepends=True)[:3])
    assert begun == passed(begun)
    assert begun + OTHER == passed(begun + OTHER)


def test_a_process_that_is_started_within_is_filtered_for_as_long_as_it_runs(capfd):
    program = f"import sys; input(); sys.stderr.write({LATE!r} + 'the end\\n')"
    with filtered_stderr():
        process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE)
    process.communicate(b"\n", timeout=120)
    printed = []

    def is_printed() -> bool:
        printed.append(capfd.readouterr().err)
        return "the end\n" in "".join(printed)

    wait_until(is_printed)
    assert "the end\n" == "".join(printed)
