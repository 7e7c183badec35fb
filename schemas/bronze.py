"""Bronze tables: the data as read, append only. `schemas.tables` explains the notation."""

from __future__ import annotations

from schemas.tables import Table, columns

COORDINATOR_RECORDS = Table(
    name="coordinator_records",
    layer="bronze",
    key=("cluster", "log_epoch", "source_partition", "source_offset"),
    cluster_by=("cluster", "group_id", "record_at"),
    comment="Every record of __consumer_offsets that is not an offset commit, decoded.",
    columns=columns("""
        cluster          | STRING    | Name of the Kafka cluster, chosen by the operator
        log_epoch        | INT       | Incarnation of the source topic: +1 each time the topic is recreated or truncated below the read position
        source_partition | INT       | Partition of __consumer_offsets
        source_offset    | BIGINT    | Offset in that partition
        group_id         | STRING    | Group the record belongs to
        record_at        | TIMESTAMP | Timestamp of the record (coordinator's clock); NULL if the record has none
        record_kind      | STRING    | Kafka's name of the record type, e.g. GroupMetadata, ConsumerGroupMemberMetadata
        key_version      | INT       | The int16 at the start of the key: the record type
        value_version    | INT       | The int16 at the start of the value; NULL for a tombstone
        member_id        | STRING    | Member the record belongs to; NULL if the key names no member
        is_tombstone     | BOOLEAN   | Whether the value is null
        body             | STRING    | Decoded key and value as one JSON object, with the field names of Kafka's message schemas
        raw_key          | BINARY    | Key, as stored in Kafka
        raw_value        | BINARY    | Value, as stored in Kafka; NULL for a tombstone
    """),
)

OFFSET_COMMITS = Table(
    name="offset_commits",
    layer="bronze",
    key=("cluster", "log_epoch", "source_partition", "first_offset", "group_id", "topic", "partition"),
    cluster_by=("cluster", "group_id", "last_commit_at"),
    comment="Runs of consecutive commits of one (group, topic, partition). Every group record of the same group ends a run, and so does the end of a time bucket.",
    columns=columns("""
        cluster                      | STRING    | Name of the Kafka cluster, chosen by the operator
        log_epoch                    | INT       | Incarnation of the source topic
        source_partition             | INT       | Partition of __consumer_offsets
        first_offset                 | BIGINT    | Log offset of the run's first record
        group_id                     | STRING    | Committing group
        topic                        | STRING    | Topic of the commit; the topic id as text if only the id is known
        partition                    | INT       | Partition of that topic
        is_tombstone                 | BOOLEAN   | The offset was deleted or expired; such a row holds exactly one record
        third_last_offset            | BIGINT    | Log offset of the run's third-last record; NULL unless the last two records commit the same offset
        before_last_offset           | BIGINT    | Log offset of the run's second-last record; NULL for a run of one record
        last_offset                  | BIGINT    | Log offset of the run's last record
        first_commit_at              | TIMESTAMP | Timestamp of the run's first record
        third_last_commit_at         | TIMESTAMP | Timestamp of the third-last record; NULL unless the last two records commit the same offset
        before_last_commit_at        | TIMESTAMP | Timestamp of the second-last record; NULL for a run of one record
        last_commit_at               | TIMESTAMP | Timestamp of the run's last record
        first_committed_offset       | BIGINT    | Offset committed by the first record
        third_last_committed_offset  | BIGINT    | Offset committed by the third-last record; NULL unless the last two records commit the same offset
        before_last_committed_offset | BIGINT    | Offset committed by the second-last record; NULL for a run of one record
        last_committed_offset        | BIGINT    | Offset committed by the last record
        leader_epoch                 | INT       | Leader epoch in the last record; -1 if the record has none
        committer_library            | STRING    | Client library that the metadata of the last record shows (inferred); NULL if it shows none
        committer_id                 | STRING    | Member id (franz-go) or node and process (brod) in that metadata; NULL if it names none
        topic_id                     | STRING    | Topic id, the same in all records of the run; NULL if the records have none (value versions up to 3)
        commits                      | BIGINT    | Number of records in the run
    """),
)

