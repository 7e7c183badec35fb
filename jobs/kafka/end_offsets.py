"""End offsets of the topics that groups read, kept around changes of a group, to compute its lag at that time.

Every full poll requests them. They are reported for two minutes after a change, and once from before the change. At
other times, one report in ten minutes shows whether records arrive that nobody works on; more would be most of the data
that a poll stores.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin._listoffsets import OffsetSpec

from jobs.kafka.kafka_client import RESPONSE_WITHIN_S

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

AFTER_S = 120.0
RESTING_S = 600.0
"""Seconds between two reports of a topic whose groups do not change."""

KIND = "end_offsets"

Ends = dict[str, int]


@dataclass(frozen=True, slots=True)
class Seen:
    """The end offsets in one poll: partition (as text, as in JSON) → offset of the next record."""

    at_ms: int
    ends: Ends


@dataclass(slots=True)
class EndOffsets:
    """Selects the end offsets of one cluster that are worth storing."""

    client: AdminClient
    partitions: Mapping[str, int] = field(default_factory=dict)
    _topics: dict[str, frozenset[str]] = field(default_factory=dict)
    _before: dict[str, Seen] = field(default_factory=dict)
    _until: dict[str, float] = field(default_factory=dict)
    _fresh: set[str] = field(default_factory=set)
    _reported: dict[str, float] = field(default_factory=dict)

    def reads(self, group_id: str, topics: Iterable[str], *, has_changed: bool) -> None:
        """Record the topics that a group reads now. `has_changed`: since the last poll. Missing topics are ignored."""
        known, now = self._topics.get(group_id, frozenset()), frozenset(topics) & self.partitions.keys()
        self._topics[group_id] = now
        if has_changed:
            until = time.monotonic() + AFTER_S
            for topic in known | now:
                if self._until.get(topic, 0.0) < time.monotonic():
                    self._fresh.add(topic)
                self._until[topic] = until

    def keep(self, group_ids: Iterable[str]) -> None:
        """Forget all other groups, because they no longer exist."""
        for gone in self._topics.keys() - set(group_ids):
            del self._topics[gone]

    def poll(self) -> tuple[list[tuple[str, Seen]], str | None]:
        """Return the end offsets to store, as (topic, offsets) in order of time, and the error text of a failed
        request.
        """
        read = sorted(set().union(*self._topics.values()) & self.partitions.keys())
        found, why = self._ask(read)
        at, now = int(time.time() * 1000), time.monotonic()
        reported = []
        for topic, ends in found.items():
            seen = Seen(at, ends)
            if topic in self._fresh and topic in self._before:
                reported.append((topic, self._before[topic]))
            is_due = now - self._reported.setdefault(topic, now) >= RESTING_S
            if self._until.get(topic, 0.0) >= now or is_due:
                reported.append((topic, seen))
                self._reported[topic] = now
            self._before[topic] = seen
        self._fresh.clear()
        return sorted(reported, key=lambda each: (each[1].at_ms, each[0])), why

    def _ask(self, topics: Iterable[str]) -> tuple[dict[str, Ends], str | None]:
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        wanted = {TopicPartition(topic, p): latest for topic in topics for p in range(self.partitions[topic])}
        if not wanted:
            return {}, None
        futures: Mapping[Any, Any] = self.client.list_offsets(
            wanted, isolation_level=IsolationLevel.READ_UNCOMMITTED, request_timeout=RESPONSE_WITHIN_S
        )
        found: dict[str, Ends] = {}
        why: str | None = None
        for partition, future in futures.items():
            try:
                offset = future.result().offset
            except KafkaException as error:
                why = error.args[0].str()
                continue
            # For a partition without a leader, the client returns no error and a negative offset.
            if offset >= 0:
                found.setdefault(partition.topic, {})[str(partition.partition)] = offset
        return found, why
