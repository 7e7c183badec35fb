"""Silver: what happened. See `schemas.tables` for the notation."""

from __future__ import annotations

from schemas.tables import RESOURCES, Table, columns

GENERATIONS = Table(
    name="generations",
    layer="silver",
    key=("cluster", "group_id", "incarnation", "generation_id"),
    cluster_by=("cluster", "group_id", "joined_at"),
    comment="One row per completed generation (classic) or group epoch (consumer, streams, share groups).",
    columns=columns(f"""
        cluster              | STRING    | Name the operator gave this Kafka cluster
        group_id             | STRING    | Group
        incarnation          | INT       | 0, 1, ...: +1 each time the id starts anew
        generation_id        | INT       | Generation, or group epoch
        joined_at            | TIMESTAMP NOT NULL | End of the join phase (generation bump); KIP-848: the epoch bump
        outcome              | STRING NOT NULL | schemas.states.GenerationOutcome: completed, empty, overtaken or open
        group_type           | STRING NOT NULL | schemas.states.GroupType: consumer, connect, streams, schema_registry, share or other
        group_protocol       | STRING NOT NULL | schemas.states.GroupProtocol: classic, consumer (KIP-848), streams (KIP-1071) or share (KIP-932)
        protocol_type        | STRING NOT NULL | As in the record: consumer, connect, sr, ...
        assignor             | STRING    | As in the record: range, cooperative-sticky, sessioned, uniform, ...
        rebalance_mode       | STRING NOT NULL | schemas.states.RebalanceMode: eager, cooperative, incremental, none or unknown, from what members owned
        leader_member_id     | STRING    | Leader as of synced_at; NULL when empty
        coordinator_id       | INT       | Coordinating broker, when a log line or poll tells
        member_count         | INT NOT NULL | Members
        static_member_count  | INT NOT NULL | Members with a group.instance.id
        prepared_at          | TIMESTAMP | Start of the rebalance; NULL unless a log line or a record states it
        prepared_at_earliest | TIMESTAMP NOT NULL | It did not start before
        prepared_at_latest   | TIMESTAMP NOT NULL | It started by then
        synced_at            | TIMESTAMP | Leader's assignment stored; KIP-848: target assignment stored; NULL if never
        completed_at         | TIMESTAMP | Group whole again; NULL while open or overtaken
        join_ms              | BIGINT    | joined_at - prepared_at; NULL where an end is not stated
        sync_ms              | BIGINT    | synced_at - joined_at; NULL where an end is not stated
        rebalance_ms         | BIGINT    | completed_at - prepared_at; NULL where an end is not stated
        rebalance_ms_min     | BIGINT    | Lower bound of the rebalance's length; present once completed
        rebalance_ms_max     | BIGINT    | Upper bound of the rebalance's length; present once completed
        trigger              | STRING NOT NULL | Why it began (schemas.states.Trigger)
        trigger_evidence     | STRING NOT NULL | observed, bounded or inferred
        trigger_member_id    | STRING    | Member named by the trigger
        trigger_reason       | STRING    | Server's reason text
        client_reason        | STRING    | Client's reason text
        slowest_member_id    | STRING    | Member that everyone waited for
        slowest_waited_ms    | BIGINT    | How long everyone waited for it
        joined_member_ids    | ARRAY<STRING> | Members that the generation before did not have
        left_member_ids      | ARRAY<STRING> | Members of the generation before that are gone
        resources_assigned   | INT       | Resources with an owner
        resources_moved      | INT       | Resources with another owner than their last one
        not_costed           | STRING    | schemas.states.NotCosted; NULL where every resource was costed
        resources_not_costed | INT       | Resources that the record lists and that were not costed; NULL where every resource was
        missing_partitions   | {RESOURCES} | The lowest assigned partition of each topic that polls say does not exist; NULL where none
        skipped_generations  | INT       | Numbers missing right before this one that never completed
        is_empty             | BOOLEAN NOT NULL | The last member went
        evidence             | STRING NOT NULL | Grade of the span prepared_at to completed_at
        log_epoch            | INT NOT NULL | Life of the source topic
        source_partition     | INT NOT NULL | Partition of the record that proves the row
        source_offset        | BIGINT NOT NULL | Offset of the record that proves the row
    """),
)

