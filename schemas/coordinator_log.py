"""The lifecycle log lines of group coordinators and Connect workers: each wording, with its Kafka versions and class.

Sources, in branches 2.7 to 3.9 and releases 4.3.1 and 4.4.0 of Kafka:

- the Scala coordinator (until 3.9): `GroupCoordinator.scala`, `GroupMetadataManager.scala`, `GroupMetadata.scala`;
- the Java coordinator (since 3.6, default since 4.0): `GroupMetadataManager.java`, `ClassicGroup.java`,
  `GroupCoordinatorShard.java`, `OffsetMetadataManager.java`, `CoordinatorRuntime.java`;
- Connect workers: `DistributedHerder.java`, `WorkerCoordinator.java`, `AbstractCoordinator.java`.

A wording is Kafka's message with a placeholder for each argument. `{column}` is stored in that column of
`coordinator_events`. `{state}` is a state's name, `{_}` any text, `{_n}` a number and `{_w}` a word; these are not
stored. In `kind/trigger`, the trigger (`schemas.states.Trigger`) is the cause according to this line alone.
`since-until` are the first and the last Kafka version that print the line; without `until`, 4.4 prints it.
"""

# ruff: noqa: E501  (a table is easier to read with one wording per line)
from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from schemas.states import Trigger


class EventKind(StrEnum):
    """The kind of event that a line logs."""

    PREPARING = "preparing"
    STABILIZED = "stabilized"
    ASSIGNMENT_RECEIVED = "assignment_received"
    EMPTY = "empty"
    MEMBER_ID_GIVEN = "member_id_given"
    MEMBER_ADDED = "member_added"
    STATIC_ADDED = "static_added"
    STATIC_REPLACED = "static_replaced"
    STATIC_REPLACED_WITHOUT_REBALANCE = "static_replaced_without_rebalance"
    FENCED = "fenced"
    LEFT = "left"
    PENDING_LEFT = "pending_left"
    SESSION_EXPIRED = "session_expired"
    PENDING_EXPIRED = "pending_expired"
    REMOVED_NOT_REJOINED = "removed_not_rejoined"
    COULD_NOT_COMPLETE = "could_not_complete"
    LEADER_REPLACED = "leader_replaced"
    REMOVED_NOT_SYNCED = "removed_not_synced"
    EMPTY_ASSIGNMENT = "empty_assignment"
    WRITE_FAILED = "write_failed"
    DEAD = "dead"
    DELETED = "deleted"
    SIMPLE_GROUP_CREATED = "simple_group_created"
    COORDINATOR_ELECTED = "coordinator_elected"
    COORDINATOR_LOADING = "coordinator_loading"
    COORDINATOR_LOADED = "coordinator_loaded"
    COORDINATOR_LOAD_FAILED = "coordinator_load_failed"
    COORDINATOR_RESIGNED = "coordinator_resigned"
    COORDINATOR_UNLOADING = "coordinator_unloading"
    COORDINATOR_UNLOADED = "coordinator_unloaded"
    GROUP_LOADED = "group_loaded"
    GROUP_UNLOADED = "group_unloaded"
    MEMBER_JOINED = "member_joined"
    MEMBER_LEFT = "member_left"
    TEMPORARILY_LEFT = "temporarily_left"
    EPOCH_BUMPED = "epoch_bumped"
    TARGET_COMPUTED = "target_computed"
    MEMBER_ASSIGNED = "member_assigned"
    MEMBER_FENCED = "member_fenced"
    SUBSCRIPTION_UPDATED = "subscription_updated"
    CONVERTED = "converted"
    CONVERSION_REFUSED = "conversion_refused"
    WORKER_REBALANCING = "worker_rebalancing"
    WORKER_SYNCED = "worker_synced"
    WORKER_ASSIGNED = "worker_assigned"
    WORKER_STARTING = "worker_starting"
    WORKER_STARTED = "worker_started"
    WORKER_STOPPED = "worker_stopped"
    WORKER_STOPPING = "worker_stopping"
    WORKER_UNREACHABLE = "worker_unreachable"


NUMBERS = frozenset(
    {"generation_id", "source_partition", "member_count", "static_member_count", "duration_ms", "broker_id", "_n"}
)
WORDS = frozenset({"state", "_w"})

