"""The lab as a whole: a broker, topics with steady traffic, and five groups that churn for as long as it runs."""

from __future__ import annotations

import sys
import tempfile
import threading
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Self

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from jobs.lab import churn
from jobs.lab.broker import Broker
from jobs.lab.members import Group, GroupPlan

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from jobs.lab.churn import Script
    from jobs.settings import Settings

MESSAGES_PER_PARTITION_S = 2

SCENARIO: list[tuple[GroupPlan, Script]] = [
    (GroupPlan(group_id="orders-enricher", topic="orders", partitions=6, members=3), churn.deploys),
    (
        GroupPlan(
            group_id="payments-settler", topic="payments", partitions=6, members=3, assignor="cooperative-sticky"
        ),
        churn.deploys,
    ),
    (
        GroupPlan(
            group_id="inventory-sync",
            topic="inventory",
            partitions=4,
            members=2,
            is_static=True,
            session_timeout_ms=10_000,
            auto_commit_interval_ms=2_000,
        ),
        churn.static_bounces,
    ),
    (
        GroupPlan(group_id="search-indexer", topic="products", partitions=4, members=2, auto_commit_interval_ms=2_000),
        churn.crashes,
    ),
    (
        GroupPlan(
            group_id="report-builder",
            topic="reports",
            partitions=4,
            members=2,
            max_poll_interval_ms=6_000,
            auto_commit_interval_ms=5_000,
        ),
        churn.slow_polls,
    ),
]


class Lab:
    """A churning cluster in one folder, for as long as the `with` block lasts; nothing of it outlives this process.

    The same `seed` gives the same script. `say` hears one line for everything the script does.
    """

    def __init__(self, directory: Path, *, seed: int = 1, say: Callable[[str], None] = lambda _: None) -> None:
        self.broker = Broker(directory, overrides={"group.initial.rebalance.delay.ms": 1000})
        self._seed = seed
        self._say = say
        self._stop = threading.Event()
        self._cleanup = ExitStack()

    @property
    def bootstrap_servers(self) -> str:
        """`host:port` for clients."""
        return self.broker.bootstrap_servers

    @property
    def log_file(self) -> Path:
        """The broker's log: default layout, times in UTC, holds the coordinator's lines."""
        return self.broker.log_file

    def __enter__(self) -> Self:
        with ExitStack() as started:
            started.enter_context(self.broker)
            self._create_topics()
            groups = [self._group(plan) for plan, _ in SCENARIO]
            for group in groups:
                started.callback(group.end)
            scripts = [
                script(group, Random(f"{self._seed} {group.plan.group_id}"))  # noqa: S311 - a script, not a secret
                for group, (_, script) in zip(groups, SCENARIO, strict=True)
            ]
            self._start_thread(started, lambda: churn.run_scripts(scripts, self._stop))
            self._start_thread(started, self._produce)
            started.callback(self._stop.set)
            self._cleanup = started.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._cleanup.close()

    def _group(self, plan: GroupPlan) -> Group:
        output = self.broker.directory / "members.log"
        return Group(plan=plan, bootstrap_servers=self.bootstrap_servers, output=output, say=self._say)

    def _start_thread(self, started: ExitStack, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, daemon=True)
        thread.start()
        started.callback(thread.join)

    def create_topic(self, name: str) -> None:
        """An empty topic of one partition; it may be there already."""
        self._create([NewTopic(name, 1, 1)])

    def _create_topics(self) -> None:
        limits = {"retention.bytes": str(8 << 20), "segment.bytes": str(4 << 20)}
        self._create([NewTopic(plan.topic, plan.partitions, 1, config=limits) for plan, _ in SCENARIO])

    def _create(self, topics: list[NewTopic]) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        for creation in admin.create_topics(topics).values():
            try:
                creation.result()
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise

    def _produce(self) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap_servers, "linger.ms": 100, "log_level": 0})
        while not self._stop.wait(1 / MESSAGES_PER_PARTITION_S):
            for plan, _ in SCENARIO:
                for partition in range(plan.partitions):
                    producer.produce(plan.topic, b"lab", partition=partition)
            producer.poll(0)
        producer.purge()


def run(_settings: Settings, args: argparse.Namespace) -> int:
    """The `lab` command: in a temporary folder, with the script of `args.seed`, until Ctrl-C."""
    with ExitStack() as stack:
        directory = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="regroup-lab-", ignore_cleanup_errors=True))
        )
        _print("starting a broker")
        try:
            lab = stack.enter_context(Lab(directory, seed=args.seed, say=_print))
            _print(f"bootstrap servers {lab.bootstrap_servers}, broker log {lab.log_file}; Ctrl-C stops it")
            threading.Event().wait()
        except KeyboardInterrupt:
            _print("stopping")
    return 0


def _print(text: str) -> None:
    sys.stdout.write(f"{datetime.now(UTC):%H:%M:%S} {text}\n")
    sys.stdout.flush()
