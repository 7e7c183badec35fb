"""One sentence for the death of Spark's JVM, which Python only sees as broken connections."""

from __future__ import annotations

import logging
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import BaseServer
from typing import Any

from jobs.config.errors import UserError

DEAD_WITHIN_S = 5.0
"""Seconds to wait for the JVM's end, because its connections break a moment earlier."""


RAISED_TOO = (
    "Exception while sending command.",
    "There was an exception while executing the Python Proxy on the Python Side.",
)
"""Messages that py4j logs with all traces before it raises the same error, or returns it to the JVM."""

CUT_OFF = (EOFError, ConnectionError, struct.error)
"""Errors in PySpark when the JVM closes a connection, between two messages or within one."""

LOGGERS = ("", "py4j.clientserver", "py4j.java_gateway")


def _is_other(record: logging.LogRecord) -> bool:
    return record.msg not in RAISED_TOO


@contextmanager
def jvm_death_named() -> Iterator[None]:
    """Raise a `UserError` if an exception in the block was caused by the end of this process's JVM."""
    for name in LOGGERS:
        logging.getLogger(name).addFilter(_is_other)
    try:
        yield
    except Exception as error:
        if isinstance(error, UserError) or (ending := _ended(error)) is None:
            raise
        raise UserError(
            f"Spark's JVM {ending}: start this command again; it continues where it stopped. If nobody ended the JVM, "
            "check the system's log for a lack of memory, and driver_memory in the settings."
        ) from None
    finally:
        for name in LOGGERS:
            logging.getLogger(name).removeFilter(_is_other)


def leave_out_broken_connections(server: BaseServer) -> None:
    """Let PySpark's server for accumulators print no trace when the JVM ends, which breaks its connections.

    The end of the JVM is reported by `jvm_death_named`. Other errors are still printed.
    """
    printed = server.handle_error

    def handle_error(request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), CUT_OFF):
            printed(request, client_address)

    server.handle_error = handle_error  # type: ignore[method-assign]


def _ended(error: Exception) -> str | None:
    """Return how the JVM ended; None if it still runs, was never started, or did not cause this error."""
    # A client of Spark Connect alone has no class `SparkContext`.
    protocol, context = sys.modules.get("py4j.protocol"), getattr(sys.modules.get("pyspark"), "SparkContext", None)
    gateway = context and context._gateway  # noqa: SLF001 - the only way to it
    # Under spark-submit, the JVM is the parent, and no process of ours.
    if protocol is None or gateway is None or gateway.proc is None:
        return None
    is_of_java = isinstance(error, protocol.Py4JJavaError)
    if is_of_java or not isinstance(error, (ConnectionError, EOFError, protocol.Py4JError)):
        return None
    try:
        code = gateway.proc.wait(DEAD_WITHIN_S)
    except subprocess.TimeoutExpired:
        return None
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
