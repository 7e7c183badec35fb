"""The output of the JVM and its Python workers: only traces of failures that are reported otherwise are dropped."""

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
STOPPED = """\
Traceback (most recent call last):
  File "/lib/python3.11/site-packages/pyspark/daemon.py", line 95, in worker
    outfile.flush()
BrokenPipeError: [Errno 32] Broken pipe
"""
FRAMES = "\tat java.base/java.util.regex.Pattern$Loop.match(Pattern.java:4898)\n" * 1024
OVERFLOW = f'Exception in thread "stream execution thread for lab [id = 1]" java.lang.StackOverflowError\n{FRAMES}'


def passed(text: str) -> str:
    return "".join(passed_on(text.splitlines(keepends=True)))


def test_the_traceback_of_a_late_worker_is_left_out():
    assert "" == passed(LATE + LATE)
    assert "before\nafter\n" == passed(f"before\n{LATE}after\n")


def test_the_traces_of_a_stopped_stream_are_left_out():
    assert "before\nafter\n" == passed(f"before\n{STOPPED}{OVERFLOW}after\n")
    assert "after\n" == passed(f"{OVERFLOW}{LATE}{OVERFLOW}{STOPPED}after\n")
    assert "" == passed(OVERFLOW)


def test_traces_with_another_cause_are_passed_on():
    elsewhere = STOPPED.replace("pyspark/daemon.py", "regroup/pages.py")
    deep = OVERFLOW.replace("java.util.regex.Pattern", "org.apache.spark.sql.catalyst.trees.TreeNode")
    lost = OVERFLOW.replace("StackOverflowError", "OutOfMemoryError")
    for trace in (elsewhere, deep, lost):
        assert f"{trace}after\n" == passed(f"{trace}{STOPPED}after\n")


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
