"""The closed vocabularies: every enumerated column of every table takes its values from here.

If Kafka has a name for a value, that name is used (group states:
`org.apache.kafka.coordinator.group.classic.ClassicGroupState`, `…modern.consumer.ConsumerGroup.ConsumerGroupState`).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Vocabulary(StrEnum):
    """The values of a column. `says` explains a value; docs/states.md shows it next to the value."""

    says: str

    def __new__(cls, value: str, says: str = "") -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.says = says
        return member


class Evidence(Vocabulary):
    """How a value is known."""

    OBSERVED = "observed", "a record, a log line or the Admin API contains the value"
    BOUNDED = "bounded", "the value lies between two recorded values; further columns hold both bounds"
    INFERRED = "inferred", "a pattern or a model suggests the value; no source contains it"


class GenerationOutcome(Vocabulary):
    """How a generation ended, or an epoch of a group whose coordinator assigns."""

    COMPLETED = "completed", "every member has its assignment; for an epoch: every member reached it"
    EMPTY = "empty", "the last member left, so there was nothing to assign"
    OVERTAKEN = "overtaken", "the next epoch began before every member reached this one"
    OPEN = "open", "some members have not reached this epoch yet"


class NotCosted(Vocabulary):
    """Why stalls were not computed for some or all resources of a generation."""

    TOO_LARGE = "too_large", "the generation has more resources than max_resources allows: none is costed"
    UNREADABLE = "unreadable", "an assignment could not be decoded: none is costed"
    UNKNOWN_BEFORE = (
        "unknown_before",
        "the previous assignment is not known, so the resources that stopped are not costed",
    )
    NO_SUCH_PARTITION = "no_such_partition", "the leader assigned partitions that do not exist according to polls"


class GroupType(Vocabulary):
    """The kind of clients in a group."""

    CONSUMER = "consumer", "consumers, including clients that only commit offsets"
    CONNECT = "connect", "workers of a Kafka Connect cluster"
    STREAMS = "streams", "instances of a Kafka Streams application, of either protocol"
    SCHEMA_REGISTRY = "schema_registry", "schema registries, which elect one of themselves as leader"
    SHARE = "share", "consumers of a share group (KIP-932)"
    OTHER = "other", "another protocol type: its members and rebalances are known, its assignments are not"


class GroupProtocol(Vocabulary):
    """How a group gets its assignment."""

    CLASSIC = "classic", "members join and sync; the leader, one of the members, assigns"
    CONSUMER = "consumer", "KIP-848: the coordinator assigns, and each member reconciles on its own"
    STREAMS = "streams", "KIP-1071: as `consumer`, for tasks of Kafka Streams"
    SHARE = "share", "KIP-932: partitions are shared, so no member waits for another to release one"


class ClientLibrary(Vocabulary):
    """The client library of a member. `schemas.client_libraries` has the facts about each."""

    JAVA = "java", "Kafka's Java client, also in Spring Kafka"
    STREAMS = "streams", "Kafka Streams"
    CONNECT = "connect", "a Kafka Connect worker, or the consumer of a sink task"
    SCHEMA_REGISTRY = "schema_registry", "a Schema Registry"
    LIBRDKAFKA = (
        "librdkafka",
        "librdkafka and its bindings: confluent-kafka for Python, Go and .NET, node-rdkafka, Karafka",
    )
    CONFLUENT_KAFKA_JAVASCRIPT = "confluent-kafka-javascript", "confluent-kafka-javascript in its KafkaJS mode"
    SARAMA = "sarama", "sarama (Go)"
    FRANZ_GO = "franz-go", "franz-go (Go)"
    KAFKA_GO = "kafka-go", "segmentio/kafka-go (Go)"
    KAFKAJS = "kafkajs", "kafkajs (Node.js)"
    AIOKAFKA = "aiokafka", "aiokafka (Python)"
    KAFKA_PYTHON = "kafka-python", "kafka-python"
    RUBY_KAFKA = "ruby-kafka", "ruby-kafka"
    BROD = "brod", "brod (Erlang)"
    UNKNOWN = "unknown", "nothing tells, or the signs contradict each other"


class LibrarySign(Vocabulary):
    """What a member's client library was recognised by."""

    PROTOCOL = "protocol", "the group's protocol type or assignor, which only this library has"
    REASON = "reason", "the reason that the member gave for joining or leaving (KIP-800), in this library's words"
    CLIENT_ID = "client_id", "the library's default client.id; an application may choose any"
    SUBSCRIPTION = "subscription", "version, fields and user data of the subscription, and the timeouts"
    MEMBER_ID = "member_id", "the form of a member id that the client made (KIP-848)"
    COMMIT = "commit", "the metadata of its offset commits, which names the member itself (franz-go, brod)"
    GROUP = "group", "the other members of the generation, which all show this library"


