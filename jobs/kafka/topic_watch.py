"""The current end offsets of the brokers' `__consumer_offsets`, requested at intervals in a separate thread."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException

from jobs.config.errors import UserError
from jobs.kafka.kafka_client import admin, topic_ends
from pipelines.gold.alerts.freshness import Asked
from schemas.records import OFFSETS_TOPIC

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

    from jobs.config.clusters import Cluster


@dataclass(slots=True)
class TopicWatch:
    """The last response of one cluster's brokers; None before the first."""

    cluster: Cluster
    last: Asked | None = None
    _client: AdminClient | None = field(default=None, repr=False)

    def start(self, stopped: threading.Event, seconds: float) -> None:
        """Request every `seconds` until `stopped`, in a separate thread, because a lost broker may block a request for
        long.
        """
        threading.Thread(target=self._until, args=[stopped, seconds], daemon=True).start()

    def _until(self, stopped: threading.Event, seconds: float) -> None:
        while not stopped.is_set():
            self.ask()
            stopped.wait(seconds)

    def ask(self) -> Asked:
        """Send one request and wait for the response."""
        at = int(time.time() * 1000)
        try:
            # A client without events to deliver is falsy.
            if self._client is None:
                self._client = admin(self.cluster.client())
            found = topic_ends(self._client, OFFSETS_TOPIC)
            # An empty map if the topic does not exist yet, because then no group has existed.
            self.last = Asked(at_ms=at, ends=found.ends if found else {})
        except (KafkaException, UserError) as error:
            since = at if self.last is None or self.last.silent_since_ms is None else self.last.silent_since_ms
            why = str(error) if isinstance(error, UserError) else error.args[0].str()
            self.last = Asked(at_ms=at, ends=None, error=why, silent_since_ms=since)
        return self.last
