"""Groups of the lab: their members, and how a member is started, closed, blocked, frozen or killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobs.lab import consumer

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, kw_only=True)
class GroupPlan(ABC):
    """One group and the topic it reads. Times are in milliseconds; names are Kafka's."""

    group_id: str
    topic: str
    partitions: int
    members: int
    session_timeout_ms: int = 6_000
    max_poll_interval_ms: int = 300_000

    def client_id(self, index: int) -> str:
        """Return the client id of the member at `index`."""
        return f"{self.group_id}-{index}"

    def prepare(self) -> None:  # noqa: B027 - most plans need no preparation
        """Fetch and build the dependencies of the members' program.

        Raises:
            UserError: a dependency is missing.
        """

    @abstractmethod
    def command(self, index: int, bootstrap_servers: str, folder: Path) -> list[str]:
        """Return the command of the member at `index`.

        The program reads orders from standard input, and ends when standard input ends. `folder` is the lab's folder,
        for files of the member.
        """


@dataclass(frozen=True, kw_only=True)
class ConsumerPlan(GroupPlan):
    """A group of librdkafka consumers. With the consumer protocol, the broker sets session, heartbeat and assignor."""

    group_protocol: str = "classic"
    assignor: str = "range"
    is_static: bool = False
    auto_commit_interval_ms: int = 1_000

    def command(self, index: int, bootstrap_servers: str, folder: Path) -> list[str]:  # noqa: ARG002 - has no files
        """Return the command of `consumer.py` with the settings of this member."""
        config = json.dumps(self.config(index, bootstrap_servers))
        return [sys.executable, "-I", consumer.__file__, self.topic, config]

    def config(self, index: int, bootstrap_servers: str) -> dict[str, object]:
        """Return the settings of the member's consumer; the `group.instance.id` of a static member is its client id."""
        is_classic = self.group_protocol == "classic"
        return {
            "bootstrap.servers": bootstrap_servers,
            "group.id": self.group_id,
            "client.id": self.client_id(index),
            **({"group.instance.id": self.client_id(index)} if self.is_static else {}),
            **(self._classic() if is_classic else {"group.protocol": self.group_protocol}),
            "max.poll.interval.ms": self.max_poll_interval_ms,
            "auto.commit.interval.ms": self.auto_commit_interval_ms,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }

    def _classic(self) -> dict[str, object]:
        return {
            "partition.assignment.strategy": self.assignor,
            "session.timeout.ms": self.session_timeout_ms,
            "heartbeat.interval.ms": self.session_timeout_ms // 3,
        }


@dataclass(kw_only=True)
class RunningGroup:
    """The running members of one plan. Each is a separate process that ends when this process ends."""

    plan: GroupPlan
    bootstrap_servers: str
    folder: Path
    say: Callable[[str], None]
    _running: dict[int, subprocess.Popen[str]] = field(default_factory=dict)

    def start(self, index: int, **changes: Any) -> None:
        """Start the member at `index` unless it is running; `changes` to the plan apply only to this member."""
        if self.is_running(index):
            return
        if ended := self._running.pop(index, None):
            _reap(ended)
        command = replace(self.plan, **changes).command(index, self.bootstrap_servers, self.folder)
        with (self.folder / "members.log").open("ab") as sink:
            # In a separate session, so that Ctrl-C in a terminal reaches only the lab.
            self._running[index] = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=sink, stderr=sink, text=True, bufsize=1, start_new_session=True
            )
        self._report(index, "starts")

    def leave(self, index: int) -> None:
        """Make the member close cleanly. A dynamic member leaves the group; a static member does not."""
        self._order(index, "leave", "closes cleanly")

    def block(self, index: int, seconds: float) -> None:
        """Block the member's poll loop for `seconds`."""
        self._order(index, f"block {seconds:.1f}", f"does not poll for {seconds:.0f} s")

    def kill(self, index: int) -> None:
        """Kill the member with SIGKILL."""
        if self.is_running(index):
            self._running[index].kill()
            self._report(index, "is killed")

    def freeze(self, index: int) -> None:
        """Stop the process with SIGSTOP until `thaw`, as if its host had paused."""
        self._signal(index, signal.SIGSTOP, "is frozen")

    def thaw(self, index: int) -> None:
        """Continue the process with SIGCONT."""
        self._signal(index, signal.SIGCONT, "continues")

    def is_running(self, index: int) -> bool:
        """Return whether the process of the member at `index` is alive."""
        return index in self._running and self._running[index].poll() is None

    def end(self) -> None:
        """Kill every member and wait for its end."""
        for process in self._running.values():
            process.kill()
        for process in self._running.values():
            _reap(process)

    def _signal(self, index: int, number: signal.Signals, meaning: str) -> None:
        if self.is_running(index):
            self._running[index].send_signal(number)
            self._report(index, meaning)

    def _order(self, index: int, order: str, meaning: str) -> None:
        process = self._running.get(index)
        if process is None or process.poll() is not None or process.stdin is None:
            return
        try:
            process.stdin.write(order + "\n")
        except BrokenPipeError:
            return
        self._report(index, meaning)

    def _report(self, index: int, event: str) -> None:
        self.say(f"{self.plan.client_id(index)} {event}")


def _reap(process: subprocess.Popen[str]) -> None:
    """Wait for the end of the process and close the pipe to it."""
    with process:
        pass