class UserDataLayout(Vocabulary):
    """The layout in which the assignor's user data of a subscription or an assignment was read."""

    EMPTY = "empty", "null or no bytes"
    JAVA_GENERATION = "java_generation", "an int32 generation: cooperative-sticky of Java and sarama"
    STICKY = (
        "sticky",
        "previous assignment, then an int32 generation or none: sticky; cooperative-sticky of librdkafka and franz-go",
    )
    STICKY_INT16 = "sticky_int16", "an int16 version 1 before the sticky layout: sticky of kafka-python 3"
    RACK = "rack", "the availability zone as text: rack-affinity of kafka-go"
    STREAMS = "streams", "the tasks of Kafka Streams"
    AMBIGUOUS = (
        "ambiguous",
        "several layouts fit, so no generation is taken: four zero bytes are generation 0 or no previous assignment",
    )
    UNKNOWN = "unknown", "no layout is documented for the assignor, or none takes all bytes"


class GroupState(Vocabulary):
    """The last state of a group according to records and log lines. `Unknown` is never drawn as healthy.

    A classic group goes from `Empty` or `Stable` to `PreparingRebalance`, then `CompletingRebalance`, then `Stable`.
    The two states in between are visible only in the coordinator's log. Without that log, `Stable` (`bounded`) means
    only that the last rebalance with a recorded end is over. For groups whose coordinator assigns, every state follows
    from records.
    """

    PREPARING_REBALANCE = "PreparingRebalance", "classic: the coordinator waits for members to join"
    COMPLETING_REBALANCE = "CompletingRebalance", "classic: all members joined, the leader's assignment is pending"
    STABLE = "Stable", "every member has its assignment"
    EMPTY = "Empty", "the group has no members; inferred for a group that only commits offsets"
    DEAD = "Dead", "the group was deleted"
    ASSIGNING = "Assigning", "KIP-848, KIP-1071: there is no assignment for the newest epoch yet"
    RECONCILING = "Reconciling", "KIP-848, KIP-1071: some members have not reached their assignment yet"
    NOT_READY = "NotReady", "KIP-1071: the topology is not validated, for example because one of its topics is missing"
    UNKNOWN = "Unknown", "the group's newest record does not show a state"


class RebalanceMode(Vocabulary):
    """Which resources stop in a rebalance, derived from the resources that members still owned when they joined."""

    EAGER = "eager", "all resources: members release everything before they join"
    COOPERATIVE = (
        "cooperative",
        "resources that move: members keep the others, and rejoin after releasing those that move (KIP-429)",
    )
    INCREMENTAL = (
        "incremental",
        "resources that move: Connect workers (KIP-415) and groups whose coordinator assigns",
    )
    NONE = "none", "no resources: there is nothing to hand over, as in schema registries and share groups"
    UNKNOWN = "unknown", "not shown by any record, as in a group's first generation or one without members"


class Trigger(Vocabulary):
    """Why a rebalance began.

    Source: the coordinator's log, or the records of a group whose coordinator assigns. Without either, the trigger is
    inferred from the differences between two generations.
    """

    FIRST_MEMBER = "first_member", "a member joined a group that was new or empty"
    MEMBER_JOINED = "member_joined", "a further member joined"
    MEMBER_LEFT = "member_left", "a member left on its own"
    SESSION_EXPIRED = "session_expired", "a member sent no heartbeat within its session timeout"
    POLL_TIMEOUT = "poll_timeout", "a member left because it had not polled within max.poll.interval.ms"
    REJOIN_TIMEOUT = "rejoin_timeout", "a member did not rejoin, or did not release its revoked resources, in time"
    SYNC_TIMEOUT = "sync_timeout", "a member joined but did not request its assignment in time"
    LEADER_REJOINED = "leader_rejoined", "the leader rejoined and gave no reason"
    SUBSCRIPTION_CHANGED = "subscription_changed", "a member's subscribed topics or the matches of its pattern changed"
    METADATA_CHANGED = "metadata_changed", "topics, partitions, or Connect's connectors and tasks changed"
    COOPERATIVE_FOLLOWUP = "cooperative_followup", "members rejoined so that released resources could be assigned"
    STATIC_MEMBER_CHANGED = "static_member_changed", "a static member returned with different metadata"
    ASSIGNMENT_FAILED = "assignment_failed", "the coordinator could not store the assignment"
    CONNECT_DELAY_EXPIRED = "connect_delay_expired", "scheduled.rebalance.max.delay.ms for a lost worker expired"
    PROBING = "probing", "Kafka Streams checked whether warm-up tasks had caught up"
    UPGRADE = "upgrade", "the group changed to a protocol whose coordinator assigns"
    DOWNGRADE = "downgrade", "the group changed back to the classic protocol"
    ENFORCED = "enforced", "the application or Kafka Streams requested a rebalance"
    UNKNOWN = "unknown", "no source shows it, or several members joined and left at once"


