"""Silver tables: the history of each group and of each reassignment. `schemas.tables` explains the notation."""

from __future__ import annotations

from schemas.tables import RESOURCES, Table, columns

GENERATIONS = Table(
    name="generations",
    layer="silver",
    key=("cluster", "group_id", "incarnation", "generation_id"),
    cluster_by=("cluster", "group_id", "joined_at"),
    comment="One row per completed generation (classic) or group epoch (consumer, streams, share groups). Many generations of a loop can be folded into one row (folded_count).",
    columns=columns(f"""
        cluster              | STRING    | Name of the Kafka cluster, chosen by the operator
        group_id             | STRING    | Group
        incarnation          | INT       | Incarnation of the group id: 0, 1, ...; +1 each time the group starts anew, for example after a tombstone
        generation_id        | INT       | Generation, or group epoch
        joined_at            | TIMESTAMP NOT NULL | End of the join phase, when the generation is incremented; the latest possible time if the record lacks it; KIP-848: when the epoch is incremented
        outcome              | STRING NOT NULL | schemas.states.GenerationOutcome: completed, empty, overtaken or open
        group_type           | STRING NOT NULL | schemas.states.GroupType: consumer, connect, streams, schema_registry, share or other
        group_protocol       | STRING NOT NULL | schemas.states.GroupProtocol: classic, consumer (KIP-848), streams (KIP-1071) or share (KIP-932)
        protocol_type        | STRING NOT NULL | Protocol type in the record: consumer, connect, sr, ...
        assignor             | STRING    | Assignor in the record: range, cooperative-sticky, sessioned, uniform, ...
        rebalance_mode       | STRING NOT NULL | schemas.states.RebalanceMode: eager, cooperative, incremental, none or unknown; derived from the resources that members owned
        leader_member_id     | STRING    | Leader at synced_at; NULL if the group is empty
        coordinator_id       | INT       | Broker that coordinates the group; NULL unless a log line or poll contains it
        member_count         | INT NOT NULL | Number of members
        static_member_count  | INT NOT NULL | Number of members with a group.instance.id
        prepared_at          | TIMESTAMP | Start of the rebalance; NULL unless a log line or a record contains it
        prepared_at_earliest | TIMESTAMP NOT NULL | Lower bound of the start
        prepared_at_latest   | TIMESTAMP NOT NULL | Upper bound of the start
        synced_at            | TIMESTAMP | When the leader's assignment was stored; KIP-848: when the target assignment was stored; NULL if never
        completed_at         | TIMESTAMP | When the rebalance completed; NULL while open, or if the next generation replaced it first
        join_ms              | BIGINT    | joined_at - prepared_at; NULL if prepared_at is NULL, or the record lacks joined_at
        sync_ms              | BIGINT    | synced_at - joined_at; NULL if synced_at is NULL, or the record lacks joined_at
        rebalance_ms         | BIGINT    | completed_at - prepared_at; NULL if either is NULL
        rebalance_ms_min     | BIGINT    | Lower bound of the rebalance's length; present once the rebalance completed
        rebalance_ms_max     | BIGINT    | Upper bound of the rebalance's length; present once the rebalance completed
        trigger              | STRING NOT NULL | Why the rebalance began (schemas.states.Trigger)
        trigger_evidence     | STRING NOT NULL | observed, bounded or inferred
        trigger_member_id    | STRING    | Member named by the trigger
        trigger_reason       | STRING    | Server's reason text
        client_reason        | STRING    | Client's reason text
        slowest_member_id    | STRING    | Member for which the other members waited
        slowest_waited_ms    | BIGINT    | How long the other members waited for it
        joined_member_ids    | ARRAY<STRING> | Members that the previous generation did not have
        left_member_ids      | ARRAY<STRING> | Members of the previous generation that are gone
        resources_assigned   | INT       | Number of resources with an owner
        resources_moved      | INT       | Number of resources whose owner differs from their previous owner
        not_costed           | STRING    | schemas.states.NotCosted; NULL if every resource was costed
        resources_not_costed | INT       | Number of resources in the record that were not costed; NULL if every resource was costed
        missing_partitions   | {RESOURCES} | For each topic, the lowest assigned partition that does not exist according to polls; NULL if all exist
        skipped_generations  | INT       | Generation numbers skipped right before this one, because those generations never completed
        is_empty             | BOOLEAN NOT NULL | Whether the last member left
        evidence             | STRING NOT NULL | How the span from prepared_at to completed_at is known
        log_epoch            | INT NOT NULL | Incarnation of the source topic
        source_partition     | INT NOT NULL | Partition of the record from which the row was made
        source_offset        | BIGINT NOT NULL | Offset of the record from which the row was made
        folded_count           | INT       | Number of generations of a loop that were folded into this row; all columns but this one and the next three are those of the first generation; NULL = 1
        last_generation_id   | INT       | Last of these generations
        last_completed_at    | TIMESTAMP | When the last of these generations completed
        unstable_ms          | BIGINT    | Milliseconds during which a rebalance was in progress, of these generations together
    """),
)

