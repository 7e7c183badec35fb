"""Scenarios in which brokers or members fail so that whole groups stand still."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from jobs.lab import churn, incidents, stuck_members
from jobs.lab.members import ConsumerPlan
from jobs.lab.other_members import JavaPlan
from jobs.lab.scenario import Scenario

if TYPE_CHECKING:
    from jobs.lab.churn import Script
    from jobs.lab.incidents import Incident
    from jobs.lab.members import GroupPlan

CONNECT_WORKERS = JavaPlan(
    group_id="warehouse-connect",
    topic="warehouse-lines",
    partitions=1,
    members=3,
    program="ConnectWorker",
    table="connect",
    layout="connect",
    heap="128m",
    settings={
        "group.id": "{group_id}",
        "listeners": "http://127.0.0.1:{port}",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        "config.storage.topic": "{group_id}-configs",
        "offset.storage.topic": "{group_id}-offsets",
        "offset.storage.partitions": 1,
        "status.storage.topic": "{group_id}-status",
        "status.storage.partitions": 1,
        **{f"{kind}.storage.replication.factor": 1 for kind in ("config", "offset", "status")},
        "plugin.discovery": "service_load",
        "session.timeout.ms": 6_000,
        "heartbeat.interval.ms": 2_000,
        "scheduled.rebalance.max.delay.ms": 15_000,
        "lab.connectors": "stock-lines,price-lines,supplier-lines,return-lines",
        "lab.file": "{folder}/server.log",
    },
)


def _three_brokers(incident: Incident, groups: Sequence[tuple[GroupPlan, Script]]) -> Scenario:
    """Return a scenario with an offsets topic of three partitions, one led by each broker.

    So every broker coordinates one of three groups.
    """
    return Scenario(groups=groups, overrides={"offsets.topic.num.partitions": 3}, brokers=3, incidents=[incident])


FAILOVER = _three_brokers(
    incidents.coordinator_losses,
    groups=[
        (
            # Longer than the move to another coordinator; otherwise each loss of a broker would end all sessions.
            ConsumerPlan(group_id=group_id, topic=topic, partitions=4, members=2, session_timeout_ms=30_000),
            churn.staggered_joins,
        )
        for group_id, topic in (("bookings-a", "bookings"), ("bookings-b", "seats"), ("bookings-c", "fares"))
    ],
)
# Shorter sessions than a dead broker's, so that clients give up before the group has its new coordinator.
SESSIONS = _three_brokers(
    incidents.coordinator_losses,
    groups=[
        (
            ConsumerPlan(group_id=group_id, topic=topic, partitions=4, members=2, assignor=assignor),
            churn.staggered_joins,
        )
        for group_id, topic, assignor in (
            ("tickets-a", "tickets", "range"),
            ("tickets-b", "venues", "cooperative-sticky"),
            ("tickets-c", "tours", "range"),
        )
    ],
)
STUCK = Scenario(
    groups=[
        (
            ConsumerPlan(group_id="quotes-sync", topic="quotes", partitions=4, members=3),
            stuck_members.blocked_member,
        ),
        (
            ConsumerPlan(group_id="rates-sync", topic="rates", partitions=4, members=3, session_timeout_ms=240_000),
            stuck_members.frozen_member,
        ),
        (
            ConsumerPlan(group_id="dues-sync", topic="dues", partitions=4, members=2, session_timeout_ms=240_000),
            stuck_members.silent_leader,
        ),
    ]
)
OFFSETS = _three_brokers(
    incidents.sick_offsets_partitions,
    groups=[
        (ConsumerPlan(group_id=group_id, topic=topic, partitions=4, members=2), churn.staggered_joins)
        for group_id, topic in (("parcels-a", "parcels"), ("parcels-b", "labels"), ("parcels-c", "routes"))
    ],
)
LOST = _three_brokers(
    incidents.coordinator_loss,
    groups=[
        (
            ConsumerPlan(group_id=group_id, topic=topic, partitions=6, members=3, session_timeout_ms=30_000),
            stuck_members.hanging_member,
        )
        for group_id, topic in (("meters-a", "meters"), ("meters-b", "sensors"), ("meters-c", "alarms"))
    ],
)
MISMATCH = Scenario(
    groups=[
        (
            replace(CONNECT_WORKERS, group_id="branch-connect", topic="branch-lines"),
            stuck_members.leader_without_configuration,
        )
    ]
)