OLD_LOGGERS = {
    f"kafka.coordinator.group.{name}": name for name in ("GroupCoordinator", "GroupMetadataManager", "GroupMetadata")
}
"""Logger name → class of the Scala coordinator."""

NEW_LOGGERS = {
    f"org.apache.kafka.coordinator.{path}": path.rpartition(".")[2]
    for path in (
        "group.GroupMetadataManager",
        "group.OffsetMetadataManager",
        "group.GroupCoordinatorShard",
        "group.classic.ClassicGroup",
        "group.generic.GenericGroup",
        "group.runtime.CoordinatorRuntime",
        "common.runtime.CoordinatorRuntime",
    )
}
"""Logger name → class of the Java coordinator. Only 3.6 has `generic`; the runtime moved to `common` in 4.0."""

WORKER_LOGGERS = {
    f"org.apache.kafka.connect.runtime.distributed.{name}": name for name in ("DistributedHerder", "WorkerCoordinator")
}
"""Logger name → class of a Connect worker."""

WORKER_PREFIX = "[Worker clientId={client_id}, groupId={group_id}] "
"""The `LogContext` that a worker's herder and coordinator print before each message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """One wording: `logger` is the class that prints it, `text` its message without the process's prefix."""

    kind: EventKind
    trigger: Trigger | None
    logger: str
    since: str
    until: str | None
    text: str


def _wordings(table: str) -> tuple[Wording, ...]:
    """Return the wordings in a text with one per line: `kind[/trigger] | class | since-until | text`."""
    return tuple(_wording(*line.strip().split(" | ", 3)) for line in table.strip().splitlines())


def _wording(what: str, logger: str, versions: str, text: str) -> Wording:
    kind, _, trigger = what.strip().partition("/")
    since, _, until = versions.strip().partition("-")
    return Wording(
        kind=EventKind(kind),
        trigger=Trigger(trigger) if trigger else None,
        logger=logger.strip(),
        since=since,
        until=until or None,
        text=text,
    )