GENERATION_MEMBERS = Table(
    name="generation_members",
    layer="silver",
    key=("cluster", "group_id", "incarnation", "generation_id", "member_id"),
    cluster_by=("cluster", "group_id", "valid_from_at"),
    comment="The members of each generation: what each owned before and what each was assigned.",
    columns=columns(f"""
        cluster                | STRING    | Name of the Kafka cluster, chosen by the operator
        group_id               | STRING    | Group
        incarnation            | INT       | Incarnation of the group id
        generation_id          | INT       | Generation, or group epoch
        member_id              | STRING    | Member
        valid_from_at          | TIMESTAMP NOT NULL | Time from which this member id was in the generation
        valid_to_at            | TIMESTAMP | Time until which it was in the generation; NULL while it still is
        group_instance_id      | STRING    | group.instance.id of a static member
        client_id              | STRING    | client.id
        client_host            | STRING    | Host seen by the coordinator, with its leading slash; stored as the setting client_host says
        client_library         | STRING    | schemas.states.ClientLibrary; NULL in rows of Regroup 0.1
        client_library_sign    | STRING    | schemas.states.LibrarySign: what the library was recognized by; NULL if it is unknown
        client_library_evidence | STRING   | observed or inferred; NULL if the library is unknown
        session_timeout_ms     | INT       | Session timeout
        rebalance_timeout_ms   | INT       | Rebalance timeout (max.poll.interval.ms of a consumer)
        is_leader              | BOOLEAN NOT NULL | Whether the member computed the assignment
        previous_generation_id | INT       | Generation that the member reports to have come from; -1 for a new member; NULL if it reports none
        subscribed_topics      | ARRAY<STRING> NOT NULL | Topics subscribed to
        subscription_version   | INT       | Classic consumer: version of its subscription (ConsumerProtocolSubscription)
        subscription_rack      | STRING    | Classic consumer: rack in its subscription; '' if sent empty (librdkafka), NULL if null (Java, franz-go) or before version 3
        user_data_layout       | STRING    | Classic consumer: schemas.states.UserDataLayout of its subscription; NULL in records that an earlier Regroup decoded
        owned                  | {RESOURCES} | Resources owned when the rebalance began; NULL if a classic member's subscription has no such field (before version 1; kafka-go)
        assigned               | {RESOURCES} | Resources running once the rebalance completed
        standby                | {RESOURCES} | Streams: standby tasks; for a classic group, warm-up tasks too, because its records do not distinguish them
        warmup                 | {RESOURCES} | Streams: warm-up tasks; NULL if standby contains them
        connect_delay_ms       | INT       | Connect: rebalance delay sent with the assignment
        rejoined_at_earliest   | TIMESTAMP | Lower bound of the time at which the member entered the join phase
        rejoined_at_latest     | TIMESTAMP | Upper bound of the time at which the member entered the join phase
        reconciled_at          | TIMESTAMP | KIP-848: when the member reached the epoch
    """),
)

