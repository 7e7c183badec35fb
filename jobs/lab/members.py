"""Groups of the lab: which members they have and how each is started, asked to leave, held up or killed."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from jobs.lab import consumer

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, kw_only=True)
class GroupPlan:
    """One group and the topic it reads. Times are milliseconds, names are Kafka's."""

    group_id: str
    topic: str
    partitions: int
    members: int
    assignor: str = "range"
    is_static: bool = False
    session_timeout_ms: int = 6_000
    max_poll_interval_ms: int = 300_000
    auto_commit_interval_ms: int = 1_000

    def client_id(self, index: int) -> str:
        """Name of the member at `index`; of a static member also its `group.instance.id`."""
        return f"{self.group_id}-{index}"

    def config(self, index: int, bootstrap_servers: str) -> dict[str, object]:
        """Settings of the member's librdkafka consumer."""
        return {
            "bootstrap.servers": bootstrap_servers,
            "group.id": self.group_id,
            "client.id": self.client_id(index),
            **({"group.instance.id": self.client_id(index)} if self.is_static else {}),
            "partition.assignment.strategy": self.assignor,
            "session.timeout.ms": self.session_timeout_ms,
            "heartbeat.interval.ms": self.session_timeout_ms // 3,
            "max.poll.interval.ms": self.max_poll_interval_ms,
            "auto.commit.interval.ms": self.auto_commit_interval_ms,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }


@dataclass(kw_only=True)
class Group:
    """The running members of one plan, each a process of its own that ends when this process ends."""

    plan: GroupPlan
    bootstrap_servers: str
    output: Path
    say: Callable[[str], None]
    _running: dict[int, subprocess.Popen[str]] = field(default_factory=dict)

    def start(self, index: int) -> None:
        """Start the member at `index`, unless it runs."""
        if self.is_running(index):
            return
        if ended := self._running.pop(index, None):
            _reap(ended)
        config = json.dumps(self.plan.config(index, self.bootstrap_servers))
        command = [sys.executable, "-I", consumer.__file__, self.plan.topic, config]
        with self.output.open("ab") as sink:
            self._running[index] = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=sink, stderr=sink, text=True, bufsize=1
            )
        self._tell(index, "starts")

    def leave(self, index: int) -> None:
        """Ask for a polite close. A dynamic member sends LeaveGroup, a static one keeps its place."""
        self._order(index, "leave", "closes politely")

    def block(self, index: int, seconds: float) -> None:
        """Hold up the poll loop."""
        self._order(index, f"block {seconds:.1f}", f"does not poll for {seconds:.0f} s")

    def kill(self, index: int) -> None:
        """SIGKILL."""
        if self.is_running(index):
            self._running[index].kill()
            self._tell(index, "is killed")

    def is_running(self, index: int) -> bool:
        """Whether the process of the member at `index` lives."""
        return index in self._running and self._running[index].poll() is None

    def end(self) -> None:
        """End every member at once and wait for it."""
        for process in self._running.values():
            process.kill()
        for process in self._running.values():
            _reap(process)

    def _order(self, index: int, order: str, meaning: str) -> None:
        process = self._running.get(index)
        if process is None or process.poll() is not None or process.stdin is None:
            return
        try:
            process.stdin.write(order + "\n")
        except BrokenPipeError:
            return
        self._tell(index, meaning)

    def _tell(self, index: int, what: str) -> None:
        self.say(f"{self.plan.client_id(index)} {what}")


def _reap(process: subprocess.Popen[str]) -> None:
    """Wait for its end and close the pipe to it."""
    with process:
        pass