COORDINATOR_EVENTS = Table(
    name="coordinator_events",
    layer="bronze",
    key=("cluster", "source_id", "line_no"),
    cluster_by=("cluster", "group_id", "event_at"),
    comment="Parsed log lines: of group coordinators, of Connect workers, and of controllers and brokers about the replicas of partitions.",
    columns=columns("""
        cluster             | STRING    | Name of the Kafka cluster, chosen by the operator
        source_id           | STRING    | File name, or topic-partition from which the line was read
        line_no             | BIGINT    | Line number in that file, from 1; or offset in that partition
        event_at            | TIMESTAMP | Timestamp printed in the line
        event_precision_ms  | INT       | The event happened within [event_at, event_at + event_precision_ms)
        event_kind          | STRING    | Kind of event: see schemas.coordinator_log.EventKind and schemas.controller_log
        broker_id           | INT       | Broker that printed the line; NULL if unknown
        source_partition    | INT       | Partition of __consumer_offsets named in the line; NULL if none
        group_id            | STRING    | Group the line is about; NULL for lines about a partition
        generation_id       | INT       | Generation or epoch named in the line
        member_id           | STRING    | Member named in the line (the member that caused the event)
        client_id           | STRING    | client.id of the Connect worker that printed the line
        group_instance_id   | STRING    | group.instance.id of the member named in the line
        replaced_member_id  | STRING    | Member id that a static member's new process replaced
        leader_member_id    | STRING    | Leader named in the line
        member_ids          | ARRAY<STRING> | All members named in the line, if there are several
        member_count        | INT       | Number of members, as printed in the line
        static_member_count | INT       | Number of static members, as printed in the line
        trigger             | STRING    | Trigger given by the reason (schemas.states.Trigger); NULL for lines without a reason
        reason              | STRING    | Server's reason text
        client_reason       | STRING    | Client's reason text (KIP-800); NULL if not provided
        duration_ms         | BIGINT    | Duration printed in the line
        topic               | STRING    | Topic of the partition, for lines about a partition's replicas
        partition           | INT       | That partition
        topic_id            | STRING    | Topic id; NULL if the line does not contain it
        partition_epoch     | INT       | Epoch of the partition's state in the line: +1 with each change
        replicas            | ARRAY<INT> | All replicas after the change, including those being added and removed; NULL if the line does not contain them
        replicas_before     | ARRAY<INT> | All replicas before the change; NULL if the line does not contain them
        adding              | ARRAY<INT> | Replicas being added; NULL if the line does not contain them
        removing            | ARRAY<INT> | Replicas being removed; NULL if the line does not contain them
        isr                 | ARRAY<INT> | In-sync replicas; NULL if the line does not contain them
        leader              | INT       | Leader; NULL if the line does not contain it
        raw                 | STRING    | The whole line
        source_binding      | STRING    | Record header or topic that identifies the line's source according to the settings; NULL if the settings have no such rule
    """),
)

ADMIN_OBSERVATIONS = Table(
    name="admin_observations",
    layer="bronze",
    key=("cluster", "observed_at", "source", "kind", "subject"),
    cluster_by=("cluster", "kind", "observed_at"),
    comment="Admin API responses that `poll` stored.",
    columns=columns("""
        cluster     | STRING    | Name of the Kafka cluster, chosen by the operator
        observed_at | TIMESTAMP | When the response arrived
        source      | STRING    | Client that sent the request
        kind        | STRING    | group_list, group, topic, reassignments, log_dirs, error, ...
        subject     | STRING    | Group, topic or call that the observation is about
        body        | STRING    | The observation as JSON
    """),
)

