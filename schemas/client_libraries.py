"""Facts about client libraries: how each is recognised, what it offers, and what its members do.

Sources, read in the code unless noted: kafka-clients and kafka-streams 4.4 (`ConsumerConfig`, `AbstractCoordinator`),
librdkafka 2.15 (`rdkafka_assignor.c`, `rdkafka_cgrp.c`, CHANGELOG), sarama 1.61 (`consumer_group.go`), franz-go 1.22
(`config.go`, `consumer_group.go`), kafka-go 0.4.51 (`consumergroup.go`), kafkajs 2.2.4 (`src/consumer`), aiokafka 0.14
(`group_coordinator.py`), kafka-python 3.0 (`coordinator`), confluent-kafka-javascript 1.10 (`_consumer.js`), ruby-kafka
1.5, brod 4.6 (`brod_group_coordinator.erl`).
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from schemas.states import ClientLibrary as Library

PROTOCOL_TYPES = {"connect": Library.CONNECT, "sr": Library.SCHEMA_REGISTRY}
"""Protocol types that only one kind of member has."""

ASSIGNORS = {
    "stream": Library.STREAMS,
    "RoundRobinAssigner": Library.KAFKAJS,
    "roundrobin_v2": Library.BROD,
    "rack-affinity": Library.KAFKA_GO,
}
"""Names of assignors that only one library has."""

CLIENT_IDS: tuple[tuple[re.Pattern[str], Library], ...] = (
    # Before franz-go, because a program's name may begin with "kgo".
    (re.compile(r".+@.+ \(github\.com/segmentio/kafka-go\)"), Library.KAFKA_GO),
    (re.compile(r".+-StreamThread-\d+-consumer"), Library.STREAMS),
    # A sink's consumer. A worker, `connect-…`, has its own protocol type; a consumer of that name is an application.
    (re.compile(r"connector-consumer-.+-\d+"), Library.CONNECT),
    (re.compile(r"consumer-.+-\d+"), Library.JAVA),
    (re.compile(r"rdkafka|karafka"), Library.LIBRDKAFKA),
    (re.compile(r"sarama"), Library.SARAMA),
    (re.compile(r"kgo"), Library.FRANZ_GO),
    (re.compile(r"kafkajs"), Library.KAFKAJS),
    (re.compile(r"aiokafka-\d+(\.\w+)*"), Library.AIOKAFKA),
    (re.compile(r"kafka-python-\d+(\.\w+)*"), Library.KAFKA_PYTHON),
    (re.compile(r"ruby-kafka"), Library.RUBY_KAFKA),
    (re.compile(r"'?[^/\s']+@[^/\s']+'?/<\d+\.\d+\.\d+>"), Library.BROD),
)
"""Default client ids, which must match completely."""

REASONS: tuple[tuple[str, Library], ...] = (
    ("beginning to manage the group lifecycle", Library.FRANZ_GO),
    ("rejoining from normal rebalance", Library.FRANZ_GO),
    ("rejoining after we previously errored and backed off", Library.FRANZ_GO),
    ("after revoking what we lost from a rebalance", Library.FRANZ_GO),
    ("rejoining because we are the leader and noticed some topics have new partitions", Library.FRANZ_GO),
    ("leader detected that partitions on topics another member is consuming have changed", Library.FRANZ_GO),
    ("instance group leader restarted and was reassigned old plan", Library.FRANZ_GO),
    ("client leaving group per normal operation", Library.FRANZ_GO),
    ("group is rebalancing", Library.SARAMA),
    ("member id is not known by the group coordinator", Library.SARAMA),
    ("generation id is not current", Library.SARAMA),
    ("group instance id has been fenced", Library.SARAMA),
    ("partitions were added to a subscribed topic", Library.SARAMA),
    ("a ConsumeClaim handler has exited", Library.SARAMA),
    ("the heartbeat goroutine has stopped", Library.SARAMA),
    ("kafka: ConsumeClaim did not exit", Library.SARAMA),
    ("triggered followup rebalance scheduled for", Library.STREAMS),
    ("Active tasks corrupted", Library.STREAMS),
    ("Shutdown requested", Library.STREAMS),
    ("worker poll timeout has expired", Library.CONNECT),
    ("need to re-join with the given member-id", Library.JAVA),
    ("rebalance failed due to", Library.JAVA),
    ("encountered", Library.JAVA),
    ("need to revoke partitions and re-join", Library.JAVA),
    ("cached metadata has changed", Library.JAVA),
    ("subscription has changed", Library.JAVA),
    ("consumer poll timeout has expired", Library.JAVA),
)
"""Beginnings of the reasons that only one library states. "the consumer is being closed" is Java's and sarama's.
Streams and Connect state Java's reasons too; their protocol shows them."""

