"""The reasons for a rebalance that coordinators and clients log, and the trigger for each.

Sources of server reasons: `GroupCoordinator.scala` 2.7-3.9, `GroupMetadataManager.java` since 3.6. Sources of client
reasons (KIP-800): `AbstractCoordinator`, `ConsumerCoordinator`, `StreamThread`; other libraries are named where their
reasons stand. `schemas.coordinator_log` explains the notation.
"""

from __future__ import annotations

from schemas.states import Trigger

CLIENT_REASON = "; client reason: "
"""Separates the server's reason from the client's reason, since 3.2. The client's reason is free text."""

NOT_PROVIDED = "not provided"
"""`JoinGroupRequest.DEFAULT_REASON`: the reason logged for older clients and librdkafka, which send none."""

SERVER_REASONS: tuple[tuple[str, Trigger], ...] = (
    ("Adding new member {member_id} with group instance id {group_instance_id}", Trigger.MEMBER_JOINED),
    ("Member {member_id} is joining group during {state}", Trigger.MEMBER_JOINED),
    ("Member {member_id} joining group during {state}", Trigger.MEMBER_JOINED),
    # The member rejoined with different metadata (topics, owned partitions). The server does not know why.
    ("Updating metadata for member {member_id} during {state}", Trigger.UNKNOWN),
    ("Leader {member_id} re-joining group during {state}", Trigger.LEADER_REJOINED),
    ("leader {member_id} re-joining group during {state}", Trigger.LEADER_REJOINED),
    ("Removing member {member_id} on LeaveGroup", Trigger.MEMBER_LEFT),
    ("removing member {member_id} on LeaveGroup", Trigger.MEMBER_LEFT),
    ("explicit `LeaveGroup` request for ({member_ids}) members.", Trigger.MEMBER_LEFT),
    ("removing member {member_id} on heartbeat expiration", Trigger.SESSION_EXPIRED),
    ("removing member {member_id} on heartbeat expiration.", Trigger.SESSION_EXPIRED),
    ("Removing {member_ids} on pending sync request expiration", Trigger.SYNC_TIMEOUT),
    ("error when storing group assignment during SyncGroup (member: {member_id})", Trigger.ASSIGNMENT_FAILED),
    ("Error {_w} when storing group assignment during SyncGroup (member: {member_id})", Trigger.ASSIGNMENT_FAILED),
    ("Error {_w} when storing group assignmentduring SyncGroup (member: {member_id}).", Trigger.ASSIGNMENT_FAILED),
    (
        "Updating metadata for static member {member_id} with instance id {group_instance_id}",
        Trigger.STATIC_MEMBER_CHANGED,
    ),
    (
        (
            "Group's selectedProtocol will change because static member {member_id} with instance id "
            "{group_instance_id} joined with change of protocol"
        ),
        Trigger.STATIC_MEMBER_CHANGED,
    ),
    ("Downgrade group {_} from consumer to classic.", Trigger.DOWNGRADE),
    ("Downgrade group {_} from consumer to classic for member leaving.", Trigger.DOWNGRADE),
    ("Downgrade group {_} from consumer to classic with stale assignment.", Trigger.DOWNGRADE),
    (
        "Downgrade group {_} from consumer to classic for static member replacement with different subscription.",
        Trigger.DOWNGRADE,
    ),
)
"""Texts after "reason: " in a Preparing line; the first match counts. A group over its capacity after loading has no
trigger of its own."""

FENCING_REASONS: tuple[tuple[str, Trigger], ...] = (
    ("the member session expired", Trigger.SESSION_EXPIRED),
    ("the member session expired.", Trigger.SESSION_EXPIRED),
    ("its session expired", Trigger.SESSION_EXPIRED),
    ("the classic member failed to join within the rebalance timeout", Trigger.REJOIN_TIMEOUT),
    ("the member failed to sync within timeout", Trigger.SYNC_TIMEOUT),
    ("it failed to revoke partitions within {duration_ms}ms", Trigger.REJOIN_TIMEOUT),
    ("it failed to transition from epoch {generation_id} within {duration_ms}ms", Trigger.REJOIN_TIMEOUT),
)
"""Texts after "because " in a KIP-848 fencing line."""

REJOIN_REASONS: tuple[tuple[str, Trigger], ...] = (
    ("need to revoke partitions and re-join", Trigger.COOPERATIVE_FOLLOWUP),
    ("cached metadata has changed", Trigger.METADATA_CHANGED),
    ("subscription has changed", Trigger.SUBSCRIPTION_CHANGED),
    ("received assignment does not match the current subscription", Trigger.SUBSCRIPTION_CHANGED),
    # Kafka Streams: 0 means "at once", so that tasks released in the first step can go to their new owners.
    ("triggered followup rebalance scheduled for 0", Trigger.COOPERATIVE_FOLLOWUP),
    ("triggered followup rebalance scheduled for ", Trigger.PROBING),
    ("rebalance enforced by user", Trigger.ENFORCED),
    ("Active tasks corrupted", Trigger.ENFORCED),
    ("Shutdown requested", Trigger.ENFORCED),
    # franz-go 1.22 (`consumer_group.go`)
    ("after revoking what we lost from a rebalance", Trigger.COOPERATIVE_FOLLOWUP),
    ("rejoining because we are the leader and noticed some topics have new partitions", Trigger.METADATA_CHANGED),
    ("leader detected that partitions on topics another member is consuming have changed", Trigger.METADATA_CHANGED),
    ("instance group leader restarted and was reassigned old plan", Trigger.SUBSCRIPTION_CHANGED),
    # sarama 1.50 (`consumer_group.go`), if its configured version is at least 3.1
    ("partitions were added to a subscribed topic", Trigger.METADATA_CHANGED),
    ("a ConsumeClaim handler has exited", Trigger.ENFORCED),
)
"""Beginning of the client's reason when a known member rejoins, and the trigger for it."""

LEAVE_REASONS: tuple[tuple[str, Trigger], ...] = (
    ("consumer poll timeout has expired", Trigger.POLL_TIMEOUT),
    ("worker poll timeout has expired", Trigger.POLL_TIMEOUT),
)
"""Beginning of the client's reason when a member leaves, and the trigger for it."""
