"""Python programs of one measurement: each prints into a file of its own, and all end together."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """The programs that run, by name. `stack` ends them, the last one first. `logs` is the folder of their output."""

    stack: ExitStack
    logs: Path
    environment: Mapping[str, str]
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str, *command: str, ends_by: signal.Signals = signal.SIGTERM) -> Path:
        """Start a module with its arguments, and return the file with its output."""
        log = self.logs / f"{name}.log"
        with log.open("wb") as sink:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", *command], stdout=sink, stderr=sink, env=self.environment
            )
        self.stack.callback(process.wait)
        self.stack.callback(process.send_signal, ends_by)
        self.running[name] = process
        return log

    def wait(self, is_ready: Callable[[], bool]) -> None:
        """Wait for a condition; raise `SystemExit` if a program ends before."""
        while not is_ready():
            self.refuse_ended()
            time.sleep(0.2)

    def refuse_ended(self) -> None:
        """Raise `SystemExit` if a program has ended."""
        for name, process in self.running.items():
            if process.poll() is not None:
                sys.stderr.write(f"`{name}` ended with {process.returncode}: see {self.logs / name}.log.\n")
                raise SystemExit(1)