Watchdog = Literal["leave", "session", "none"]
"""What happens to a member whose handler takes too long: it leaves when its poll interval ends, its session expires, or
nothing until the next rebalance."""


class LibraryFacts(NamedTuple):
    """What a library offers and what its members do.

    `cooperative`, `static_membership`, `consumer_protocol`: the first version with KIP-429, KIP-345 and KIP-848, "any"
    if all have it; None if the library does not offer it. `session_ms`, `heartbeat_ms` and `rebalance_ms` are defaults
    in milliseconds. `repeats_commits`: whether a member that only polls commits unchanged offsets again.
    `leaves_on_close`: whether a dynamic member sends LeaveGroup when it is closed. `close_ms`: the milliseconds that an
    idle member waits on average between its last poll and LeaveGroup when it is closed. `commits_while_blocked`:
    whether a member whose handler is blocked commits unchanged offsets in the background.
    """

    cooperative: str | None
    static_membership: str | None
    consumer_protocol: str | None
    session_ms: int
    heartbeat_ms: int
    rebalance_ms: int
    watchdog: Watchdog
    repeats_commits: bool
    leaves_on_close: bool = True
    close_ms: int = 0
    commits_while_blocked: bool = False


FACTS: dict[Library, LibraryFacts] = {
    Library.JAVA: LibraryFacts("2.4", "2.3", "4.0", 45_000, 3_000, 300_000, "leave", repeats_commits=True),
    Library.STREAMS: LibraryFacts(
        None, "2.3", None, 45_000, 3_000, 300_000, "leave", repeats_commits=False, leaves_on_close=False
    ),
    Library.CONNECT: LibraryFacts(None, None, None, 10_000, 3_000, 60_000, "leave", repeats_commits=False),
    Library.LIBRDKAFKA: LibraryFacts("1.6", "1.4", "2.12", 45_000, 3_000, 300_000, "leave", repeats_commits=False),
    Library.CONFLUENT_KAFKA_JAVASCRIPT: LibraryFacts(
        "0.1.9", "any", "1.6", 30_000, 3_000, 600_000, "leave", repeats_commits=False
    ),
    # 1.60.1 has the assignor, but only 1.61 keeps claims across a rebalance.
    Library.SARAMA: LibraryFacts("1.61", "1.34", None, 10_000, 3_000, 60_000, "none", repeats_commits=False),
    Library.FRANZ_GO: LibraryFacts("any", "any", "1.22", 45_000, 3_000, 60_000, "none", repeats_commits=False),
    Library.KAFKA_GO: LibraryFacts(None, None, None, 30_000, 3_000, 30_000, "none", repeats_commits=False),
    Library.KAFKAJS: LibraryFacts(
        None, None, None, 30_000, 3_000, 60_000, "session", repeats_commits=False, close_ms=2_500
    ),
    Library.AIOKAFKA: LibraryFacts(
        None, "0.10", None, 10_000, 3_000, 10_000, "leave", repeats_commits=True, commits_while_blocked=True
    ),
    Library.KAFKA_PYTHON: LibraryFacts("3.0", "2.3", None, 45_000, 3_000, 300_000, "leave", repeats_commits=True),
    Library.RUBY_KAFKA: LibraryFacts(None, None, None, 30_000, 10_000, 60_000, "session", repeats_commits=False),
    Library.BROD: LibraryFacts(None, "4.6", None, 30_000, 5_000, 30_000, "none", repeats_commits=False),
}
"""Libraries of which something is known. Streams is cooperative by itself, with a protocol of its own (KIP-1071). A
kafkajs consumer that is closed waits for the fetch under way, at most its maxWaitTimeInMs of 5,000.
"""