OLD_WORDINGS = _wordings("""
preparing                            | GroupCoordinator     | 2.7-3.9 | Preparing to rebalance group {group_id} in state {state} with old generation {generation_id} (__consumer_offsets-{source_partition}) (reason: {reason})
stabilized                           | GroupCoordinator     | 2.7-2.7 | Stabilized group {group_id} generation {generation_id} (__consumer_offsets-{source_partition})
stabilized                           | GroupCoordinator     | 2.8-3.9 | Stabilized group {group_id} generation {generation_id} (__consumer_offsets-{source_partition}) with {member_count} members
assignment_received                  | GroupCoordinator     | 2.7-2.7 | Assignment received from leader for group {group_id} for generation {generation_id}
assignment_received                  | GroupCoordinator     | 2.8-2.8 | Assignment received from leader for group {group_id} for generation {generation_id}. The group has {member_count} members, {static_member_count} of which are static.
assignment_received                  | GroupCoordinator     | 3.0-3.9 | Assignment received from leader {leader_member_id} for group {group_id} for generation {generation_id}. The group has {member_count} members, {static_member_count} of which are static.
empty                                | GroupCoordinator     | 2.7-3.9 | Group {group_id} with generation {generation_id} is now empty (__consumer_offsets-{source_partition})
member_id_given                      | GroupCoordinator     | 2.7-3.9 | Dynamic member with unknown member id joins group {group_id} in {state} state. Created a new member id {member_id} and request the member to rejoin with this id.
member_added                         | GroupCoordinator     | 3.0-3.9 | Pending dynamic member with id {member_id} joins group {group_id} in {state} state. Adding to the group now.
member_added                         | GroupCoordinator     | 2.7-3.9 | Dynamic Member with unknown member id joins group {group_id} in {state} state. Created a new member id {member_id} for this member and add to the group.
static_added                         | GroupCoordinator     | 2.7-2.8 | Static Member with unknown member id joins group {group_id} in {state} state. Created a new member id {member_id} for this member and add to the group.
static_added                         | GroupCoordinator     | 2.7-2.8 | Adding new static member Some({group_instance_id}) to group {group_id} with member id {member_id}.
static_added                         | GroupCoordinator     | 3.0-3.9 | Static member with groupInstanceId={group_instance_id} and unknown member id joins group {group_id} in {state} state. Created a new member id {member_id} for this member and add to the group.
static_replaced                      | GroupCoordinator     | 2.7-2.8 | Static member Some({group_instance_id}) of group {group_id} with unknown member id rejoins, assigning new member id {member_id}, while old member id {replaced_member_id} will be removed.
static_replaced                      | GroupCoordinator     | 3.0-3.9 | Static member with groupInstanceId={group_instance_id} and unknown member id joins group {group_id} in {state} state. Replacing previously mapped member {replaced_member_id} with this groupInstanceId.
static_replaced_without_rebalance    | GroupCoordinator     | 2.7-3.9 | Static member which joins during Stable stage and doesn't affect selectProtocol will not trigger rebalance.
fenced                               | GroupMetadata        | 2.7-2.8 | given member.id {member_id} is identified as a known static member {group_instance_id}, but not matching the expected member.id {replaced_member_id} during {_}, will respond with instance fenced error
fenced                               | GroupCoordinator     | 3.0-3.9 | Request memberId={member_id} for static member with groupInstanceId={group_instance_id} is fenced by current memberId={replaced_member_id} during operation {_}
left/member_left                     | GroupCoordinator     | 2.7-2.8 | Member[group.instance.id {group_instance_id}, member.id {member_id}] in group {group_id} has left, removing it from the group
left/member_left                     | GroupCoordinator     | 3.0-3.1 | Member MemberMetadata(memberId={member_id}, groupInstanceId={group_instance_id}, clientId={_}, clientHost={_}, sessionTimeoutMs={_n}, rebalanceTimeoutMs={_n}, supportedProtocols={_}) has left group {group_id} through explicit `LeaveGroup` request
left/member_left                     | GroupCoordinator     | 3.2-3.9 | Member MemberMetadata(memberId={member_id}, groupInstanceId={group_instance_id}, clientId={_}, clientHost={_}, sessionTimeoutMs={_n}, rebalanceTimeoutMs={_n}, supportedProtocols={_}) has left group {group_id} through explicit `LeaveGroup`; client reason: {client_reason}
pending_left                         | GroupCoordinator     | 2.7-2.8 | Pending member {member_id} is leaving group {group_id}.
pending_left                         | GroupCoordinator     | 3.0-3.9 | Pending member with memberId={member_id} has left group {group_id} through explicit `LeaveGroup` request
session_expired/session_expired      | GroupCoordinator     | 2.7-3.9 | Member {member_id} in group {group_id} has failed, removing it from the group
pending_expired                      | GroupCoordinator     | 2.7-3.9 | Pending member {member_id} in group {group_id} has been removed after session timeout expiration.
removed_not_rejoined/rejoin_timeout  | GroupCoordinator     | 2.7-2.7 | Group {group_id} remove dynamic members who haven't joined: {member_ids}
removed_not_rejoined/rejoin_timeout  | GroupCoordinator     | 2.8-3.9 | Group {group_id} removed dynamic members who haven't joined: {member_ids}
could_not_complete                   | GroupCoordinator     | 2.7-3.9 | Group {group_id} could not complete rebalance because no members rejoined
could_not_complete                   | GroupMetadata        | 2.7-3.9 | Group leader [member.id: {leader_member_id}, group.instance.id: {group_instance_id}] failed to join before rebalance timeout, and the group couldn't proceed to next generationbecause no member joined.
leader_replaced                      | GroupMetadata        | 2.7-3.9 | Group leader [member.id: {replaced_member_id}, group.instance.id: {group_instance_id}] failed to join before rebalance timeout, while new leader MemberMetadata(memberId={leader_member_id}, groupInstanceId={_} was elected.
removed_not_synced/sync_timeout      | GroupCoordinator     | 2.8-3.9 | Group {group_id} removed members who haven't sent their sync request: {member_ids}
empty_assignment                     | GroupCoordinator     | 2.7-3.9 | Setting empty assignments for members {member_ids} of {group_id} for generation {generation_id}
empty_assignment                     | GroupCoordinator     | 2.7-3.9 | Sending empty assignment to member {member_id} of {group_id} for generation {generation_id} with no errors
write_failed                         | GroupCoordinator     | 2.7-3.9 | Failed to write empty metadata for group {group_id}: {reason}
write_failed                         | GroupCoordinator     | 2.7-3.9 | Failed to persist metadata for group {group_id}: {reason}
write_failed                         | GroupMetadataManager | 2.7-3.9 | Appending metadata message for group {group_id} generation {generation_id} failed due to {reason}, returning UNKNOWN error code to the client
write_failed                         | GroupMetadataManager | 2.7-3.9 | Appending metadata message for group {group_id} generation {generation_id} failed due to unexpected error: {reason}
dead                                 | GroupMetadataManager | 2.7-3.9 | Group {group_id} transitioned to Dead in generation {generation_id}
deleted                              | GroupCoordinator     | 2.7-3.9 | The following groups were deleted: {group_id}. A total of {_n} offsets were removed.
coordinator_elected                  | GroupCoordinator     | 2.8-3.9 | Elected as the group coordinator for partition {source_partition} in epoch {_n}
coordinator_resigned                 | GroupCoordinator     | 2.8-3.9 | Resigned as the group coordinator for partition {source_partition} in epoch {_}
coordinator_loading                  | GroupMetadataManager | 2.7-2.7 | Scheduling loading of offsets and group metadata from __consumer_offsets-{source_partition}
coordinator_loading                  | GroupMetadataManager | 2.8-3.9 | Scheduling loading of offsets and group metadata from __consumer_offsets-{source_partition} for epoch {_n}
coordinator_loaded                   | GroupMetadataManager | 2.7-2.7 | Finished loading offsets and group metadata from __consumer_offsets-{source_partition} in {duration_ms} milliseconds, of which {_n} milliseconds was spent in the scheduler.
coordinator_loaded                   | GroupMetadataManager | 2.8-3.9 | Finished loading offsets and group metadata from __consumer_offsets-{source_partition} in {duration_ms} milliseconds for epoch {_n}, of which {_n} milliseconds was spent in the scheduler.
coordinator_load_failed              | GroupMetadataManager | 2.7-3.9 | Error loading offsets from __consumer_offsets-{source_partition}
coordinator_unloading                | GroupMetadataManager | 2.7-3.9 | Scheduling unloading of offsets and group metadata from __consumer_offsets-{source_partition}
coordinator_unloaded                 | GroupMetadataManager | 2.7-2.7 | Finished unloading __consumer_offsets-{source_partition}. Removed {_n} cached offsets and {_n} cached groups.
coordinator_unloaded                 | GroupMetadataManager | 2.8-3.9 | Finished unloading __consumer_offsets-{source_partition} for coordinator epoch {_}. Removed {_n} cached offsets and {_n} cached groups.
group_loaded                         | GroupCoordinator     | 2.7-3.9 | Loading group metadata for {group_id} with generation {generation_id}
group_unloaded                       | GroupCoordinator     | 2.7-3.9 | Unloading group metadata for {group_id} with generation {generation_id}
""")