GENERATION_MEMBERS = Table(
    name="generation_members",
    layer="silver",
    key=("cluster", "group_id", "incarnation", "generation_id", "member_id"),
    cluster_by=("cluster", "group_id", "valid_from_at"),
    comment="Who was in a generation, what each brought and what each got.",
    columns=columns(f"""
        cluster                | STRING    | Name the operator gave this Kafka cluster
        group_id               | STRING    | Group
        incarnation            | INT       | Life of the group id
        generation_id          | INT       | Generation, or group epoch
        member_id              | STRING    | Member
        valid_from_at          | TIMESTAMP NOT NULL | From when this member id held in the generation
        valid_to_at            | TIMESTAMP | Until when; NULL while it holds
        group_instance_id      | STRING    | group.instance.id of a static member
        client_id              | STRING    | client.id
        client_host            | STRING    | Host the coordinator saw, with its leading slash, or what the setting client_host makes of it
        session_timeout_ms     | INT       | Session timeout
        rebalance_timeout_ms   | INT       | Rebalance timeout (max.poll.interval.ms of a consumer)
        is_leader              | BOOLEAN NOT NULL | The member computed the assignment
        previous_generation_id | INT       | Generation the member came from, as it says; -1 new; NULL where it does not say
        subscribed_topics      | ARRAY<STRING> NOT NULL | Topics subscribed to
        owned                  | {RESOURCES} | Brought into the rebalance
        assigned               | {RESOURCES} | Running once it completed
        standby                | {RESOURCES} | Streams: standby tasks; of a classic group warm-up tasks too, which its records do not tell apart
        warmup                 | {RESOURCES} | Streams: warm-up tasks; NULL where standby holds them
        connect_delay_ms       | INT       | Connect: delay handed out with the assignment
        rejoined_at_earliest   | TIMESTAMP | The member did not come into the join phase before
        rejoined_at_latest     | TIMESTAMP | It had come by then
        reconciled_at          | TIMESTAMP | KIP-848: when the member had reached the epoch
    """),
)

STALLS = Table(
    name="stalls",
    layer="silver",
    key=("cluster", "group_id", "incarnation", "stopped_by_offset", "name", "index"),
    cluster_by=("cluster", "group_id", "stopped_at_latest"),
    comment="Stop-the-world windows: a resource was taken from, or given up by, its owner until somebody had it again.",
    columns=columns("""
        cluster                | STRING    | Name the operator gave this Kafka cluster
        group_id               | STRING    | Group
        incarnation            | INT       | Life of the group id
        stopped_by_offset      | BIGINT    | Offset of the record that shows the resource gone
        name                   | STRING    | Topic, subtopology or connector
        index                  | INT       | Partition or task; -1 = the connector itself
        stopped_at_earliest    | TIMESTAMP NOT NULL | Processing did not stop before
        stopped_at_latest      | TIMESTAMP NOT NULL | Processing had stopped by then
        resumed_at_earliest    | TIMESTAMP | Nobody had it again before; NULL while nobody has it
        resumed_at_latest      | TIMESTAMP | Somebody had it again by then; NULL while nobody has it
        generation_id          | INT NOT NULL | Generation of the record that shows it gone
        resumed_generation_id  | INT       | Generation that gave it to somebody; NULL while nobody has it
        from_member_id         | STRING NOT NULL | Who had it
        to_member_id           | STRING    | Who has it now
        stopped_ms_min         | BIGINT    | Lower bound of the window
        stopped_ms             | BIGINT    | Best estimate of the window
        stopped_ms_max         | BIGINT    | Upper bound of the window
        last_commit_at         | TIMESTAMP | Last commit before the window
        last_committed_offset  | BIGINT    | Offset of that commit
        first_commit_at        | TIMESTAMP | First commit after the window; of a group whose coordinator assigns, within ten minutes
        first_committed_offset | BIGINT    | Offset of that commit
        cause                  | STRING NOT NULL | schemas.states.StallCause
        evidence               | STRING NOT NULL | observed, bounded or inferred
        log_epoch              | INT NOT NULL | Life of the source topic
    """),
)

