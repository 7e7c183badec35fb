"""Bronze: what was read, append only. See `schemas.tables` for the notation."""

from __future__ import annotations

from schemas.tables import Table, columns

COORDINATOR_RECORDS = Table(
    name="coordinator_records",
    layer="bronze",
    key=("cluster", "log_epoch", "source_partition", "source_offset"),
    cluster_by=("cluster", "group_id", "record_at"),
    comment="Every non-commit record of __consumer_offsets, decoded.",
    columns=columns("""
        cluster          | STRING    | Name the operator gave this Kafka cluster
        log_epoch        | INT       | Life of the source topic: +1 each time it was recreated or truncated below our position
        source_partition | INT       | Partition of __consumer_offsets
        source_offset    | BIGINT    | Offset in that partition
        group_id         | STRING    | Group the record belongs to
        record_at        | TIMESTAMP | Timestamp of the record (coordinator's clock); NULL where the record has none
        record_kind      | STRING    | Kafka's name of the record type, e.g. GroupMetadata, ConsumerGroupMemberMetadata
        key_version      | INT       | The int16 in front of the key: the record type
        value_version    | INT       | The int16 in front of the value; NULL for a tombstone
        member_id        | STRING    | Member the record belongs to, where its key names one
        is_tombstone     | BOOLEAN   | The value is null
        body             | STRING    | Decoded key and value as one JSON object, field names as in Kafka's message schemas
        raw_key          | BINARY    | Key as stored
        raw_value        | BINARY    | Value as stored; NULL for a tombstone
    """),
)

OFFSET_COMMITS = Table(
    name="offset_commits",
    layer="bronze",
    key=("cluster", "log_epoch", "source_partition", "first_offset", "group_id", "topic", "partition"),
    cluster_by=("cluster", "group_id", "last_commit_at"),
    comment="Runs of consecutive commits of one (group, topic, partition), cut at every group record of the same group and at a time bucket.",
    columns=columns("""
        cluster                      | STRING    | Name the operator gave this Kafka cluster
        log_epoch                    | INT       | Life of the source topic
        source_partition             | INT       | Partition of __consumer_offsets
        first_offset                 | BIGINT    | Log offset of the run's first record
        group_id                     | STRING    | Committing group
        topic                        | STRING    | Topic committed for; its id as text where only the id is known
        partition                    | INT       | Partition of that topic
        is_tombstone                 | BOOLEAN   | The offset was deleted or expired; such a row is never folded
        third_last_offset            | BIGINT    | Log offset of the last record but two; NULL unless the last two commit the same offset
        before_last_offset           | BIGINT    | Log offset of the last record but one; NULL for a run of one
        last_offset                  | BIGINT    | Log offset of the run's last record
        first_commit_at              | TIMESTAMP | Timestamp of the run's first record
        third_last_commit_at         | TIMESTAMP | Timestamp of the last record but two; NULL unless the last two commit the same offset
        before_last_commit_at        | TIMESTAMP | Timestamp of the last record but one; NULL for a run of one
        last_commit_at               | TIMESTAMP | Timestamp of the run's last record
        first_committed_offset       | BIGINT    | Offset committed by the first record
        third_last_committed_offset  | BIGINT    | Offset committed by the last record but two; NULL unless the last two commit the same offset
        before_last_committed_offset | BIGINT    | Offset committed by the last record but one
        last_committed_offset        | BIGINT    | Offset committed by the last record
        leader_epoch                 | INT       | Leader epoch in the last record; -1 where it states none
        topic_id                     | STRING    | Id of the topic, the same in all records of the run; NULL where they state none (value versions up to 3)
        commits                      | BIGINT    | Records in the run
    """),
)

