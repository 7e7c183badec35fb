"""The closed vocabularies of the product: every enumerated column of every table takes its values from here.

Names are Kafka's where Kafka has one (group states: `org.apache.kafka.coordinator.group.classic.ClassicGroupState`,
`…modern.consumer.ConsumerGroup.ConsumerGroupState`).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Vocabulary(StrEnum):
    """Values of a column; `says` is what each one tells, in words that stand beside it in docs/states.md."""

    says: str

    def __new__(cls, value: str, says: str = "") -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.says = says
        return member


class Evidence(Vocabulary):
    """How a value is known."""

    OBSERVED = "observed", "a record, a log line or the Admin API states it"
    BOUNDED = "bounded", "it lies between two that are stated; columns beside it hold both limits"
    INFERRED = "inferred", "a pattern or a model suggests it, nothing states it"


class GenerationOutcome(Vocabulary):
    """What became of a generation, or of an epoch of a group whose coordinator assigns."""

    COMPLETED = "completed", "everybody was assigned; an epoch: every member has come to it"
    EMPTY = "empty", "the last member went: nobody is left to assign to"
    OVERTAKEN = "overtaken", "the next epoch began before every member had come to this one"
    OPEN = "open", "members are still on their way to this epoch"


class NotCosted(Vocabulary):
    """Why some or all of a generation's resources have no stalls."""

    TOO_LARGE = "too_large", "it lists more resources than max_resources allows: none is costed"
    UNREADABLE = "unreadable", "an assignment could not be decoded: none is costed"
    UNKNOWN_BEFORE = (
        "unknown_before",
        "what members had before is not known, so what stopped is not costed",
    )
    NO_SUCH_PARTITION = "no_such_partition", "the leader assigned partitions that polls say do not exist"


class GroupType(Vocabulary):
    """What a group is made of."""

    CONSUMER = "consumer", "consumers, also those that only commit"
    CONNECT = "connect", "workers of a Kafka Connect cluster"
    STREAMS = "streams", "instances of a Kafka Streams application, of either protocol"
    SCHEMA_REGISTRY = "schema_registry", "schema registries, which elect one of themselves"
    SHARE = "share", "consumers of a share group (KIP-932)"
    OTHER = "other", "another protocol type: who is in it and when it rebalances is known, not what it hands out"


class GroupProtocol(Vocabulary):
    """How a group comes to an assignment."""

    CLASSIC = "classic", "members join and sync; a leader among them assigns"
    CONSUMER = "consumer", "KIP-848: the coordinator assigns, each member follows by itself"
    STREAMS = "streams", "KIP-1071: the same for tasks of Kafka Streams"
    SHARE = "share", "KIP-932: partitions are shared, so nobody waits for them"


class GroupState(Vocabulary):
    """The last state that records and log lines tell of. `Unknown` is never drawn as healthy.

    A group of the classic protocol goes from `Empty` or `Stable` over `PreparingRebalance` and `CompletingRebalance` to
    `Stable`; without the coordinator's log the two between are not seen, and `Stable` (`bounded`) says no more than
    that the last rebalance whose end is recorded is over. Of groups whose coordinator assigns every state follows from
    records.
    """

    PREPARING_REBALANCE = "PreparingRebalance", "classic: the coordinator waits for members to join"
    COMPLETING_REBALANCE = "CompletingRebalance", "classic: all have joined, the leader's assignment is still to come"
    STABLE = "Stable", "everybody has what it was assigned"
    EMPTY = "Empty", "it has no members; inferred of a group that only commits"
    DEAD = "Dead", "it was deleted"
    ASSIGNING = "Assigning", "KIP-848, KIP-1071: there is no assignment for the newest epoch yet"
    RECONCILING = "Reconciling", "KIP-848, KIP-1071: some members have not come to their assignment yet"
    NOT_READY = "NotReady", "KIP-1071: the topology is not validated, as while a topic of it is missing"
    UNKNOWN = "Unknown", "its newest record tells no state"