GROUP_EVENTS = Table(
    name="group_events",
    layer="silver",
    key=("cluster", "group_id", "event_at", "kind", "member_id"),
    cluster_by=("cluster", "group_id", "event_at"),
    comment="The timeline's glyphs.",
    columns=columns("""
        cluster           | STRING    | Name the operator gave this Kafka cluster
        group_id          | STRING    | Group
        event_at          | TIMESTAMP | When it happened
        kind              | STRING    | schemas.states.GroupEventKind
        member_id         | STRING    | Member it is about; '' where none
        incarnation       | INT NOT NULL | Life of the group id
        group_instance_id | STRING    | group.instance.id of that member
        client_id         | STRING    | client.id of that member
        client_host       | STRING    | Host of that member, likewise
        generation_id     | INT       | Generation, or epoch, it belongs to
        detail            | STRING    | What the record or line says beyond that
        evidence          | STRING NOT NULL | observed, bounded or inferred
    """),
)

GROUPS = Table(
    name="groups",
    layer="silver",
    key=("cluster", "group_id"),
    cluster_by=("cluster", "group_id"),
    comment="Last known state of each group; groups that only commit have rows too.",
    columns=columns("""
        cluster                 | STRING    | Name the operator gave this Kafka cluster
        group_id                | STRING    | Group
        incarnation             | INT NOT NULL | Life of the group id
        group_type              | STRING NOT NULL | schemas.states.GroupType: consumer, connect, streams, schema_registry, share or other
        group_protocol          | STRING    | schemas.states.GroupProtocol; NULL for a group that only commits
        assignor                | STRING    | As in the last generation
        state                   | STRING NOT NULL | schemas.states.GroupState, as far as records and log lines tell
        state_since_at          | TIMESTAMP | Since when
        generation_id           | INT       | Last generation or epoch; NULL for a group that only commits
        member_count            | INT       | Members
        open_rebalance_since_at | TIMESTAMP | Start of a rebalance that has not completed; NULL where none is known
        first_seen_at           | TIMESTAMP | First record, commit or line of the group
        last_record_at          | TIMESTAMP | Last record or commit of the group
        is_deleted              | BOOLEAN NOT NULL | A tombstone removed it
        evidence                | STRING NOT NULL | Grade of the state
    """),
)

REBALANCES = Table(
    name="rebalances",
    layer="silver",
    key=("cluster", "group_id", "incarnation", "first_generation_id"),
    cluster_by=("cluster", "group_id", "started_at_latest"),
    comment="Episodes: one ends when no new rebalance begins within quiet_ms after one completed.",
    columns=columns("""
        cluster                   | STRING    | Name the operator gave this Kafka cluster
        group_id                  | STRING    | Group
        incarnation               | INT       | Life of the group id
        first_generation_id       | INT       | First generation of the episode
        started_at_latest         | TIMESTAMP NOT NULL | The episode had begun by then
        last_generation_id        | INT NOT NULL | Last generation of the episode
        started_at_earliest       | TIMESTAMP NOT NULL | The episode did not begin before
        ended_at                  | TIMESTAMP | Its last generation completed; NULL while open
        generations               | INT NOT NULL | Generations that completed in it
        triggers                  | ARRAY<STRING> NOT NULL | Triggers, in order, without repetition
        lost_resource_seconds_min | DOUBLE NOT NULL | Lower bound of resource-seconds lost
        lost_resource_seconds     | DOUBLE NOT NULL | Best estimate of resource-seconds lost
        lost_resource_seconds_max | DOUBLE NOT NULL | Upper bound of resource-seconds lost
        idle_resource_seconds     | DOUBLE NOT NULL | Resource-seconds nobody was there to lose: the group was empty
        evidence                  | STRING NOT NULL | observed, bounded or inferred
        log_epoch                 | INT NOT NULL | Life of the source topic
        source_offset             | BIGINT NOT NULL | Offset of the first generation's record
        settled_at                | TIMESTAMP | When the first generation had completed
        base_log_epoch            | INT       | Life of the source topic at base_offset
        base_offset               | BIGINT    | First record that a rebuild may go on from: that of the generation before or, with base_state, of the write that began this one; NULL unless every resource had an owner then
        base_at                   | TIMESTAMP | When the generation before had completed; with base_state, time of the last record before base_offset
        base_rebalance_mode       | STRING    | rebalance_mode of the generation before
        base_state                | STRING    | Of a group of the consumer protocol, what the records before base_offset tell, as JSON
    """),
)

