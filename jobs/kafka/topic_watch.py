"""How far the brokers' `__consumer_offsets` goes now, asked again and again beside everything else."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException

from jobs.kafka.kafka_client import admin, topic_ends
from pipelines.bronze_batch import TOPIC
from pipelines.gold.alerts.freshness import Asked

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

    from jobs.config.settings import Cluster


@dataclass(slots=True)
class TopicWatch:
    """The last answer of one cluster's brokers, None before the first one."""

    cluster: Cluster
    last: Asked | None = None
    _client: AdminClient | None = field(default=None, repr=False)

    def start(self, stopped: threading.Event, seconds: float) -> None:
        """Ask every so many seconds until `stopped`, in a thread of its own: brokers may take long to be missed."""
        threading.Thread(target=self._until, args=[stopped, seconds], daemon=True).start()

    def _until(self, stopped: threading.Event, seconds: float) -> None:
        while not stopped.is_set():
            self.ask()
            stopped.wait(seconds)

    def ask(self) -> Asked:
        """Ask once, and wait for the answer."""
        at = int(time.time() * 1000)
        try:
            self._client = self._client or admin(self.cluster.client())
            found = topic_ends(self._client, TOPIC)
            # Where there is no such topic yet, nothing has ever happened.
            self.last = Asked(at_ms=at, ends=found.ends if found else {})
        except KafkaException as error:
            since = at if self.last is None or self.last.silent_since_ms is None else self.last.silent_since_ms
            self.last = Asked(at_ms=at, ends=None, error=error.args[0].str(), silent_since_ms=since)
        return self.last