STALLS = Table(
    name="stalls",
    layer="silver",
    key=("cluster", "group_id", "incarnation", "stopped_by_offset", "name", "index"),
    cluster_by=("cluster", "group_id", "stopped_at_latest"),
    comment="Stop-the-world windows: each begins when a resource is revoked from its owner, released by it or lost with it, and ends when a member has the resource again.",
    columns=columns("""
        cluster                | STRING    | Name of the Kafka cluster, chosen by the operator
        group_id               | STRING    | Group
        incarnation            | INT       | Incarnation of the group id
        stopped_by_offset      | BIGINT    | Offset of the record in which the owner no longer has the resource
        name                   | STRING    | Topic, subtopology or connector
        index                  | INT       | Partition or task; -1 = the connector itself
        stopped_at_earliest    | TIMESTAMP NOT NULL | Lower bound of the time at which processing stopped
        stopped_at_latest      | TIMESTAMP NOT NULL | Upper bound of the time at which processing stopped
        resumed_at_earliest    | TIMESTAMP | Lower bound of the time at which a member had the resource again; NULL while no member has it
        resumed_at_latest      | TIMESTAMP | Upper bound of that time: at most 5 s later, for a Streams task its own first commit; NULL while no member has the resource
        generation_id          | INT NOT NULL | Generation of the record in which the owner no longer has the resource
        resumed_generation_id  | INT       | Generation that assigned the resource to the member that resumed it; NULL while none did
        from_member_id         | STRING NOT NULL | Owner before the window
        to_member_id           | STRING    | Owner after the window: not one that was gone again before it committed although records waited; NULL while there is none
        stopped_ms_min         | BIGINT    | Lower bound of the window's length
        stopped_ms             | BIGINT    | Best estimate of the window's length
        stopped_ms_max         | BIGINT    | Upper bound of the window's length
        last_commit_at         | TIMESTAMP | Last commit before the window
        last_committed_offset  | BIGINT    | Offset committed by that commit
        first_commit_at        | TIMESTAMP | First commit after the window; if the coordinator assigns, only one within ten minutes
        first_committed_offset | BIGINT    | Offset committed by that commit
        cause                  | STRING NOT NULL | schemas.states.StallCause
        evidence               | STRING NOT NULL | observed, bounded or inferred
        log_epoch              | INT NOT NULL | Incarnation of the source topic
    """),
)

GROUP_EVENTS = Table(
    name="group_events",
    layer="silver",
    key=("cluster", "group_id", "event_at", "kind", "member_id"),
    cluster_by=("cluster", "group_id", "event_at"),
    comment="Events of a group and its members; the timeline draws a marker for each.",
    columns=columns("""
        cluster           | STRING    | Name of the Kafka cluster, chosen by the operator
        group_id          | STRING    | Group
        event_at          | TIMESTAMP | When the event happened
        kind              | STRING    | schemas.states.GroupEventKind
        member_id         | STRING    | Member that the event is about; '' if it is about no single member
        incarnation       | INT NOT NULL | Incarnation of the group id
        group_instance_id | STRING    | group.instance.id of that member
        client_id         | STRING    | client.id of that member
        client_host       | STRING    | Host of that member; stored as the setting client_host says
        generation_id     | INT       | Generation or epoch in which it happened
        detail            | STRING    | Further content of the record or log line
        evidence          | STRING NOT NULL | observed, bounded or inferred
        folded_count        | INT       | Number of equal events that were folded into this row, the first of them, together with their generations; NULL = 1
    """),
)

GROUPS = Table(
    name="groups",
    layer="silver",
    key=("cluster", "group_id"),
    cluster_by=("cluster", "group_id"),
    comment="Last known state of each group, including groups that only commit offsets.",
    columns=columns("""
        cluster                 | STRING    | Name of the Kafka cluster, chosen by the operator
        group_id                | STRING    | Group
        incarnation             | INT NOT NULL | Incarnation of the group id
        group_type              | STRING NOT NULL | schemas.states.GroupType: consumer, connect, streams, schema_registry, share or other
        group_protocol          | STRING    | schemas.states.GroupProtocol; NULL for a group that only commits offsets
        assignor                | STRING    | Assignor of the last generation
        state                   | STRING NOT NULL | schemas.states.GroupState, derived from records and log lines
        state_since_at          | TIMESTAMP | Start of the state
        generation_id           | INT       | Last generation or epoch; NULL for a group that only commits offsets
        member_count            | INT       | Number of members
        open_rebalance_since_at | TIMESTAMP | Start of a rebalance that has not completed; NULL if none is known
        first_seen_at           | TIMESTAMP | First record, commit or log line of the group
        last_record_at          | TIMESTAMP | Last record or commit of the group
        is_deleted              | BOOLEAN NOT NULL | Whether a tombstone removed the group
        evidence                | STRING NOT NULL | How the state is known
    """),
)