class StallCause(Vocabulary):
    """Why a partition, connector or task was not processed. All but `no_member` count as lost."""

    NO_MEMBER = "no_member", "the group had no members"
    MEMBER_LOST = "member_lost", "its owner was expelled or stopped polling; includes the time until that was noticed"
    STATIC_RESTART = "static_restart", "its static owner was absent, and its resources were kept for it"
    CONNECT_DELAY = "connect_delay", "Connect waited for a lost worker to return (KIP-415)"
    FAILOVER = "failover", "the group's coordinator moved to another broker"
    MOVED = "moved", "the resource was handed over while the others continued"
    EAGER_BARRIER = "eager_barrier", "every member had to release all its resources"


WITH_CLASSIC = "with the classic protocol"
"""`detail` of the join of a classic member into a group of the consumer protocol."""


class GroupEventKind(Vocabulary):
    """What happened to a group or one of its members at a point in time."""

    CREATED = "created", "the group's first record"
    JOINED = "joined", "a member joined"
    LEFT = "left", "a member left, left temporarily, or (inferred) was gone by then"
    SESSION_EXPIRED = "session_expired", "a member was removed because its session expired"
    POLL_TIMEOUT = "poll_timeout", "a member left or was removed because it did not poll, join or sync in time"
    FENCED = "fenced", "a member was refused or expelled for another reason"
    STATIC_RETURNED = "static_returned", "a static member returned to its place"
    LEADER_CHANGED = "leader_changed", "another member became leader, or another registry was elected"
    FAILED_REBALANCE = "failed_rebalance", "a rebalance ended without an assignment"
    EMPTY = "empty", "the last member was gone"
    DEAD = "dead", "the group was deleted"
    COORDINATOR_MOVED = "coordinator_moved", "another broker loaded the group and now coordinates it"
    UPGRADED = "upgraded", "the group changed to a protocol whose coordinator assigns"
    DOWNGRADED = "downgraded", "the group changed back to the classic protocol"
    CONVERSION_REFUSED = "conversion_refused", "the coordinator refused to change the group's protocol"
    SETTINGS_CHANGED = "settings_changed", "the assignor, its version or the subscriptions changed"


class ReassignmentState(Vocabulary):
    """The state of a partition's reassignment."""

    RUNNING = "running", "replicas are being added or removed"
    STALLED = "stalled", "running and incomplete, but no byte has arrived for a minute"
    COMPLETED = "completed", "the partition has the requested replicas"
    CANCELLED = "cancelled", "it ended with other replicas, another reassignment replaced it, or its topic was deleted"


class ReassignmentPhase(Vocabulary):
    """The furthest phase that a reassignment reached, of the six that operators distinguish.

    KRaft writes only two changes of the assignment, so often only the last of the last three phases is seen.
    """

    INITIAL = "initial", "no replica was added yet; a reassignment is past this phase once it is visible"
    REPLICAS_ADDED = "replicas_added", "the new replicas exist and copy data"
    CAUGHT_UP = "caught_up", "the new replicas are in sync"
    LEADER_MOVED = "leader_moved", "a remaining replica became leader, if the old leader is to be removed"
    ISR_SHRUNK = "isr_shrunk", "the replicas to remove are no longer in the in-sync set"
    COMPLETED = "completed", "the old replicas are gone"


