"""A JVM of Spark's that is gone, told in one sentence: what Python sees of it are connections that nobody answers."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from jobs.config.errors import UserError

DEAD_WITHIN_S = 5.0
"""Its connections end a moment before it does."""


LOST = "Exception while sending command."
"""What py4j logs, with all traces, before it raises the same."""


def _is_other(record: logging.LogRecord) -> bool:
    return record.msg != LOST


@contextmanager
def jvm_death_named() -> Iterator[None]:
    """A `UserError` where this process's JVM has ended and something failed of it."""
    logging.getLogger().addFilter(_is_other)
    try:
        yield
    except Exception as error:
        if isinstance(error, UserError) or (how := _ended(error)) is None:
            raise
        raise UserError(
            f"Spark's JVM {how}: start this again; it goes on where it stood. If nobody did that, look for a lack of "
            "memory in the system's log, and at driver_memory in the settings."
        ) from None
    finally:
        logging.getLogger().removeFilter(_is_other)


def _ended(error: Exception) -> str | None:
    """How the JVM ended; None where there is one still, or was none, or it has nothing to do with it."""
    protocol, pyspark = sys.modules.get("py4j.protocol"), sys.modules.get("pyspark")
    if protocol is None or pyspark is None or pyspark.SparkContext._gateway is None:  # noqa: SLF001 - the only way to it
        return None
    is_of_java = isinstance(error, protocol.Py4JJavaError)
    if is_of_java or not isinstance(error, (ConnectionError, EOFError, protocol.Py4JError)):
        return None
    try:
        code = pyspark.SparkContext._gateway.proc.wait(DEAD_WITHIN_S)  # noqa: SLF001
    except subprocess.TimeoutExpired:
        return None
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