class RebalanceMode(Vocabulary):
    """What stops in a rebalance, told from what members still owned as they joined."""

    EAGER = "eager", "everything: members give all up before they join"
    COOPERATIVE = "cooperative", "what moves: members keep the rest, and join again once they gave up (KIP-429)"
    INCREMENTAL = "incremental", "what moves, of Connect's workers (KIP-415) and of groups whose coordinator assigns"
    NONE = "none", "nothing: there is nothing to hand over, as among schema registries and in share groups"
    UNKNOWN = "unknown", "nothing shows it, as in a group's first generation or in one without members"


class Trigger(Vocabulary):
    """Why a rebalance began.

    Stated by the coordinator's log or by the records of a group whose coordinator assigns, else inferred from what
    changed between two generations.
    """

    FIRST_MEMBER = "first_member", "a member joined a group that was new or empty"
    MEMBER_JOINED = "member_joined", "a further member joined"
    MEMBER_LEFT = "member_left", "a member left by itself"
    SESSION_EXPIRED = "session_expired", "a member sent no heartbeat for its session timeout"
    POLL_TIMEOUT = "poll_timeout", "a member left because it had not polled for max.poll.interval.ms"
    REJOIN_TIMEOUT = "rejoin_timeout", "a member did not join again, or did not give up what it had to, in time"
    SYNC_TIMEOUT = "sync_timeout", "a member joined and did not ask for its assignment in time"
    LEADER_REJOINED = "leader_rejoined", "the leader joined again and gave no reason"
    SUBSCRIPTION_CHANGED = "subscription_changed", "a member subscribes to other topics, or its pattern finds others"
    METADATA_CHANGED = "metadata_changed", "topics, partitions, or Connect's connectors and tasks changed"
    COOPERATIVE_FOLLOWUP = "cooperative_followup", "members join again to hand out what was given up before"
    STATIC_MEMBER_CHANGED = "static_member_changed", "a static member came back with other metadata"
    ASSIGNMENT_FAILED = "assignment_failed", "the coordinator could not store the assignment"
    CONNECT_DELAY_EXPIRED = "connect_delay_expired", "scheduled.rebalance.max.delay.ms for a lost worker was over"
    PROBING = "probing", "Kafka Streams looks whether warm-up tasks have caught up"
    UPGRADE = "upgrade", "the group went over to a protocol whose coordinator assigns"
    DOWNGRADE = "downgrade", "it went back to the classic protocol"
    ENFORCED = "enforced", "the application or Kafka Streams asked for a rebalance"
    UNKNOWN = "unknown", "nothing tells, or several members came and went at once"


class StallCause(Vocabulary):
    """Why a partition, connector or task stood still. All but `no_member` count as lost."""

    NO_MEMBER = "no_member", "the group had no members"
    MEMBER_LOST = "member_lost", "its owner was expelled, or stopped polling, and it had to be noticed first"
    STATIC_RESTART = "static_restart", "its static owner was away, and it waited for that"
    CONNECT_DELAY = "connect_delay", "it waited for a lost worker of Connect to come back (KIP-415)"
    FAILOVER = "failover", "the group's coordinator moved to another broker"
    MOVED = "moved", "it was handed over while everything else went on"
    EAGER_BARRIER = "eager_barrier", "everybody had to give everything up"


class GroupEventKind(Vocabulary):
    """What happened to a group or one of its members at an instant."""

    CREATED = "created", "the group's first record"
    JOINED = "joined", "a member came"
    LEFT = "left", "a member left, went away for now, or (inferred) was gone by then"
    SESSION_EXPIRED = "session_expired", "a member was dropped, since its session ended"
    POLL_TIMEOUT = "poll_timeout", "a member went or was dropped, since it did not poll, join or sync in time"
    FENCED = "fenced", "a member was refused or expelled for another reason"
    STATIC_RETURNED = "static_returned", "a static member took its place again"
    LEADER_CHANGED = "leader_changed", "another member leads, or another registry was elected"
    FAILED_REBALANCE = "failed_rebalance", "an attempt ended without an assignment"
    EMPTY = "empty", "the last member was gone"
    DEAD = "dead", "the group was deleted"
    COORDINATOR_MOVED = "coordinator_moved", "another broker loaded the group and coordinates it"
    UPGRADED = "upgraded", "the group went over to a protocol whose coordinator assigns"
    DOWNGRADED = "downgraded", "it went back to the classic protocol"
    SETTINGS_CHANGED = "settings_changed", "another assignor, other subscriptions or another version of the assignor"


