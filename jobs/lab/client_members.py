"""Members of client libraries other than Kafka's own and librdkafka: each runs in the library's own language."""

from __future__ import annotations

import json
import sys
from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path

from jobs.lab.client_programs import GO, NODE, PYTHON, SOURCES, ToolChain
from jobs.lab.members import GroupPlan
from schemas.states import ClientLibrary


@dataclass(frozen=True, kw_only=True)
class ClientPlan(GroupPlan):
    """A group whose members use one library. Settings other than those of `settings` are the library's defaults."""

    library: ClientLibrary
    auto_commit_interval_ms: int = 1_000

    @property
    @abstractmethod
    def tool_chain(self) -> ToolChain | None:
        """Return what builds the program; None if it needs only the packages of Regroup."""

    def lacking(self) -> str:
        """Return why the members cannot run on this machine, as a sentence without its stop; empty if they can."""
        missing = self.tool_chain.lacking() if self.tool_chain is not None else ""
        return f"without {self.group_id}: {missing}, which its {self.library} members need" if missing else ""

    def prepare(self) -> None:
        """Fetch the library and build the program."""
        if self.tool_chain is not None:
            self.tool_chain.built()

    def command(self, index: int, bootstrap_servers: str, folder: Path) -> list[str]:  # noqa: ARG002 - has no files
        """Return the command of the member's program with its topic and its settings."""
        settings = {"bootstrap_servers": bootstrap_servers, "client_id": self.client_id(index), **self.settings()}
        return [*self.program(), self.topic, json.dumps(settings)]

    def settings(self) -> dict[str, object]:
        """Return the settings that all members of the group share."""
        return {
            "group_id": self.group_id,
            "session_timeout_ms": self.session_timeout_ms,
            "heartbeat_interval_ms": self.session_timeout_ms // 3,
            "auto_commit_interval_ms": self.auto_commit_interval_ms,
        }

    @abstractmethod
    def program(self) -> list[str]:
        """Return the command without topic and settings."""


@dataclass(frozen=True, kw_only=True)
class GoPlan(ClientPlan):
    """Members of a Go library; one program has all of them."""

    @property
    def tool_chain(self) -> ToolChain:
        """Return the Go compiler."""
        return GO

    def program(self) -> list[str]:
        """Return the command of the compiled program."""
        return [str(GO.built() / "member"), str(self.library)]


@dataclass(frozen=True, kw_only=True)
class NodePlan(ClientPlan):
    """Members of kafkajs."""

    @property
    def tool_chain(self) -> ToolChain:
        """Return Node.js with npm."""
        return NODE

    def program(self) -> list[str]:
        """Return the command of the script next to its packages."""
        return ["node", str(NODE.built() / "member.js")]


@dataclass(frozen=True, kw_only=True)
class PythonPlan(ClientPlan):
    """Members of a Python library: kafka-python is a package of Regroup, aiokafka needs an environment of its own."""

    @property
    def tool_chain(self) -> ToolChain | None:
        """Return the environment of aiokafka."""
        return PYTHON if self.library == ClientLibrary.AIOKAFKA else None

    def settings(self) -> dict[str, object]:
        """Return the settings under the names that both libraries give them, with the poll interval."""
        return super().settings() | {"max_poll_interval_ms": self.max_poll_interval_ms}

    def program(self) -> list[str]:
        """Return the command of the program in its environment."""
        interpreter = sys.executable if self.tool_chain is None else PYTHON.built() / "venv" / "bin" / "python"
        program = SOURCES / "python" / f"{self.library.replace('-', '_')}_member.py"
        return [str(interpreter), "-I", str(program)]
