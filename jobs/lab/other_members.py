"""Members that are not librdkafka consumers: Java programs, and instances of a Schema Registry."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from jobs.lab import registry
from jobs.lab.java_programs import compiled
from jobs.lab.log_config import log_options
from jobs.lab.members import GroupPlan
from jobs.processes.ports import free_ports
from jobs.setup.jars import jars
from jobs.setup.java import java

FIRST_REGISTRY_PORT = 8081


@dataclass(frozen=True, kw_only=True)
class JavaPlan(GroupPlan):
    """A group whose members run one program of the folder `java`.

    `settings` are client settings under Kafka's names. In their values, `{group_id}`, `{client_id}`, `{folder}` and
    `{port}` (a free port) are replaced for each member. `table` names the jars needed in addition to Kafka's. `layout`
    names the layout of the log.
    """

    program: str
    settings: Mapping[str, object] = field(default_factory=dict)
    table: str | None = None
    layout: str = "default"
    heap: str = "64m"

    def prepare(self) -> None:
        """Fetch the jars and compile the program."""
        self._classpath()

    def command(self, index: int, bootstrap_servers: str, folder: Path) -> list[str]:
        """Return the `java` command with the jars, the compiled program, its topic and its settings."""
        options = [f"-Xmx{self.heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        options += log_options(self.log_file(index, folder), layout=self.layout)
        command = [str(java()), *options, "-cp", self._classpath(), self.program, self.topic]
        return command + [f"{key}={value}" for key, value in self._config(index, bootstrap_servers, folder).items()]

    def log_file(self, index: int, folder: Path) -> Path:
        """Return the log file of the member at `index`."""
        return folder / f"{self.client_id(index)}.log"

    def _classpath(self) -> str:
        tables = ("kafka", self.table) if self.table else ("kafka",)
        files = [compiled(self.program, tables), *(jar for table in tables for jar in jars(table))]
        return os.pathsep.join(map(str, files))

    def _config(self, index: int, bootstrap_servers: str, folder: Path) -> dict[str, str]:
        own = {"group_id": self.group_id, "client_id": self.client_id(index), "folder": folder}
        port = free_ports(1)[0]
        own_settings = {key: str(value).format(**own, port=port) for key, value in self.settings.items()}
        return {"bootstrap.servers": bootstrap_servers, "client.id": self.client_id(index), **own_settings}


@dataclass(frozen=True, kw_only=True)
class RegistryPlan(GroupPlan):
    """The instances of one Schema Registry; `topic` is the topic in which a real one would store schemas."""

    def command(self, index: int, bootstrap_servers: str, folder: Path) -> list[str]:  # noqa: ARG002 - has no files
        """Return the command of `registry.py` with the settings of this instance."""
        connection = {"bootstrap_servers": bootstrap_servers, "client_id": self.client_id(index)}
        config = {
            "group_id": self.group_id,
            "session_timeout_ms": self.session_timeout_ms,
            "heartbeat_interval_ms": self.session_timeout_ms // 3,
        }
        port = str(FIRST_REGISTRY_PORT + index)
        return [sys.executable, "-I", registry.__file__, port, json.dumps(connection), json.dumps(config)]