class ReassignmentState(Vocabulary):
    """How a partition's reassignment stands."""

    RUNNING = "running", "replicas are being added or removed"
    STALLED = "stalled", "it runs, bytes are missing, and none has come for a minute"
    COMPLETED = "completed", "the partition has the replicas that were asked for"
    CANCELLED = "cancelled", "it ended with other replicas, was replaced by another one, or its topic went"


class ReassignmentPhase(Vocabulary):
    """The furthest of the six steps in which people learn a reassignment.

    KRaft writes two changes of the assignment only, so that of the last three often the last alone is seen.
    """

    INITIAL = "initial", "nothing was added yet; a reassignment that can be seen is beyond it"
    REPLICAS_ADDED = "replicas_added", "the new replicas are there and copy"
    CAUGHT_UP = "caught_up", "the new replicas are in sync"
    LEADER_MOVED = "leader_moved", "one of the replicas that stay leads, where the leader has to go"
    ISR_SHRUNK = "isr_shrunk", "the replicas that go are out of the in-sync set"
    COMPLETED = "completed", "the old replicas are gone"


class AdviceAction(Vocabulary):
    """What a group would do differently."""

    STATIC_MEMBERSHIP = "static_membership", "group.instance.id, with a session timeout that outlasts restarts"
    COOPERATIVE_ASSIGNOR = "cooperative_assignor", "an assignor of the cooperative protocol (KIP-429)"
    CONSUMER_PROTOCOL = "consumer_protocol", "group.protocol=consumer (KIP-848)"
    CONSUMER_PROTOCOL_STATIC = "consumer_protocol_static", "the same, with group.instance.id"
    RAISE_SESSION_TIMEOUT = "raise_session_timeout", "a longer session timeout, where members pause and come back"
    LOWER_SESSION_TIMEOUT = "lower_session_timeout", "a shorter one, so that deaths are noticed sooner"
    LOWER_HEARTBEAT_INTERVAL = "lower_heartbeat_interval", "heartbeats more often, so that rebalances are"
    RAISE_MAX_POLL_INTERVAL = "raise_max_poll_interval", "a longer max.poll.interval.ms, where polls take longer"
    LOWER_CONNECT_DELAY = "lower_connect_delay", "a shorter scheduled.rebalance.max.delay.ms"
    RAISE_CONNECT_DELAY = "raise_connect_delay", "a longer one, where workers come back after it"
    FIX_MEMBER = "fix_member", "one instance causes most of it: look at that one"
    NONE = "none", "nothing that was evaluated surely saves enough; the explanation says why"


class AdviceStatus(Vocabulary):
    """A suggestion counts as tried once the records show the change; before and after then decide."""

    SUGGESTED = "suggested", "it is not in force"
    TRIED = "tried", "it is in force, and too few absences since tell whether it helps"
    VERIFIED = "verified", "it is in force, and absences cost less than before"
    REFUTED = "refuted", "it is in force, and absences cost no less than before"


class QuarantineReason(Vocabulary):
    """Why an input could not be read: one name for each way to be wrong, and nothing else in `quarantine.reason`."""

    NULL_KEY = "null_key", "a record without a key"
    UNKNOWN_TYPE = "unknown_type", "a type of record that no release that is known writes"
    EARLY_ACCESS = "early_access", "a type of record of an early-access release, given up since"
    UNKNOWN_VERSION = "unknown_version", "a known type in a version that is not known"
    TRUNCATED = "truncated", "it ends before its last field"
    TRAILING_BYTES = "trailing_bytes", "bytes are left after its last field"
    INVALID_LENGTH = "invalid_length", "a length that cannot be"
    INVALID_UTF8 = "invalid_utf8", "text that is none"
    UNEXPECTED_NULL = "unexpected_null", "null where none is allowed"
    INVALID_VALUE = "invalid_value", "a value that its field cannot have"
    INVALID_ENVELOPE = "invalid_envelope", "a message of the events topic that holds no line, or JSON that is broken"
    INVALID_TIMESTAMP = "invalid_timestamp", "a time that is none"
    OVERSIZED = "oversized", "larger than a limit"
    UNTRUSTED_SOURCE = "untrusted_source", "its source may not speak for the broker, or of the kind, that it claims"
    READER_FAILED = "reader_failed", "reading it failed in an unforeseen way: please report it"