class AdviceAction(Vocabulary):
    """What to change in a group."""

    STATIC_MEMBERSHIP = "static_membership", "group.instance.id, with a session timeout longer than restarts take"
    COOPERATIVE_ASSIGNOR = "cooperative_assignor", "an assignor of the cooperative protocol (KIP-429)"
    CONSUMER_PROTOCOL = "consumer_protocol", "group.protocol=consumer (KIP-848)"
    CONSUMER_PROTOCOL_STATIC = "consumer_protocol_static", "group.protocol=consumer with group.instance.id"
    RAISE_SESSION_TIMEOUT = "raise_session_timeout", "a longer session timeout, if members pause and come back"
    LOWER_SESSION_TIMEOUT = "lower_session_timeout", "a shorter session timeout, so that failures are noticed sooner"
    LOWER_HEARTBEAT_INTERVAL = "lower_heartbeat_interval", "more frequent heartbeats, so that rebalances are shorter"
    RAISE_MAX_POLL_INTERVAL = "raise_max_poll_interval", "a longer max.poll.interval.ms, if polls take longer"
    CLOSE_ON_SHUTDOWN = "close_on_shutdown", "close the consumer on shutdown, so that it leaves instead of expiring"
    LOWER_CONNECT_DELAY = "lower_connect_delay", "a shorter scheduled.rebalance.max.delay.ms"
    RAISE_CONNECT_DELAY = (
        "raise_connect_delay",
        "a longer scheduled.rebalance.max.delay.ms, if workers return after it expired",
    )
    FIX_MEMBER = "fix_member", "one instance causes most failures: see its last log lines, exit code and host"
    NONE = "none", "no evaluated change is sure to save enough; the explanation gives the reason"


class AdviceStatus(Vocabulary):
    """Whether advice was followed and helped. Advice counts as tried once the records show the change."""

    SUGGESTED = "suggested", "the change is not in force"
    TRIED = "tried", "the change is in force, but it is too early to judge: too few absences, or too little difference"
    VERIFIED = "verified", "the change is in force, and absences cost less than before, beyond chance (90 % interval)"
    REFUTED = "refuted", "the change is in force, and absences cost more than before, beyond chance (90 % interval)"


class GroupSetting(Vocabulary):
    """A setting of a group that records show, and whose changes `setting_changes` has."""

    GROUP_PROTOCOL = "group_protocol", "classic, consumer (KIP-848), streams or share"
    ASSIGNOR = "assignor", "the assignor of the group"
    REBALANCE_MODE = "rebalance_mode", "eager or cooperative, of classic groups"
    STATIC_MEMBERSHIP = "static_membership", "yes if all members have a group.instance.id, no if none has"
    SESSION_TIMEOUT = "session_timeout_ms", "session.timeout.ms of the members of a classic group"
    REBALANCE_TIMEOUT = (
        "rebalance_timeout_ms",
        "rebalance timeout of the members of a classic group (max.poll.interval.ms of a consumer)",
    )
    CLIENT_LIBRARY = "client_library", "client library, as far as it is recognized; its version is not in the records"


class QuarantineReason(Vocabulary):
    """Why an input could not be read. `quarantine.reason` has no other values."""

    NULL_KEY = "null_key", "a record without a key"
    UNKNOWN_TYPE = "unknown_type", "a record type that no known release writes"
    EARLY_ACCESS = "early_access", "a record type of an early-access release, dropped since"
    UNKNOWN_VERSION = "unknown_version", "a known record type in an unknown version"
    TRUNCATED = "truncated", "the data ends before its last field"
    TRAILING_BYTES = "trailing_bytes", "bytes are left after the last field"
    INVALID_LENGTH = "invalid_length", "an impossible length"
    INVALID_UTF8 = "invalid_utf8", "text that is not valid UTF-8"
    UNEXPECTED_NULL = "unexpected_null", "null in a field that does not allow it"
    INVALID_VALUE = "invalid_value", "a value that its field cannot have"
    INVALID_ENVELOPE = "invalid_envelope", "an events topic message without a log line, or with broken JSON"
    INVALID_TIMESTAMP = "invalid_timestamp", "an invalid time"
    OVERSIZED = "oversized", "larger than a limit"
    UNKNOWN_LAYOUT = "unknown_layout", "a coordinator's, controller's or Connect worker's line in an unknown layout"
    UNKNOWN_WORDING = "unknown_wording", "a group coordinator's line with a text that no known release prints"
    UNTRUSTED_SOURCE = "untrusted_source", "the source may not send lines of this broker or of this kind"
    READER_FAILED = "reader_failed", "the reader failed unexpectedly: please report it"


