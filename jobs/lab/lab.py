"""The lab: a cluster, topics with steady traffic, and the groups of a scenario."""

from __future__ import annotations

import itertools
import signal
import tempfile
import threading
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Self

from confluent_kafka import Producer

from jobs.config.clusters import EVENTS_TOPIC
from jobs.config.listening import listening
from jobs.config.terminal import say
from jobs.lab import churn
from jobs.lab.cluster import LOOPBACK, LocalCluster
from jobs.lab.members import GroupPlan, RunningGroup
from jobs.lab.other_members import JavaPlan
from jobs.lab.scenario import Scenario
from jobs.lab.scenarios import chosen

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from jobs.config.settings import Settings

MESSAGES_PER_PARTITION_S = 2
DISTINCT_VALUES = 50


class Lab:
    """A scenario that runs in one folder during a `with` block. All its processes end with this process.

    The same `seed` gives the same scripts. `say` receives one line for every action of a script. `address` is that of
    the first broker.
    """

    def __init__(
        self,
        directory: Path,
        scenario: Scenario,
        *,
        seed: int = 1,
        say: Callable[[str], None] = lambda _: None,
        address: tuple[str, int] = LOOPBACK,
    ) -> None:
        overrides = {"group.initial.rebalance.delay.ms": 1000, **scenario.overrides}
        self.directory = directory.resolve()
        self.cluster = LocalCluster(self.directory, brokers=scenario.brokers, overrides=overrides, address=address)
        self._scenario = scenario
        self._seed = seed
        self._say = say
        self._stop = threading.Event()
        self._cleanup = ExitStack()

    @property
    def bootstrap_servers(self) -> str:
        """Return `host:port` of every broker, for clients."""
        return self.cluster.bootstrap_servers

    @property
    def broker_logs(self) -> dict[int, Path]:
        """Return each broker's log: default layout, times in UTC, with lines of the coordinator and the controller."""
        return {broker.node_id: broker.log_file for broker in self.cluster.brokers}

    @property
    def worker_logs(self) -> list[Path]:
        """Return the logs of Connect workers, in the layout of Kafka's own configuration; some may not exist yet."""
        plans = [plan for plan, _ in self._scenario.groups]
        workers = [plan for plan in plans if isinstance(plan, JavaPlan) and plan.layout == "connect"]
        return [plan.log_file(index, self.directory) for plan in workers for index in range(plan.members)]

    def __enter__(self) -> Self:
        for plan, _ in self._scenario.groups:
            plan.prepare()
        with ExitStack() as started:
            started.enter_context(self.cluster)
            self._create_topics()
            groups = [self._group(plan) for plan, _ in self._scenario.groups]
            for group in groups:
                started.callback(group.end)
            scripts = [
                script(group, self._random(group.plan.group_id))
                for group, (_, script) in zip(groups, self._scenario.groups, strict=True)
            ]
            # Incidents on brokers take time, so they run in separate threads.
            incidents = [
                incident(self.cluster, self._random(incident.__name__), self._say)
                for incident in self._scenario.incidents
            ]
            for together in (scripts, *([incident] for incident in incidents)):
                self._start_thread(started, partial(churn.run_scripts, together, self._stop))
            self._start_thread(started, self._produce)
            self._cleanup = started.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._cleanup.close()

    def _random(self, name: str) -> Random:
        return Random(f"{self._seed} {name}")  # noqa: S311 - for a script, not a secret

    def _group(self, plan: GroupPlan) -> RunningGroup:
        return RunningGroup(plan=plan, bootstrap_servers=self.bootstrap_servers, folder=self.directory, say=self._say)

    def _start_thread(self, started: ExitStack, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, daemon=True)
        thread.start()
        started.callback(thread.join)
        started.callback(self._stop.set)

    def create_topic(self, name: str) -> None:
        """Create an empty topic with one partition, unless it exists."""
        self.cluster.create_topics({name: 1})

    def _create_topics(self) -> None:
        limits = {"retention.bytes": str(8 << 20), "segment.bytes": str(4 << 20)}
        self.cluster.create_topics({plan.topic: plan.partitions for plan, _ in self._scenario.groups}, limits)

    def _produce(self) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap_servers, "linger.ms": 100, "log_level": 0})
        values = itertools.cycle(f"lab-{number}".encode() for number in range(DISTINCT_VALUES))
        while not self._stop.wait(1 / MESSAGES_PER_PARTITION_S):
            for plan, _ in self._scenario.groups:
                for partition in range(plan.partitions):
                    producer.produce(plan.topic, next(values), partition=partition)
            producer.poll(0)
        producer.purge()


def run(_settings: Settings, args: argparse.Namespace) -> int:
    """Run the `lab` command until Ctrl-C or SIGTERM, with the scenario and seed of `args`.

    Without `--directory`, its folder is temporary.

    Raises:
        UserError: a scenario is unknown, one of its dependencies is missing, or the folder or address cannot be used.
    """
    address = listening(args.listen) if args.listen else LOOPBACK
    scenario, left_out = chosen(args.scenario)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with ExitStack() as stack:
        directory = args.directory or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="regroup-lab-", ignore_cleanup_errors=True))
        )
        _print("starting brokers" if scenario.brokers > 1 else "starting a broker")
        for sentence in left_out:
            _print(sentence)
        try:
            lab = stack.enter_context(Lab(directory, scenario, seed=args.seed, say=_print, address=address))
            lab.create_topic(EVENTS_TOPIC)
            logs = ", ".join(str(log) for log in [*lab.broker_logs.values(), *lab.worker_logs])
            _print(f"bootstrap servers {lab.bootstrap_servers}, broker log {logs}; Ctrl-C stops it")
            while True:
                # Short, because Python keeps sleeping if a signal arrives just before a sleep begins.
                time.sleep(1)
        except KeyboardInterrupt:
            _print("stopping")
    return 0


def _print(text: str) -> None:
    say(f"{datetime.now(UTC):%H:%M:%S} {text}")