REASSIGNMENTS = Table(
    name="reassignments",
    layer="silver",
    key=("cluster", "topic", "partition", "started_at"),
    cluster_by=("cluster", "started_at", "topic"),
    comment="One row each time a partition was given other replicas, or its replicas another order.",
    columns=columns("""
        cluster               | STRING    | Name the operator gave this Kafka cluster
        topic                 | STRING    | Topic
        partition             | INT       | Partition
        started_at            | TIMESTAMP | Start, as the controller logged it; else when it was first seen
        started_at_earliest   | TIMESTAMP | It did not start before; NULL where it ran already when watching began
        original_replicas     | ARRAY<INT> | Replicas before, preferred leader first; of one that was replaced under way: before the first; NULL if unknown
        target_replicas       | ARRAY<INT> | Replicas wanted, preferred leader first; NULL if unknown
        replicas              | ARRAY<INT> | All replicas as last seen, those being added and removed included
        adding                | ARRAY<INT> | Replicas that are not in the original set
        removing              | ARRAY<INT> | Replicas that are not in the target set
        leader                | INT       | Leader as last seen; after the end: the first leader seen then
        isr                   | ARRAY<INT> | In-sync replicas, likewise
        state                 | STRING    | schemas.states.ReassignmentState; NULL where it ended and nothing tells how
        phase                 | STRING    | schemas.states.ReassignmentPhase: the furthest step of the six that was seen
        bytes_total           | BIGINT    | Size of the leader's log times the replicas to add, as last seen; NULL if unknown
        bytes_done            | BIGINT    | Of these, on the replicas being added; NULL if unknown
        progress              | DOUBLE    | bytes_done / bytes_total, 1 once completed
        bytes_per_second      | DOUBLE    | Speed over the last 30 s seen; once ended: over all of it
        eta_at                | TIMESTAMP | Estimated end at that speed; NULL unless it is running and moving
        stalled_since_at      | TIMESTAMP | Since when no byte has arrived, while stalled
        last_observed_at      | TIMESTAMP NOT NULL | Last poll or line that says anything of it
        completed_at          | TIMESTAMP | End, also when it was cancelled or replaced: as logged, else when first seen ended; NULL while it runs
        completed_at_earliest | TIMESTAMP | It did not end before
        sources               | ARRAY<STRING> NOT NULL | What told of it: poll, broker_log, controller_log
        evidence              | STRING NOT NULL | observed (a line states start and end), bounded, or inferred (only metadata hints at it)
    """),
)

REASSIGNMENT_SAMPLES = Table(
    name="reassignment_samples",
    layer="silver",
    key=("cluster", "topic", "partition", "observed_at"),
    cluster_by=("cluster", "observed_at", "topic"),
    comment="How far a reassignment was at each poll.",
    columns=columns("""
        cluster          | STRING    | Name the operator gave this Kafka cluster
        topic            | STRING    | Topic
        partition        | INT       | Partition
        observed_at      | TIMESTAMP | When the sizes arrived; where none did, the list of reassignments
        bytes_done       | BIGINT    | On the replicas being added; NULL if unknown
        bytes_total      | BIGINT    | Size of the leader's log times the replicas to add; NULL if unknown
        progress         | DOUBLE    | bytes_done / bytes_total
        bytes_per_second | DOUBLE    | Since the sample before; NULL for the first
        isr              | ARRAY<INT> | In-sync replicas as last seen by then
        leader           | INT       | Leader as last seen by then
    """),
)

SILVER = (GENERATIONS, GENERATION_MEMBERS, STALLS, GROUP_EVENTS, GROUPS, REBALANCES)

REASSIGNMENT_TABLES = (REASSIGNMENTS, REASSIGNMENT_SAMPLES)
"""Built per cluster, from polls and controllers' lines; `SILVER` is built per group."""