COORDINATOR_EVENTS = Table(
    name="coordinator_events",
    layer="bronze",
    key=("cluster", "source_id", "line_no"),
    cluster_by=("cluster", "group_id", "event_at"),
    comment="Parsed lines of group coordinators and Connect workers, and of controllers on partitions' replicas.",
    columns=columns("""
        cluster             | STRING    | Name the operator gave this Kafka cluster
        source_id           | STRING    | File name, or topic-partition the line came through
        line_no             | BIGINT    | Line number (from 1) in that file, or offset in that partition
        event_at            | TIMESTAMP | Time printed in the line
        event_precision_ms  | INT       | The event happened within [event_at, event_at + event_precision_ms)
        event_kind          | STRING    | What the line says: see schemas.coordinator_log.EventKind and schemas.controller_log
        broker_id           | INT       | Broker that printed it, where known
        source_partition    | INT       | Partition of __consumer_offsets named in the line, where one is
        group_id            | STRING    | Group the line is about; NULL for lines about a partition
        generation_id       | INT       | Generation or epoch the line names
        member_id           | STRING    | Member the line names (the one that caused it)
        client_id           | STRING    | client.id of the Connect worker that printed the line
        group_instance_id   | STRING    | Its group.instance.id
        replaced_member_id  | STRING    | Member id that a static member's new process replaced
        leader_member_id    | STRING    | Leader named in the line
        member_ids          | ARRAY<STRING> | All members named, where the line names several
        member_count        | INT       | Members the line counts
        static_member_count | INT       | Static members the line counts
        trigger             | STRING    | Trigger that the reason states (schemas.states.Trigger); NULL for lines without a reason
        reason              | STRING    | Server's reason text
        client_reason       | STRING    | Client's reason text (KIP-800); NULL where not provided
        duration_ms         | BIGINT    | Duration the line states
        topic               | STRING    | Topic of the partition that a controller's or state-change line is about
        partition           | INT       | That partition
        topic_id            | STRING    | Id of that topic, where the line names it
        partition_epoch     | INT       | Epoch of the partition's state that the line tells: +1 with each change
        replicas            | ARRAY<INT> | All replicas after the change, those being added and removed included; NULL where the line does not say
        replicas_before     | ARRAY<INT> | All replicas before the change, where the line says
        adding              | ARRAY<INT> | Replicas being added; NULL where the line does not say
        removing            | ARRAY<INT> | Replicas being removed; NULL where the line does not say
        isr                 | ARRAY<INT> | In-sync replicas, where the line says
        leader              | INT       | Leader, where the line says
        raw                 | STRING    | The line
        source_binding      | STRING    | Record header or topic by which the settings bind the line's source; NULL where they bind none
    """),
)

ADMIN_OBSERVATIONS = Table(
    name="admin_observations",
    layer="bronze",
    key=("cluster", "observed_at", "source", "kind", "subject"),
    cluster_by=("cluster", "kind", "observed_at"),
    comment="What the admin poll saw.",
    columns=columns("""
        cluster     | STRING    | Name the operator gave this Kafka cluster
        observed_at | TIMESTAMP | When the answer arrived
        source      | STRING    | Client that asked
        kind        | STRING    | group_list, group, topic, reassignments, log_dirs, error, ...
        subject     | STRING    | Group, topic or call it is about
        body        | STRING    | The observation as JSON
    """),
)

QUARANTINE = Table(
    name="quarantine",
    layer="bronze",
    key=("cluster", "source", "log_epoch", "source_partition", "source_offset"),
    cluster_by=("cluster", "source", "record_at"),
    comment="Everything that could not be read.",
    columns=columns("""
        cluster          | STRING    | Name the operator gave this Kafka cluster
        source           | STRING    | __consumer_offsets, the events topic, or a file name
        log_epoch        | INT       | Life of the source topic; 0 for files
        source_partition | INT       | Partition; -1 for files
        source_offset    | BIGINT    | Offset; line number for files
        record_at        | TIMESTAMP | Timestamp of the record, where it has one
        reason           | STRING    | Why: schemas.states.QuarantineReason
        detail           | STRING    | What exactly, in words
        raw_key          | BINARY    | Key as stored
        raw_value        | BINARY    | Value as stored
    """),
)

COVERAGE = Table(
    name="coverage",
    layer="bronze",
    key=("cluster", "source", "source_partition", "log_epoch", "from_offset"),
    cluster_by=("cluster", "source"),
    comment="Spans read and spans missed, per source partition.",
    columns=columns("""
        cluster          | STRING    | Name the operator gave this Kafka cluster
        source           | STRING    | __consumer_offsets, the events topic, or a file name
        source_partition | INT       | Partition; -1 for files
        log_epoch        | INT       | Life of the source topic
        from_offset      | BIGINT    | First offset of the span
        to_offset        | BIGINT    | One past its last offset
        is_gap           | BOOLEAN   | The span was not read
        gap_reason       | STRING    | Why not, in words; NULL for a span that was read
        from_at          | TIMESTAMP | Time of the first record read in the span
        to_at            | TIMESTAMP | Time of the last record read in the span
        records          | BIGINT    | Records read
        skipped          | BIGINT    | Read and of no interest (log lines that are no lifecycle lines)
        quarantined      | BIGINT    | Read and quarantined
    """),
)

BRONZE = (COORDINATOR_RECORDS, OFFSET_COMMITS, COORDINATOR_EVENTS, ADMIN_OBSERVATIONS, QUARANTINE, COVERAGE)