class Limit(Vocabulary):
    """Settings that keep groups out of silver; their records stay in bronze."""

    MAX_GROUPS = "max_groups", "the cluster has more groups"
    MAX_NAME_BYTES = "max_name_bytes", "the group's id is longer"


class DiagnosisCause(Vocabulary):
    """What stands behind repeated rebalances; diagnosis.md says what each rests on. `unknown` is said, never hidden."""

    POLL_TIMEOUT = "poll_timeout", "polls that come too late"
    SESSION_EXPIRY = "session_expiry", "members that go silent"
    DEPLOY = "deploy", "deploys and restarts; normal"
    SCALING = "scaling", "members added or taken away; normal"
    CRASH_LOOP = "crash_loop", "members that crash again and again"
    SLOW_JOINER = "slow_joiner", "a member that everybody waits for"
    LEADER_FLAPPING = "leader_flapping", "a leader that joins again and again"
    FOLLOW_UPS = "follow_ups", "second steps of cooperative rebalances; normal"
    COORDINATOR = "coordinator", "trouble at the coordinator"
    TOPIC_CHANGES = "topic_changes", "topics, partitions, subscriptions or connectors that change"
    CONNECT_DELAY = "connect_delay", "the end of Connect's delay for lost workers"
    PROBING = "probing", "probing rebalances of Kafka Streams; normal"
    MIXED_PROTOCOLS = "mixed_protocols", "members with different assignors or protocols"
    UNKNOWN = "unknown", "none of these; the explanation says what is excluded"


NORMAL_CAUSES = frozenset(
    {DiagnosisCause.DEPLOY, DiagnosisCause.SCALING, DiagnosisCause.FOLLOW_UPS, DiagnosisCause.PROBING}
)
"""Expected in a healthy group."""


class StormScope(Vocabulary):
    """What a storm shakes."""

    GROUP = "group", "one group, far from its own normal"
    FLEET = "fleet", "groups that shake together"


class MarkKind(Vocabulary):
    """What was announced."""

    DEPLOY = "deploy", "a new version, a restart"
    MAINTENANCE = "maintenance", "work on brokers or machines"
    INCIDENT = "incident", "something went wrong elsewhere"
    OTHER = "other", "anything else; the text says it"


class AlertName(Vocabulary):
    """What an alert is called with its receivers; each has a runbook of that name."""

    REBALANCE_STORM = "KafkaRebalanceStorm", "groups rebalance far more than is normal for them"
    GROUP_STUCK_REBALANCING = "KafkaGroupStuckRebalancing", "a rebalance does not come to its end"
    MEMBER_FLAPPING = "KafkaMemberFlapping", "a member comes and goes again and again"
    AVAILABILITY_BURN = "KafkaAvailabilityBurn", "a group loses its resources' time faster than its objective allows"
    REASSIGNMENT_STALLED = "KafkaReassignmentStalled", "a reassignment makes no progress"
    REBALANCE_TELEMETRY_STALE = "KafkaRebalanceTelemetryStale", "Regroup itself is blind"


class AlertSeverity(Vocabulary):
    """How soon somebody must know."""

    PAGE = "page", "a symptom that somebody must see now"
    TICKET = "ticket", "a cause that somebody should look at in working hours"


class JobOutcome(Vocabulary):
    """What a job says of its run."""

    RUNNING = "running", "it goes on; holds only as long as it goes on saying so"
    SUCCEEDED = "succeeded", "it came to its end"
    FAILED = "failed", "it ended with an error, which `error` tells"
    STOPPED = "stopped", "somebody ended it"


class RuleSeverity(Vocabulary):
    """What a broken rule means."""

    ERROR = "error", "figures are wrong"
    WARNING = "warning", "something is left out"