REBALANCES = Table(
    name="rebalances",
    layer="silver",
    key=("cluster", "group_id", "incarnation", "first_generation_id"),
    cluster_by=("cluster", "group_id", "started_at_latest"),
    comment="Rebalance episodes. An episode ends when no new rebalance begins within quiet_ms after one completed.",
    columns=columns("""
        cluster                   | STRING    | Name of the Kafka cluster, chosen by the operator
        group_id                  | STRING    | Group
        incarnation               | INT       | Incarnation of the group id
        first_generation_id       | INT       | First generation of the episode
        started_at_latest         | TIMESTAMP NOT NULL | Upper bound of the episode's start
        last_generation_id        | INT NOT NULL | Last generation of the episode
        started_at_earliest       | TIMESTAMP NOT NULL | Lower bound of the episode's start
        ended_at                  | TIMESTAMP | When the last generation of the episode completed; NULL while open
        generations               | INT NOT NULL | Number of generations that completed in the episode
        triggers                  | ARRAY<STRING> NOT NULL | Triggers in order, each once
        lost_resource_seconds_min | DOUBLE NOT NULL | Lower bound of resource-seconds lost
        lost_resource_seconds     | DOUBLE NOT NULL | Best estimate of resource-seconds lost
        lost_resource_seconds_max | DOUBLE NOT NULL | Upper bound of resource-seconds lost
        idle_resource_seconds     | DOUBLE NOT NULL | Resource-seconds during which the group was empty; not counted as lost
        evidence                  | STRING NOT NULL | observed, bounded or inferred
        log_epoch                 | INT NOT NULL | Incarnation of the source topic
        source_offset             | BIGINT NOT NULL | Offset of the first generation's record
        settled_at                | TIMESTAMP | When the first generation completed
        base_log_epoch            | INT       | Incarnation of the source topic at base_offset
        base_offset               | BIGINT    | First record from which a rebuild can resume: the record of the previous generation or, with base_state, the first record of the write that began this generation; NULL unless every resource had an owner then
        base_at                   | TIMESTAMP | When the previous generation completed; with base_state, the time of the last record before base_offset
        base_rebalance_mode       | STRING    | rebalance_mode of the previous generation
        base_state                | STRING    | For a group whose coordinator assigns: the coordinator's state according to the records before base_offset, as JSON
        lost_resource_seconds_low | DOUBLE    | Lower end of the 90 % interval of lost_resource_seconds; NULL = written by Regroup 0.1
        lost_resource_seconds_high | DOUBLE   | Upper end of that interval
    """),
)

RESUME_POINTS = Table(
    name="resume_points",
    layer="silver",
    key=("cluster", "group_id", "incarnation", "first_generation_id"),
    cluster_by=("cluster", "group_id", "settled_at"),
    comment="Points from which a rebuild of a group can resume although the group is not at rest: one every 500 generations and every minute, every second if the group has 1,000 members or resources, or every 100 epochs and five minutes. Only Regroup reads them, and maintain keeps those of the last day.",
    columns=columns("""
        cluster               | STRING    | Name of the Kafka cluster, chosen by the operator
        group_id              | STRING    | Group
        incarnation           | INT       | Incarnation of the group id
        first_generation_id   | INT       | First generation whose rows a rebuild from this point makes
        settled_at            | TIMESTAMP NOT NULL | When that generation completed; if the coordinator assigns, five seconds after that epoch began
        log_epoch             | INT NOT NULL | Incarnation of the source topic
        source_offset         | BIGINT NOT NULL | Offset of that generation's record; if the coordinator assigns, of the first record of its write
        base_log_epoch        | INT NOT NULL | Incarnation of the source topic at base_offset
        base_offset           | BIGINT NOT NULL | First record that the rebuild reads: that of the previous generation; if the coordinator assigns, source_offset
        base_at               | TIMESTAMP NOT NULL | When the previous generation completed; if the coordinator assigns, the time of the last record before base_offset
        base_rebalance_mode   | STRING NOT NULL | rebalance_mode of the previous generation
        begins_block          | BOOLEAN   | Whether a block of generations that may be folded begins here; NULL if the coordinator assigns, and in rows of earlier versions
        block_until_generation_id | BIGINT | Number from which generations belong to the next block; NULL as begins_block
        block_until_at        | TIMESTAMP | Time from which generations belong to the next block; NULL as begins_block
        unfinished_since_at   | TIMESTAMP NOT NULL | Earliest start of the stalls and episodes before the point that later records may change
        unfinished_stalls     | STRING NOT NULL | These stalls: stopped_by_offset, index and MD5 of the name
        unfinished_rebalances | STRING NOT NULL | first_generation_id of these episodes
        state                 | STRING NOT NULL | The group's state according to the records before the point, as JSON
    """),
)

