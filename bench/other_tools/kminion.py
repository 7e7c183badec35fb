"""Measure how fast KMinion reads `__consumer_offsets` from its first record.

KMinion (https://github.com/redpanda-data/kminion) with `scrapeMode: offsetsTopic` keeps the last commit of each
partition in memory. It checks only every 15 s whether it has caught up, so the time until `/ready` says yes is a
multiple of 15 s. The time until it has received all records is therefore measured too: until the number of bytes that
its process has read stops growing. This time is the earlier one, and ratios use it.
"""

from __future__ import annotations

import http.client
import os
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench.page_load.server import memory_mb, processor_ms
from jobs.processes.ports import free_ports

FEW_BYTES = 20_000
"""A tenth of a second with fewer bytes has no records of a backlog, only responses with metadata or without records."""
STILL_S = 4.0
"""KMinion has received everything if it got only few bytes for so many seconds."""
LONGEST_S = 900


@dataclass(frozen=True)
class Caught:
    """What one run of KMinion took, in seconds from the start of its process, and its peak resident memory in MB."""

    received_s: float
    ready_s: float
    processor_s: float
    peak_mb: float


def caught_up(binary: Path, bootstrap_servers: str) -> Caught:
    """Run KMinion against these brokers until it has caught up; return what it took.

    Raises:
        SystemExit: the program cannot be started, or it ended or did not catch up within 15 minutes.
    """
    (port,) = free_ports(1)
    configured = {
        "KAFKA_BROKERS": bootstrap_servers,
        "MINION_CONSUMERGROUPS_SCRAPEMODE": "offsetsTopic",
        "EXPORTER_HOST": "127.0.0.1",
        "EXPORTER_PORT": str(port),
        "LOGGER_LEVEL": "warn",
    }
    with tempfile.TemporaryFile() as log:
        began = time.monotonic()
        try:
            process = subprocess.Popen([binary], env={**os.environ, **configured}, stdout=log, stderr=log)
        except OSError as error:
            raise SystemExit(
                f"KMinion cannot be started: {error}. Build it with `go build` and name the file."
            ) from None
        try:
            return _followed(process, port, began)
        except TimeoutError:
            log.seek(0)
            last = log.read()[-500:].decode(errors="replace")
            raise SystemExit(f"KMinion did not catch up, or ended. Its last lines: {last}") from None
        finally:
            process.terminate()
            process.wait()


def _followed(process: subprocess.Popen[bytes], port: int, began: float) -> Caught:
    """Return the figures once KMinion is ready. Raises `TimeoutError` if it ends or takes too long."""
    before, last_moved = 0, began
    while time.monotonic() - began < LONGEST_S:
        time.sleep(0.1)
        if process.poll() is not None:
            break
        now, read = time.monotonic(), _bytes_read(process.pid)
        if read - before > FEW_BYTES:
            last_moved = now
        before = read
        if last_moved > began and now - last_moved > STILL_S and _is_ready(port):
            ready = time.monotonic() - began
            return Caught(last_moved - began, ready, processor_ms(process.pid) / 1000, memory_mb(process.pid)[1])
    raise TimeoutError


def _bytes_read(pid: int) -> int:
    """Return the bytes of all `read` calls of a process, sockets included (`rchar` of proc(5))."""
    lines = Path(f"/proc/{pid}/io").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("rchar:"))


def _is_ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", "/ready")
        return connection.getresponse().status == http.client.OK
    except OSError:
        return False
    finally:
        connection.close()
