"""Log lines of controllers and brokers about the replicas of a partition: each wording, with its versions and class.

Sources, in branches 2.4 to 3.9 of Kafka and in logs of 4.3.1: `ReplicationControlManager.java` (KRaft controllers,
since 3.0), `KafkaController.scala` (ZooKeeper controllers, 2.4 to 3.9) and `Partition.scala` (`state.change.logger` of
every broker). In the default configuration, the first two write to controller.log, the third to state-change.log.

`PARTITION_WORDINGS` are lines of every broker about its partitions of `__consumer_offsets` only: `Partition.scala`
(`kafka.cluster.Partition`) and `ReplicaManager.scala`, 2.7 to 4.4. They are in server.log, with the coordinator's lines.

A wording is Kafka's message with a placeholder `{name}` for each argument, without the prefix that names the process.
`{topic}` is a valid topic name, `{list}` a list of broker ids, `{fields}` a record as Java prints it, `{_}` any text.
Other names are columns of `coordinator_events`.
"""

# ruff: noqa: E501  (a table is easier to read with one wording per line)
from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ControllerEventKind(StrEnum):
    """The kind of event that a line logs."""

    PARTITION_CREATED = "partition_created"
    ASSIGNMENT_CHANGED = "assignment_changed"
    REASSIGNMENT_CAUGHT_UP = "reassignment_caught_up"
    REASSIGNMENT_REFUSED = "reassignment_refused"
    REASSIGNMENTS_ALTERED = "reassignments_altered"
    REPLICA_STATE = "replica_state"


class PartitionEventKind(StrEnum):
    """The kind of event that a broker logs about a partition of `__consumer_offsets`."""

    ISR_SHRINKING = "isr_shrinking"
    ISR_EXPANDING = "isr_expanding"
    ISR_UPDATED = "isr_updated"
    ISR_UNDER_MIN = "isr_under_min"
    APPEND_FAILED = "append_failed"


CONTROLLER_LOGGERS = {
    "org.apache.kafka.controller.ReplicationControlManager": "ReplicationControlManager",
    "kafka.controller.KafkaController": "KafkaController",
    "state.change.logger": "logger",
}
"""Logger name → its short form, as `%c{1}` prints it."""

PARTITION_LOGGERS = {
    "kafka.cluster.Partition": "Partition",
    "kafka.server.ReplicaManager": "ReplicaManager",
}
"""Logger name → its short form. These loggers also print many lines about other topics, which are not read."""

PREFIXES = {
    "Partition": r"\[Partition __consumer_offsets-(?P<source_partition>\d{1,9}) broker=(?P<broker_id>\d{1,9})\] ",
    "ReplicaManager": r"\[ReplicaManager broker=(?P<broker_id>\d{1,9})\] ",
    "ReplicationControlManager": r"\[(?:QuorumController id=|Controller )(?P<broker_id>\d{1,9})\] ",
    "KafkaController": r"\[Controller id=(?P<broker_id>\d{1,9})\] ",
    "logger": r"\[Broker id=(?P<broker_id>\d{1,9})\] ",
}
"""Prefix of each logger's messages, with the id of the controller or broker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerWording:
    """One wording: `logger` is the short name that `%c{1}` prints, `text` the message without its prefix."""

    kind: ControllerEventKind | PartitionEventKind
    logger: str
    since: str
    until: str | None
    text: str


_KINDS: dict[str, ControllerEventKind | PartitionEventKind] = {
    kind.value: kind for kinds in (ControllerEventKind, PartitionEventKind) for kind in kinds
}


def _wordings(table: str) -> tuple[ControllerWording, ...]:
    """Return the wordings in a text with one per line: `kind | logger | since-until | text`."""
    return tuple(_wording(*line.strip().split(" | ", 3)) for line in table.strip().splitlines())


def _wording(kind: str, logger: str, versions: str, text: str) -> ControllerWording:
    since, _, until = versions.strip().partition("-")
    return ControllerWording(
        kind=_KINDS[kind.strip()], logger=logger.strip(), since=since, until=until or None, text=text
    )


CONTROLLER_WORDINGS = _wordings("""
partition_created      | ReplicationControlManager | 3.0-    | Replayed PartitionRecord for new partition {topic}-{partition} with topic ID {topic_id} and PartitionRegistration({fields}).
assignment_changed     | ReplicationControlManager | 3.0-    | Replayed partition assignment change PartitionChangeRecord({fields}) for topic {topic}
assignment_changed     | ReplicationControlManager | 4.3-    | Replayed partition assignment change PartitionChangeRecord({fields}) for topic {topic}. (isr: {list} -> {isr}, replicaSet: {replicas_before} -> {replicas}, partitionEpoch: {partition_epoch}, leaderEpoch: {_})
reassignment_refused   | ReplicationControlManager | 3.0-    | Unable to alter partition reassignment for {topic}:{partition} because of an {reason}
reassignments_altered  | ReplicationControlManager | 3.0-    | Successfully altered {_n} out of {_n} partition reassignment(s).
assignment_changed     | KafkaController           | 2.4-3.9 | Successfully updated assignment of partition {topic}-{partition} to ReplicaAssignment(replicas={bare_replicas}, addingReplicas={bare_adding}, removingReplicas={bare_removing})
reassignment_caught_up | KafkaController           | 2.4-3.9 | Target replicas {_} have all caught up with the leader for reassigning partition {topic}-{partition}
replica_state          | logger                    | 2.4-3.2 | Leader {topic}-{partition} starts at leader epoch {_n} from offset {_n} with high watermark {_n} ISR {isr} addingReplicas {adding} removingReplicas {removing}.{_}
replica_state          | logger                    | 3.2-    | Leader {topic}-{partition} with topic id {topic_id} starts at leader epoch {_n} from offset {_n} with partition epoch {partition_epoch}, high watermark {_n}, ISR {isr}, adding replicas {adding} and removing replicas {removing}{_}
replica_state          | logger                    | 3.2-4.0 | Skipped the become-{_w} state change for {topic}-{partition} with topic id {topic_id} and partition state LeaderAndIsrPartitionState({fields}) since it is already {_}
replica_state          | logger                    | 4.0-    | Skipped the become-{_w} state change for {topic}-{partition} with topic id {topic_id}, partition registration PartitionRegistration({fields}) and isNew={_w} since it is already {_}
""")

PARTITION_WORDINGS = _wordings("""
isr_shrinking          | Partition                  | 2.7-    | Shrinking ISR from {bare_list} to {bare_isr}. Leader: {_}
isr_expanding          | Partition                  | 2.7-    | Expanding ISR from {bare_list} to {bare_isr}
isr_under_min          | Partition                  | 3.5-    | ISR updated to {bare_isr} (under-min-isr) and version updated to {_n}
isr_updated            | Partition                  | 2.7-    | ISR updated to {bare_isr}  and version updated to {_n}
isr_updated            | Partition                  | 2.7-    | ISR updated to {bare_isr} and version updated to {_n}
append_failed          | ReplicaManager             | 2.7-    | Error processing append operation on partition __consumer_offsets-{source_partition}
""")
"""Of `ReplicaManager`, the line after this one has the error. `under-min-isr`: fewer replicas are in sync than
`min.insync.replicas` requires, so the partition refuses every record that must be on all of them."""