NEW_WORDINGS = _wordings("""
preparing                            | GroupMetadataManager  | 3.6-    | Preparing to rebalance group {group_id} in state {state} with old generation {generation_id} (reason: {reason}).
stabilized                           | GroupMetadataManager  | 3.6-    | Stabilized group {group_id} generation {generation_id} with {member_count} members.
assignment_received                  | GroupMetadataManager  | 3.6-    | Assignment received from leader {leader_member_id} for group {group_id} for generation {generation_id}. The group has {member_count} members, {static_member_count} of which are static.
empty                                | GroupMetadataManager  | 3.6-    | Group {group_id} with generation {generation_id} is now empty.
member_id_given                      | GroupMetadataManager  | 3.6-    | Dynamic member with unknown member id joins group {group_id} in {state} state. Created a new member id {member_id} and requesting the member to rejoin with this id.
member_id_given                      | GroupMetadataManager  | 3.8-    | [GroupId {group_id}] Dynamic member with unknown member id joins the consumer group. Created a new member id {member_id} and requesting the member to rejoin with this id.
member_added                         | GroupMetadataManager  | 3.6-    | Pending dynamic member with id {member_id} joins group {group_id} in {state} state. Adding to the group now.
member_added                         | GroupMetadataManager  | 3.6-    | Dynamic member with unknown member id joins group {group_id} in state {state}. Created a new member id {member_id} and added the member to the group.
static_added                         | GroupMetadataManager  | 3.6-    | Static member with groupInstanceId={group_instance_id} and unknown member id joins group {group_id} in {state} state. Created a new member id {member_id} for this member and added to the group.
static_replaced                      | GroupMetadataManager  | 3.6-    | Static member with groupInstanceId={group_instance_id} and unknown member id joins group {group_id} in {state} state. Replacing previously mapped member {replaced_member_id} with this groupInstanceId.
static_replaced                      | GroupMetadataManager  | 3.7-3.8 | [GroupId {group_id}] Static member {member_id} with instance id {group_instance_id} re-joins the consumer group.
static_replaced                      | GroupMetadataManager  | 3.8-3.8 | [GroupId {group_id}] Static member with unknown member id and instance id {group_instance_id} re-joins the consumer group. Created a new member {member_id} to replace the existing member {replaced_member_id}.
static_replaced                      | GroupMetadataManager  | 3.9-    | [GroupId {group_id}] Static member with instance id {group_instance_id} re-joins the consumer group using the {_w} protocol. Created a new member {member_id} to replace the existing member {replaced_member_id}.
static_replaced                      | GroupMetadataManager  | 4.4-    | [GroupId {group_id}][MemberId {_}] Static member with instance id {group_instance_id} re-joins the streams group using the streams protocol. Created a new member {member_id} to replace the existing member {replaced_member_id}.
static_replaced_without_rebalance    | GroupMetadataManager  | 3.6-    | Static member which joins during Stable stage and doesn't affect the selected protocol will not trigger a rebalance.
fenced                               | ClassicGroup          | 3.6-    | Request memberId={member_id} for static member with groupInstanceId={group_instance_id} is fenced by existing memberId={replaced_member_id} during operation {_}
fenced                               | GroupMetadataManager  | 3.7-    | [GroupId {group_id}] Static member {member_id} with instance id {group_instance_id} is fenced by existing member {replaced_member_id}.
fenced                               | GroupMetadataManager  | 3.7-4.0 | [GroupId {group_id}] Static member {member_id} with instance id {group_instance_id} cannot join the group because the instance id is is owned by member {replaced_member_id}.
fenced                               | GroupMetadataManager  | 4.0-    | [GroupId {group_id}] Static member {member_id} with instance id {group_instance_id} cannot join the group because the instance id is owned by member {replaced_member_id}.
left/member_left                     | GroupMetadataManager  | 3.6-    | [Group {group_id}] Member {member_id} has left group through explicit `LeaveGroup` request; client reason: {client_reason}
left/member_left                     | GroupMetadataManager  | 3.8-4.0 | [Group {group_id}] Dynamic Member {member_id} has left group through explicit `LeaveGroup` request; client reason: {client_reason}
left/member_left                     | GroupMetadataManager  | 3.8-4.0 | [Group {group_id}] Static Member {member_id} with instance id {group_instance_id} has left group through explicit `LeaveGroup` request; client reason: {client_reason}
left/member_left                     | GroupMetadataManager  | 4.0-    | [GroupId {group_id}] Dynamic member {member_id} has left group through explicit `LeaveGroup` request; client reason: {client_reason}
left/member_left                     | GroupMetadataManager  | 4.0-    | [GroupId {group_id}] Static member {member_id} with instance id {group_instance_id} has left group through explicit `LeaveGroup` request; client reason: {client_reason}
pending_left                         | GroupMetadataManager  | 3.6-    | [Group {group_id}] Pending member {member_id} has left group through explicit `LeaveGroup` request; client reason: {client_reason}
session_expired/session_expired      | GroupMetadataManager  | 3.6-    | Member {member_id} in group {group_id} has failed, removing it from the group.
pending_expired                      | GroupMetadataManager  | 3.6-    | Pending member {member_id} in group {group_id} has been removed after session timeout expiration.
removed_not_rejoined/rejoin_timeout  | GroupMetadataManager  | 3.6-    | Group {group_id} removed dynamic members who haven't joined: {member_ids}
could_not_complete                   | GroupMetadataManager  | 3.6-    | Group {group_id} could not complete rebalance because no members rejoined.
could_not_complete                   | ClassicGroup          | 3.6-    | Group leader [memberId: {leader_member_id}, groupInstanceId: {group_instance_id}] failed to join before the rebalance timeout and the group couldn't proceed to the next generation because no member joined.
leader_replaced                      | ClassicGroup          | 3.6-    | Group leader [memberId: {replaced_member_id}, groupInstanceId: {group_instance_id}] failed to join before the rebalance timeout. Member {_w}(memberId='{leader_member_id}', groupInstanceId='{_} was elected as the new leader.
removed_not_synced/sync_timeout      | GroupMetadataManager  | 3.6-    | Group {group_id} removed members who haven't sent their sync requests: {member_ids}
empty_assignment                     | GroupMetadataManager  | 3.6-    | Setting empty assignments for members {member_ids} of {group_id} for generation {generation_id}.
empty_assignment                     | GroupMetadataManager  | 3.6-    | Sending empty assignment to member {member_id} of {group_id} for generation {generation_id} with no errors
write_failed                         | GroupMetadataManager  | 3.6-    | Failed to write empty metadata for group {group_id}: {reason}
write_failed                         | GroupMetadataManager  | 3.6-    | Failed to persist metadata for group {group_id} static member {member_id} with group instance id {group_instance_id} due to {reason}. Reverting to old member id {replaced_member_id}.
write_failed                         | CoordinatorRuntime    | 3.8-4.3 | Writing records to __consumer_offsets-{source_partition} failed due to: {reason}.
write_failed                         | CoordinatorRuntime    | 4.4-    | Failed to write records to __consumer_offsets-{source_partition} due to an unexpected error: {reason}.
write_failed                         | CoordinatorRuntime    | 4.4-    | Failed to write a batch of {_n} record(s) to __consumer_offsets-{source_partition} because {reason}.
write_failed                         | CoordinatorRuntime    | 4.4-    | Failed to write the transaction marker to __consumer_offsets-{source_partition} due to an unexpected error: {reason}.
deleted                              | GroupCoordinatorShard | 3.7-    | The following groups were deleted: {group_id}. A total of {_n} offsets were removed.
simple_group_created                 | OffsetMetadataManager | 4.0-    | [GroupId {group_id}] Creating a simple consumer group via manual offset commit.
member_joined/member_joined          | GroupMetadataManager  | 3.6-3.8 | [GroupId {group_id}] Member {member_id} joins the consumer group.
member_joined/member_joined          | GroupMetadataManager  | 3.7-3.8 | [GroupId {group_id}] Static member {member_id} with instance id {group_instance_id} joins the consumer group.
member_joined/member_joined          | GroupMetadataManager  | 3.9-    | [GroupId {group_id}] Member {member_id} joins the consumer group using the {_w} protocol.
member_joined/member_joined          | GroupMetadataManager  | 3.9-    | [GroupId {group_id}] Static member {member_id} with instance id {group_instance_id} joins the consumer group using the {_w} protocol.
member_joined/member_joined          | GroupMetadataManager  | 3.9-    | [GroupId {group_id}] Member {member_id} joins the share group using the share protocol.
member_joined/member_joined          | GroupMetadataManager  | 4.1-    | [GroupId {group_id}][MemberId {member_id}] Member joins the streams group.
member_joined/member_joined          | GroupMetadataManager  | 4.4-    | [GroupId {group_id}][MemberId {_}] Static member {member_id} with instance id {group_instance_id} joins the streams group.
member_left/member_left              | GroupMetadataManager  | 3.6-    | [GroupId {group_id}] Member {member_id} left the consumer group.
member_left/member_left              | GroupMetadataManager  | 3.7-4.0 | [GroupId {group_id}] Static Member {member_id} with instance id {group_instance_id} left the consumer group.
member_left/member_left              | GroupMetadataManager  | 4.0-    | [GroupId {group_id}] Static member {member_id} with instance id {group_instance_id} left the consumer group.
member_left/member_left              | GroupMetadataManager  | 3.9-    | [GroupId {group_id}] Member {member_id} left the share group.
member_left/member_left              | GroupMetadataManager  | 4.1-    | [GroupId {group_id}][MemberId {_}] Member {member_id} left the streams group.
member_left/member_left              | GroupMetadataManager  | 4.4-    | [GroupId {group_id}][MemberId {_}] Static member {member_id} with instance id {group_instance_id} left the streams group.
temporarily_left                     | GroupMetadataManager  | 3.7-4.0 | [GroupId {group_id}] Static Member {member_id} with instance id {group_instance_id} temporarily left the consumer group.
temporarily_left                     | GroupMetadataManager  | 4.0-    | [GroupId {group_id}] Static member {member_id} with instance id {group_instance_id} temporarily left the consumer group.
temporarily_left                     | GroupMetadataManager  | 4.4-    | [GroupId {group_id}][MemberId {_}] Static member {member_id} with instance id {group_instance_id} temporarily left the streams group.
epoch_bumped                         | GroupMetadataManager  | 3.6-4.0 | [GroupId {group_id}] Bumped group epoch to {generation_id}.
epoch_bumped                         | GroupMetadataManager  | 4.1-    | [GroupId {group_id}] Bumped group epoch to {generation_id} with metadata hash {_n}.
epoch_bumped                         | GroupMetadataManager  | 4.1-4.1 | [GroupId {group_id}][MemberId {member_id}] Bumped streams group epoch to {generation_id} with metadata hash {_n}.
epoch_bumped                         | GroupMetadataManager  | 4.2-    | [GroupId {group_id}][MemberId {member_id}] Bumped streams group epoch to {generation_id} with metadata hash {_n} and validated topic epoch {_n}.
target_computed                      | GroupMetadataManager  | 3.6-3.6 | [GroupId {group_id}] Computed a new target assignment for epoch {generation_id}: {_}.
target_computed                      | GroupMetadataManager  | 3.7-3.7 | [GroupId {group_id}] Computed a new target assignment for epoch {generation_id} with '{_}' assignor: {_}.
target_computed                      | GroupMetadataManager  | 3.8-    | [GroupId {group_id}] Computed a new target assignment for epoch {generation_id} with '{_}' assignor in {duration_ms}ms: {_}.
target_computed                      | GroupMetadataManager  | 4.0-    | [GroupId {group_id}] Computed a new target assignment for epoch {generation_id} with '{_}' assignor in {duration_ms}ms.
member_assigned                      | GroupMetadataManager  | 3.6-3.7 | [GroupId {group_id}] Member {member_id} transitioned from {_} to {_}.
member_assigned                      | GroupMetadataManager  | 3.8-    | [GroupId {group_id}] Member {member_id} new assignment state: epoch={generation_id}, previousEpoch={_n}, state={_w}, assignedPartitions={_} and revokedPartitions={_}.
member_assigned                      | GroupMetadataManager  | 3.9-    | [GroupId {group_id}] Member {member_id} new assignment state: epoch={generation_id}, previousEpoch={_n}, state={_w}, assignedPartitions={_}.
member_assigned                      | GroupMetadataManager  | 4.1-    | [GroupId {group_id}][MemberId {member_id}] Member's new assignment state: epoch={generation_id}, previousEpoch={_n}, state={_w}, assignedTasks={_} and tasksPendingRevocation={_}.
member_fenced                        | GroupMetadataManager  | 3.6-    | [GroupId {group_id}] Member {member_id} fenced from the group because {reason}.
member_fenced                        | GroupMetadataManager  | 4.1-    | [GroupId {group_id}] Streams member {member_id} fenced from the group because {reason}.
subscription_updated                 | GroupMetadataManager  | 3.6-    | [GroupId {group_id}] Member {member_id} updated its subscribed topics to: {_}.
subscription_updated                 | GroupMetadataManager  | 3.6-    | [GroupId {group_id}] Member {member_id} updated its subscribed regex to: {_}.
subscription_updated                 | GroupMetadataManager  | 4.1-    | [GroupId {group_id}][MemberId {member_id}] Member updated its member metadata to {_}.
converted/upgrade                    | GroupMetadataManager  | 4.0-    | [GroupId {group_id}] Converted the classic group to a consumer group.
converted/upgrade                    | GroupMetadataManager  | 4.0-    | [GroupId {group_id}] Converted the empty classic group to a consumer group.
converted/upgrade                    | GroupMetadataManager  | 4.2-    | [GroupId {group_id}] Converted the empty classic group to a streams group.
converted/downgrade                  | GroupMetadataManager  | 4.0-    | [GroupId {group_id}] Converted the consumer group to a classic group.
converted/downgrade                  | GroupMetadataManager  | 4.0-    | [GroupId {group_id}] Converted the empty consumer group to a classic group.
converted/downgrade                  | GroupMetadataManager  | 4.2-    | [GroupId {group_id}] Converted the empty streams group to a classic group.
conversion_refused                   | GroupMetadataManager  | 3.8-    | Cannot upgrade classic group {group_id} to consumer group because {reason}.
conversion_refused                   | GroupMetadataManager  | 3.8-4.0 | Cannot upgrade the classic group {group_id} to consumer group because {reason}.
conversion_refused                   | GroupMetadataManager  | 4.0-    | Cannot upgrade classic group {group_id} to consumer group: {reason}.
conversion_refused                   | GroupMetadataManager  | 3.8-    | Cannot downgrade consumer group {group_id} to classic group because {reason}.
conversion_refused                   | GroupMetadataManager  | 3.8-    | Cannot downgrade the consumer group {group_id}: {reason}.
conversion_refused                   | GroupMetadataManager  | 4.0-    | Cannot join the consumer group {group_id} with the classic protocol because {reason}.
coordinator_loading                  | CoordinatorRuntime    | 3.6-    | Scheduling loading of metadata from __consumer_offsets-{source_partition} with epoch {_n}
coordinator_loaded                   | CoordinatorRuntime    | 3.6-3.6 | Finished loading of metadata from __consumer_offsets-{source_partition} with epoch {_n}.
coordinator_loaded                   | CoordinatorRuntime    | 3.7-3.7 | Finished loading of metadata from __consumer_offsets-{source_partition} with epoch {_n} and LoadSummary={_}.
coordinator_loaded                   | CoordinatorRuntime    | 3.8-    | Finished loading of metadata from __consumer_offsets-{source_partition} with epoch {_n} in {duration_ms}ms where {_n}ms was spent in the scheduler. Loaded {_n} records which total to {_n} bytes.
coordinator_load_failed              | CoordinatorRuntime    | 3.6-    | Failed to load metadata from __consumer_offsets-{source_partition} with epoch {_n} due to {reason}.
coordinator_resigned                 | CoordinatorRuntime    | 3.6-    | Scheduling unloading of metadata for __consumer_offsets-{source_partition} with epoch {_}
coordinator_unloading                | CoordinatorRuntime    | 3.6-    | Started unloading metadata for __consumer_offsets-{source_partition} with epoch {_}.
coordinator_unloaded                 | CoordinatorRuntime    | 3.6-    | Finished unloading metadata for __consumer_offsets-{source_partition} with epoch {_}.
group_loaded                         | GroupMetadataManager  | 3.6-    | Loaded {_w} group {group_id} with {member_count} members.
group_unloaded                       | GroupMetadataManager  | 3.8-    | [GroupId={group_id}] Unloading group metadata for generation {generation_id}.
group_unloaded                       | GroupMetadataManager  | 3.8-    | [GroupId={group_id}] Unloaded group metadata for group epoch {generation_id}.
""")