class Limit(Vocabulary):
    """Settings that keep groups out of silver. The groups' records stay in bronze."""

    MAX_GROUPS = "max_groups", "the cluster has more groups than the setting allows"
    MAX_NAME_BYTES = "max_name_bytes", "the group id is longer than the setting allows"


class DiagnosisCause(Vocabulary):
    """The causes of repeated rebalances; diagnosis.md describes the evidence for each. `unknown` is always reported."""

    POLL_TIMEOUT = "poll_timeout", "polls that come too late"
    SESSION_EXPIRY = "session_expiry", "members whose session expires"
    DEPLOY = "deploy", "deploys and restarts; normal"
    SCALING = "scaling", "members added or removed; normal"
    POD_FAILURE = "pod_failure", "pods that were killed, evicted or lost with their node"
    CRASH_LOOP = "crash_loop", "members that crash repeatedly"
    SLOW_JOINER = "slow_joiner", "a slow member that the others wait for"
    LEADER_FLAPPING = "leader_flapping", "a leader that rejoins repeatedly"
    REJOIN_LOOP = "rejoin_loop", "generations without end that change nothing, or members that expel each other"
    FOLLOW_UPS = "follow_ups", "second steps of cooperative rebalances; normal"
    COORDINATOR = "coordinator", "trouble at the coordinator"
    TOPIC_CHANGES = "topic_changes", "changed topics, partitions, subscriptions or connectors"
    CONNECT_DELAY = "connect_delay", "the end of Connect's delay for lost workers"
    PROBING = "probing", "probing rebalances of Kafka Streams; normal"
    MIXED_PROTOCOLS = "mixed_protocols", "members with different assignors or protocols"
    UNKNOWN = "unknown", "none of these; the explanation lists the excluded causes"


NORMAL_CAUSES = frozenset(
    {DiagnosisCause.DEPLOY, DiagnosisCause.SCALING, DiagnosisCause.FOLLOW_UPS, DiagnosisCause.PROBING}
)
"""Causes that are expected in a healthy group."""


class Pattern(Vocabulary):
    """What goes wrong with groups in production. docs/patterns.md has the evidence of each and what to do."""

    REJOIN_LOOP = "rejoin_loop", "generations without end that change nothing: the same members get the same assignment"
    WAITING_FOR_ONE = "waiting_for_one", "every rebalance waits for one member that is dead or blocked in a callback"
    STUCK_REBALANCE = (
        "stuck_rebalance",
        "a rebalance does not complete: members do not join, or the leader does not sync",
    )
    TOPIC_WITHOUT_OWNER = "topic_without_owner", "a stable group has a subscribed topic that no member is assigned"
    GROUP_ID_SHARED = "group_id_shared", "applications with different subscriptions use one group id"
    OWNER_NOT_WORKING = "owner_not_working", "records arrive and the partition has an owner, but nothing is committed"
    COORDINATOR_NOT_FOUND = (
        "coordinator_not_found",
        "members did not return after their coordinator moved, or one session timeout later",
    )
    OFFSETS_PARTITION_DOWN = (
        "offsets_partition_down",
        "a partition of __consumer_offsets cannot be loaded or written, so all its groups stand still",
    )
    CONNECT_CONFIG_MISMATCH = (
        "connect_config_mismatch",
        "the leader or a worker of a Connect cluster lacks the newest configuration, so no task runs",
    )
    CONNECT_DELAY = (
        "connect_delay",
        "connectors and tasks are unassigned until scheduled.rebalance.max.delay.ms expires",
    )
    NEVER_CLOSED = (
        "never_closed",
        "the application does not close its consumer, so each restart ends with an expired session",
    )
    INSTANCE_ID_USED_TWICE = "instance_id_used_twice", "two processes use one group.instance.id and fence each other"
    INSTANCE_ID_NOT_KEPT = (
        "instance_id_not_kept",
        "a new group.instance.id at each start, so static membership saves nothing",
    )
    POLL_TIMEOUTS = "poll_timeouts", "members under load poll later than max.poll.interval.ms allows"
    MIGRATION_INCOMPLETE = "migration_incomplete", "a change of protocol or assignor is refused, or stays half done"
    NEW_GROUP_PER_START = "new_group_per_start", "the application invents a new group id at each start"
    REGISTRY_WITHOUT_LEADER = (
        "registry_without_leader",
        "a Schema Registry has no leader, or elects one again and again",
    )