REASSIGNMENTS = Table(
    name="reassignments",
    layer="silver",
    key=("cluster", "topic", "partition", "started_at"),
    cluster_by=("cluster", "started_at", "topic"),
    comment="One row for each change of a partition's replicas, or of their order.",
    columns=columns("""
        cluster               | STRING    | Name of the Kafka cluster, chosen by the operator
        topic                 | STRING    | Topic
        partition             | INT       | Partition
        started_at            | TIMESTAMP | Start in the controller's log; without a log line, when the reassignment was first seen
        started_at_earliest   | TIMESTAMP | Lower bound of the start; NULL if the reassignment was already running when observation began
        original_replicas     | ARRAY<INT> | Replicas before, preferred leader first; if one reassignment replaced another, those before the first; NULL if unknown
        target_replicas       | ARRAY<INT> | Requested replicas, preferred leader first; NULL if unknown
        replicas              | ARRAY<INT> | All replicas as last seen, including those being added and removed
        adding                | ARRAY<INT> | Replicas that are not in the original set
        removing              | ARRAY<INT> | Replicas that are not in the target set
        leader                | INT       | Leader as last seen; after the end, the first leader seen then
        isr                   | ARRAY<INT> | In-sync replicas as last seen; after the end, the first seen then
        state                 | STRING    | schemas.states.ReassignmentState; NULL if the reassignment ended and no source shows how
        phase                 | STRING    | schemas.states.ReassignmentPhase: the furthest of the six phases that was seen
        bytes_total           | BIGINT    | Size of the leader's log times the number of replicas to add, as last seen; NULL if unknown
        bytes_done            | BIGINT    | Part of bytes_total that is on the replicas being added; NULL if unknown
        progress              | DOUBLE    | bytes_done / bytes_total; 1 once completed
        bytes_per_second      | DOUBLE    | Speed over the last 30 s observed; after the end, over the whole reassignment
        eta_at                | TIMESTAMP | Estimated end at that speed; NULL unless the reassignment is running and bytes arrive
        stalled_since_at      | TIMESTAMP | Time since which no byte has arrived; only while stalled
        last_observed_at      | TIMESTAMP NOT NULL | Last poll or log line about the reassignment
        completed_at          | TIMESTAMP | End, also if cancelled or replaced: from the log, or else when it was first seen to have ended; NULL while running
        completed_at_earliest | TIMESTAMP | Lower bound of the end
        sources               | ARRAY<STRING> NOT NULL | Sources that show the reassignment: poll, broker_log, controller_log
        evidence              | STRING NOT NULL | observed (log lines contain start and end), bounded, or inferred (only metadata suggests it)
    """),
)

REASSIGNMENT_SAMPLES = Table(
    name="reassignment_samples",
    layer="silver",
    key=("cluster", "topic", "partition", "observed_at"),
    cluster_by=("cluster", "observed_at", "topic"),
    comment="Progress of each reassignment at each poll.",
    columns=columns("""
        cluster          | STRING    | Name of the Kafka cluster, chosen by the operator
        topic            | STRING    | Topic
        partition        | INT       | Partition
        observed_at      | TIMESTAMP | When the sizes arrived; without sizes, when the list of reassignments arrived
        bytes_done       | BIGINT    | Bytes on the replicas being added; NULL if unknown
        bytes_total      | BIGINT    | Size of the leader's log times the number of replicas to add; NULL if unknown
        progress         | DOUBLE    | bytes_done / bytes_total
        bytes_per_second | DOUBLE    | Speed since the previous sample; NULL for the first
        isr              | ARRAY<INT> | In-sync replicas as last seen by then
        leader           | INT       | Leader as last seen by then
    """),
)

SILVER = (GENERATIONS, GENERATION_MEMBERS, STALLS, GROUP_EVENTS, GROUPS, REBALANCES, RESUME_POINTS)

REASSIGNMENT_TABLES = (REASSIGNMENTS, REASSIGNMENT_SAMPLES)
"""Tables built per cluster, from polls and controllers' log lines. The tables of `SILVER` are built per group."""
