"""A killed JVM is reported in one sentence; other failures are raised unchanged."""

from __future__ import annotations

import logging
import os
import socket
import struct
import subprocess
import sys

import pytest
from pyspark.accumulators import _start_update_server

from jobs.setup.java import java_home
from jobs.spark.jvm_failure import LOGGERS, RAISED_TOO, jvm_death_named, leave_out_broken_connections

PROGRAM = """
from pyspark import SparkContext
from jobs.spark.jvm_failure import jvm_death_named
SparkContext._ensure_initialized()
jvm = SparkContext._gateway
try:
    with jvm_death_named():
        raise ConnectionRefusedError("of somebody else")
except ConnectionRefusedError as error:
    print(error)
jvm.proc.kill()
for failing in ("jvm.jvm.java.lang.System.nanoTime()", "1 / 0"):
    try:
        with jvm_death_named():
            exec(failing)
    except Exception as error:
        print(type(error).__name__, error)
"""


def test_a_killed_jvm_is_one_sentence_and_other_failures_are_themselves() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"JAVA_HOME": str(java_home())},
    )
    other, killed, own = done.stdout.splitlines()
    assert other == "of somebody else"
    assert killed.startswith(
        "UserError Spark's JVM was ended by SIGKILL: start this command again; it continues where it stopped."
    )
    assert own == "ZeroDivisionError division by zero"
    assert "Traceback" not in done.stderr


def test_what_py4j_raises_too_is_not_logged_as_well(caplog) -> None:
    with jvm_death_named():
        for name in LOGGERS:
            for message in (*RAISED_TOO, "another"):
                logging.getLogger(name).error(message)
    assert ["another"] * len(LOGGERS) == caplog.messages


@pytest.mark.parametrize(
    ("sent", "is_printed"),
    [(b"token", False), (b"token" + struct.pack(">i", 1) + b"\0", False), (b"other", True)],
    ids=["between two updates", "within an update", "with a wrong token"],
)
def test_a_connection_for_accumulators_that_the_jvm_breaks_prints_no_trace(capfd, sent, is_printed) -> None:
    server = _start_update_server("token", is_unix_domain_sock=False)
    leave_out_broken_connections(server)
    try:
        with socket.create_connection(server.server_address) as connected:
            connected.sendall(sent)
            connected.shutdown(socket.SHUT_WR)
            assert connected.recv(1) == b""
    finally:
        server.shutdown()
    assert ("Traceback" in capfd.readouterr().err) == is_printed