CLIENT_METRICS = Table(
    name="client_metrics",
    layer="bronze",
    key=("cluster", "source_id", "line_no"),
    cluster_by=("cluster", "group_id", "measured_at"),
    comment="What consumers measured themselves and pushed to the brokers (KIP-714), one row per consumer and push.",
    columns=columns("""
        cluster                 | STRING    | Name of the Kafka cluster, chosen by the operator
        source_id               | STRING    | Topic-partition from which the push was read
        line_no                 | BIGINT    | Offset in that partition
        group_id                | STRING    | Group of the consumer, from its own settings
        member_id               | STRING    | Member id; NULL if the push names none: before the first join, or where the broker's plugin does not keep it
        measured_at             | TIMESTAMP | When the consumer measured, by its own clock
        received_at             | TIMESTAMP | Timestamp of the message on the events topic; NULL if it has none
        client_instance_id      | STRING    | Id that the broker gave to the consumer; NULL if the broker's plugin does not keep it
        group_instance_id       | STRING    | group.instance.id of a static member
        client_id               | STRING    | client.id; NULL if the broker's plugin does not keep it
        client_rack             | STRING    | client.rack
        software_name           | STRING    | Name of the client software, e.g. apache-kafka-java; NULL if the broker's plugin does not keep it
        software_version        | STRING    | Version of the client software; NULL as above
        assigned_partitions     | INT       | Partitions assigned to the consumer
        counted_from_at         | TIMESTAMP | Since when the next three columns count: the push before, or the start of the consumer; NULL if not known
        rebalances              | BIGINT    | Rebalances that the consumer took part in (Java)
        failed_rebalances       | BIGINT    | Rebalances that failed for it (Java)
        rebalance_ms            | DOUBLE    | Milliseconds that it spent in rebalances, from the revocation to the assignment
        rebalance_ms_avg        | DOUBLE    | Average length of its rebalances in the last push interval (librdkafka) or the last minute (Java)
        rebalance_ms_max        | DOUBLE    | Longest of these rebalances
        last_rebalance_at_earliest | TIMESTAMP | Lower bound of the end of its last rebalance (Java counts whole seconds)
        last_rebalance_at_latest | TIMESTAMP | Upper bound of that time
        last_poll_at_earliest   | TIMESTAMP | Lower bound of its last call of poll (Java counts whole seconds); NULL before the first
        last_poll_at_latest     | TIMESTAMP | Upper bound of that time
        poll_gap_ms_avg         | DOUBLE    | Average time between two calls of poll in the last minute (Java)
        poll_gap_ms_max         | DOUBLE    | Longest time between two calls of poll in the last minute (Java)
        poll_idle_ratio         | DOUBLE    | Fraction of the time in which poll waited for records: near 0 means that the application has no time left
        assigned_callback_ms_max | DOUBLE   | Longest onPartitionsAssigned (Java)
        revoked_callback_ms_max | DOUBLE    | Longest onPartitionsRevoked (Java)
        lost_callback_ms_max    | DOUBLE    | Longest onPartitionsLost (Java)
        commit_ms_avg           | DOUBLE    | Average time of an offset commit
        commit_ms_max           | DOUBLE    | Longest time of an offset commit
        source_binding          | STRING    | Record header or topic that identifies the message's source according to the settings; NULL if the settings have no such rule
    """),
)

QUARANTINE = Table(
    name="quarantine",
    layer="bronze",
    key=("cluster", "source", "log_epoch", "source_partition", "source_offset"),
    cluster_by=("cluster", "source", "record_at"),
    comment="Every input that could not be read.",
    columns=columns("""
        cluster          | STRING    | Name of the Kafka cluster, chosen by the operator
        source           | STRING    | __consumer_offsets, the events topic, or a file name
        log_epoch        | INT       | Incarnation of the source topic; 0 for files
        source_partition | INT       | Partition; -1 for files
        source_offset    | BIGINT    | Offset; line number for files
        record_at        | TIMESTAMP | Timestamp of the record; NULL if it has none
        reason           | STRING    | Reason: schemas.states.QuarantineReason
        detail           | STRING    | Exact error, in words
        raw_key          | BINARY    | Key, as stored in Kafka
        raw_value        | BINARY    | Value, as stored in Kafka
        lines            | BIGINT    | Log lines that the row stands for, if only a few lines of a batch are kept; NULL for all other rows
    """),
)

COVERAGE = Table(
    name="coverage",
    layer="bronze",
    key=("cluster", "source", "source_partition", "log_epoch", "from_offset"),
    cluster_by=("cluster", "source"),
    comment="Offset ranges that were read or missed, per source partition.",
    columns=columns("""
        cluster          | STRING    | Name of the Kafka cluster, chosen by the operator
        source           | STRING    | __consumer_offsets, the events topic, or a file name
        source_partition | INT       | Partition; -1 for files
        log_epoch        | INT       | Incarnation of the source topic
        from_offset      | BIGINT    | First offset of the range
        to_offset        | BIGINT    | Last offset of the range + 1
        is_gap           | BOOLEAN   | Whether the range was missed
        gap_reason       | STRING    | Why the range was missed, in words; NULL for a range that was read
        from_at          | TIMESTAMP | Time of the first record read in the range
        to_at            | TIMESTAMP | Time of the last record read in the range
        records          | BIGINT    | Number of records read
        skipped          | BIGINT    | Records read and ignored (log lines that are not lifecycle lines)
        quarantined      | BIGINT    | Records read and quarantined
    """),
)

BRONZE = (
    COORDINATOR_RECORDS,
    OFFSET_COMMITS,
    COORDINATOR_EVENTS,
    ADMIN_OBSERVATIONS,
    CLIENT_METRICS,
    QUARANTINE,
    COVERAGE,
)