class Verdict(Vocabulary):
    """Who or what a rebalance is blamed on; diagnosis.md describes how each is decided."""

    BROKER = "broker", "the group's coordinator moved, failed, or could not store an assignment"
    CLIENT_APPLICATION = "client_application", "the application or its machine: late polls, crashes, pauses, slow joins"
    DEPLOY_OR_SCALING = "deploy_or_scaling", "instances restarted, added or removed on purpose"
    CONFIGURATION = "configuration", "settings, or changed topics, partitions, subscriptions or connectors"
    UNKNOWN = "unknown", "the data does not show it"


class StormScope(Vocabulary):
    """How many groups a storm disturbs."""

    GROUP = "group", "one group, disturbed far more often than is usual for it"
    FLEET = "fleet", "several groups, disturbed at the same time"


class MarkKind(Vocabulary):
    """The kind of event that was announced."""

    DEPLOY = "deploy", "a new version, a restart"
    MAINTENANCE = "maintenance", "work on brokers or machines"
    INCIDENT = "incident", "something went wrong elsewhere"
    OTHER = "other", "any other event, described by the text"
    KUBERNETES = "kubernetes", "what Kubernetes reported of a pod or node, see change; nobody announced it"


class PodChange(Vocabulary):
    """What happened to a pod or its node. kubernetes.md has the field or event that shows each."""

    STARTED = "started", "the pod started on its node"
    OOM_KILLED = "oom_killed", "a container had no memory left and was killed"
    PROBE_FAILED = "probe_failed", "a container was killed because its liveness or startup probe failed"
    CONTAINER_FAILED = "container_failed", "a container ended with an exit code other than 0"
    EVICTED = "evicted", "the pod was evicted or preempted, because its node had no resources left or rejected it"
    NODE_LOST = "node_lost", "the node stopped answering or was removed"
    DRAINED = "drained", "the pod was removed with the eviction API, as in a drain of its node"
    DELETED = "deleted", "the pod was deleted: a rollout, scaling down, or a person"


class AlertName(Vocabulary):
    """The names of the alerts, as receivers get them. Each alert has a runbook with its name."""

    REBALANCE_STORM = "KafkaRebalanceStorm", "groups rebalance far more often than is normal for them"
    GROUP_STUCK_REBALANCING = "KafkaGroupStuckRebalancing", "a rebalance does not complete"
    TOPIC_WITHOUT_OWNER = "KafkaTopicWithoutOwner", "no member of a stable group is assigned a subscribed topic"
    MEMBER_FLAPPING = "KafkaMemberFlapping", "a member repeatedly leaves and rejoins"
    AVAILABILITY_BURN = "KafkaAvailabilityBurn", "a group loses resource-time faster than its objective allows"
    REASSIGNMENT_STALLED = "KafkaReassignmentStalled", "a reassignment makes no progress"
    OFFSETS_PARTITION_DOWN = (
        "KafkaOffsetsPartitionDown",
        "a partition of __consumer_offsets cannot be loaded or written",
    )
    CONNECT_CONFIG_MISMATCH = (
        "KafkaConnectConfigMismatch",
        "a Connect cluster assigns nothing, because its workers have read different configurations",
    )
    OWNER_NOT_WORKING = "KafkaOwnerNotWorking", "a partition has an owner that does not work although records wait"
    REBALANCE_TELEMETRY_STALE = "KafkaRebalanceTelemetryStale", "Regroup itself receives no current data"


class AlertSeverity(Vocabulary):
    """How urgent an alert is."""

    PAGE = "page", "a symptom that needs attention now"
    TICKET = "ticket", "a cause to investigate in working hours"


class JobOutcome(Vocabulary):
    """The outcome of a job's run, as the job reported it."""

    RUNNING = "running", "the job is running; valid only while its heartbeats continue"
    SUCCEEDED = "succeeded", "the job finished"
    FAILED = "failed", "the job ended with the error in `error`"
    STOPPED = "stopped", "the job was stopped"


class RuleSeverity(Vocabulary):
    """The consequence of a broken rule."""

    ERROR = "error", "figures are wrong"
    WARNING = "warning", "some data is left out"