WORKER_WORDINGS = _wordings("""
worker_rebalancing                   | WorkerCoordinator     | 2.3-    | Rebalance started
worker_synced                        | WorkerCoordinator     | 2.6-    | Successfully synced group in generation Generation{generationId={generation_id}, memberId='{member_id}', protocol='{_w}'}
worker_assigned                      | DistributedHerder     | 2.3-    | Joined group at generation {generation_id} with protocol version {_n} and got assignment: {_} with rebalance delay: {duration_ms}
worker_starting                      | DistributedHerder     | 2.3-    | Starting connectors and tasks using config offset {_n}
worker_started                       | DistributedHerder     | 2.3-    | Finished starting connectors and tasks
worker_stopped                       | DistributedHerder     | 2.3-    | Finished stopping tasks in preparation for rebalance
worker_stopping                      | DistributedHerder     | 2.3-    | Stopping connectors and tasks that are still assigned to this worker.
worker_unreachable                   | WorkerCoordinator     | 2.3-    | Broker coordinator was unreachable for {duration_ms}ms. Revoking previous assignment {_} to avoid running tasks while not being a member the group
""")
"""Messages of the superclass `AbstractCoordinator` appear under the logger of `WorkerCoordinator`."""

WORKER_KINDS = frozenset(wording.kind for wording in WORKER_WORDINGS)
