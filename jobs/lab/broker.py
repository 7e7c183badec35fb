"""One KRaft node of Apache Kafka (broker and controller in one process) on this machine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from jobs.config.errors import UserError
from jobs.lab.log_config import log_options
from jobs.processes.ports import free_ports
from jobs.processes.processes import Supervised
from jobs.setup import class_archive_file
from jobs.setup.jars import jars
from jobs.setup.java import java

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

READY_WITHIN_S = 60


class Broker:
    """A broker with its data in one folder, on free ports, that ends with this process.

        with Broker(folder, overrides={"group.initial.rebalance.delay.ms": 0}) as broker:
            Consumer({"bootstrap.servers": broker.bootstrap_servers, ...})

    `overrides` are broker properties. A restart in the same folder gives the same cluster with its data. `joins` is a
    started broker; the new broker joins its cluster with another `node_id`, and is not a controller. `host` is the
    address of this machine that clients use, and `port` its port, or 0 for a free one. `plugins` is a folder with
    classes that the overrides may name.
    """

    def __init__(
        self,
        directory: Path,
        *,
        overrides: Mapping[str, object] | None = None,
        heap: str = "320m",
        node_id: int = 1,
        joins: Broker | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        plugins: Path | None = None,
    ) -> None:
        self.node_id = node_id
        self._joins = joins
        self.directory = directory.resolve()
        self.log_file = self.directory / "server.log"
        self._overrides = dict(overrides or {})
        self._heap = heap
        self._host = host
        self._plugins = plugins
        free, self.controller_port = free_ports(2)
        self._port, self._is_chosen = port or free, bool(port)
        self._process: Supervised | None = None

    @property
    def bootstrap_servers(self) -> str:
        """Return `host:port` for clients; it stays the same after a restart."""
        return f"{self._host}:{self._port}"

    def start(self) -> None:
        """Format the storage on first use, start the broker, and return when it answers requests.

        Raises:
            UserError: the folder or the chosen port cannot be used, or the broker ended or did not answer within a
                minute.
        """
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            why = f"cannot be created ({error.strerror}): name another"
            raise UserError(f"The folder {self.directory} {why}.") from None
        self._check_port()
        properties = self._write_configuration()
        if not (self.directory / "data" / "meta.properties").exists():
            self._format(properties)
        self._process = Supervised(self._java("kafka.Kafka", properties), output=self.directory / "console.log")
        try:
            self._wait_until_ready()
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """Shut the broker down in a controlled way."""
        if self._process:
            self._process.stop()

    def kill(self) -> None:
        """Kill the broker with SIGKILL, like a crash."""
        if self._process:
            self._process.kill()

    def pause(self) -> None:
        """Stop the broker's process, like a machine that hangs, until `resume`. Its connections stay open."""
        if self._process:
            os.kill(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused broker continue."""
        if self._process:
            os.kill(self._process.pid, signal.SIGCONT)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _check_port(self) -> None:
        """Refuse a chosen port that is not free on this machine: another program there would answer instead."""
        if not self._is_chosen:
            return
        try:
            socket.create_server((self._host, self._port)).close()
        except OSError:
            raise UserError(
                f"No broker can listen on {self._host}:{self._port}: the port is in use, or the address is not one of "
                "this machine. Name another."
            ) from None

    def _write_configuration(self) -> Path:
        settings = self._settings() | self._overrides
        properties = self.directory / "server.properties"
        properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), encoding="utf-8")
        return properties

    @property
    def cluster_id(self) -> str:
        """Return Kafka's id of the cluster; the broker must have been started once."""
        meta = (self.directory / "data" / "meta.properties").read_text(encoding="utf-8")
        return next(line for line in meta.splitlines() if line.startswith("cluster.id=")).partition("=")[2]

    def _settings(self) -> dict[str, object]:
        voter = self._joins or self
        controller = f"127.0.0.1:{voter.controller_port}"
        own = f",CONTROLLER://{controller}" if voter is self else ""
        return {
            "process.roles": "broker,controller" if voter is self else "broker",
            "node.id": self.node_id,
            "controller.quorum.voters": f"{voter.node_id}@{controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://{self.bootstrap_servers}{own}",
            "advertised.listeners": f"PLAINTEXT://{self.bootstrap_servers}",
            "log.dirs": self.directory / "data",
            "auto.create.topics.enable": "false",
            "offsets.topic.num.partitions": 8,
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.num.partitions": 2,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            # A crashed broker may register again only after this time; the default is 9 s.
            "broker.session.timeout.ms": 6000,
            # The default, 128 MB, would be a third of the heap.
            "log.cleaner.dedupe.buffer.size": 8 << 20,
            "num.network.threads": 2,
            "num.io.threads": 2,
            "background.threads": 2,
        }

    def run_tool(self, main_class: str, *arguments: str) -> str:
        """Run one of Kafka's command-line tools against this broker, and return what it printed.

        Raises:
            UserError: the tool failed.
        """
        command = self._java(main_class, "--bootstrap-server", self.bootstrap_servers, *arguments)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise UserError(f"{main_class} failed: {(done.stderr or done.stdout).strip()[-300:]}")
        return done.stdout

    def _java(self, main_class: str, *arguments: str | Path) -> list[str | Path]:
        classpath = os.pathsep.join(map(str, [*jars("kafka"), *([self._plugins] if self._plugins else [])]))
        # A small broker starts faster without the second compiler, and would gain little from it later.
        quick = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *class_archive_file.options("kafka")]
        options = [f"-Xmx{self._heap}", *quick, "-Djava.awt.headless=true", *log_options(self.log_file)]
        return [java(), *options, "-cp", classpath, main_class, *arguments]

    def _format(self, properties: Path) -> None:
        new_id = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        cluster_id = self._joins.cluster_id if self._joins else new_id
        command = self._java("kafka.tools.StorageTool", "format", f"--cluster-id={cluster_id}", "-c", properties)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            output = (done.stderr or done.stdout).strip().splitlines()
            reason = next((line for line in output if "Exception" in line), output[-1] if output else "no reason given")
            raise UserError(f"The embedded broker cannot be set up in {self.directory}: {reason.strip()}")

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_WITHIN_S
        while not self._responds():
            if self._process is None or not self._process.is_alive():
                raise UserError(f"The embedded broker ended while starting: its reasons are in {self.log_file}.")
            if time.monotonic() > deadline:
                raise UserError(
                    f"The embedded broker did not answer within {READY_WITHIN_S} s: its reasons are in {self.log_file}."
                )
            time.sleep(0.05)

    def _responds(self) -> bool:
        """Return whether metadata requests are answered. Tries a plain connection first; librdkafka logs refusals."""
        try:
            socket.create_connection((self._host, self._port), timeout=1).close()
        except OSError:
            return False
        client = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        try:
            return bool(client.list_topics(timeout=5).brokers)
        except KafkaException:
            return False
