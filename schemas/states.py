"""The closed vocabularies of the product: every enumerated column of every table takes its values from here.

Names are Kafka's where Kafka has one (group states: `org.apache.kafka.coordinator.group.classic.ClassicGroupState`,
`…modern.consumer.ConsumerGroup.ConsumerGroupState`).
"""

from __future__ import annotations

from enum import StrEnum


class Evidence(StrEnum):
    """How a value is known: stated by a record or log line, limited from both sides, or filled in by a model."""

    OBSERVED = "observed"
    BOUNDED = "bounded"
    INFERRED = "inferred"


class Outcome(StrEnum):
    COMPLETED = "completed"
    EMPTY = "empty"
    OVERTAKEN = "overtaken"
    OPEN = "open"


class GroupType(StrEnum):
    CONSUMER = "consumer"
    CONNECT = "connect"
    STREAMS = "streams"
    SCHEMA_REGISTRY = "schema_registry"
    SHARE = "share"
    OTHER = "other"


class GroupProtocol(StrEnum):
    CLASSIC = "classic"
    CONSUMER = "consumer"
    STREAMS = "streams"
    SHARE = "share"


class GroupState(StrEnum):
    """`groups.state`. `UNKNOWN` is never drawn as healthy."""

    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    EMPTY = "Empty"
    DEAD = "Dead"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    NOT_READY = "NotReady"
    UNKNOWN = "Unknown"


class RebalanceMode(StrEnum):
    EAGER = "eager"
    COOPERATIVE = "cooperative"
    INCREMENTAL = "incremental"
    NONE = "none"
    UNKNOWN = "unknown"


class Trigger(StrEnum):
    FIRST_MEMBER = "first_member"
    MEMBER_JOINED = "member_joined"
    MEMBER_LEFT = "member_left"
    SESSION_EXPIRED = "session_expired"
    POLL_TIMEOUT = "poll_timeout"
    REJOIN_TIMEOUT = "rejoin_timeout"
    SYNC_TIMEOUT = "sync_timeout"
    LEADER_REJOINED = "leader_rejoined"
    SUBSCRIPTION_CHANGED = "subscription_changed"
    METADATA_CHANGED = "metadata_changed"
    COOPERATIVE_FOLLOWUP = "cooperative_followup"
    STATIC_MEMBER_CHANGED = "static_member_changed"
    ASSIGNMENT_FAILED = "assignment_failed"
    CONNECT_DELAY_EXPIRED = "connect_delay_expired"
    PROBING = "probing"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    ENFORCED = "enforced"
    UNKNOWN = "unknown"


class StallCause(StrEnum):
    NO_MEMBER = "no_member"
    MEMBER_LOST = "member_lost"
    STATIC_RESTART = "static_restart"
    CONNECT_DELAY = "connect_delay"
    FAILOVER = "failover"
    MOVED = "moved"
    EAGER_BARRIER = "eager_barrier"


class GroupEventKind(StrEnum):
    CREATED = "created"
    JOINED = "joined"
    LEFT = "left"
    SESSION_EXPIRED = "session_expired"
    POLL_TIMEOUT = "poll_timeout"
    FENCED = "fenced"
    STATIC_RETURNED = "static_returned"
    LEADER_CHANGED = "leader_changed"
    FAILED_REBALANCE = "failed_rebalance"
    EMPTY = "empty"
    DEAD = "dead"
    COORDINATOR_MOVED = "coordinator_moved"
    UPGRADED = "upgraded"
    DOWNGRADED = "downgraded"
    SETTINGS_CHANGED = "settings_changed"


class ReassignmentState(StrEnum):
    RUNNING = "running"
    STALLED = "stalled"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


class ReassignmentPhase(StrEnum):
    """The six steps in which people learn a reassignment. KRaft takes the last three at once: then `COMPLETED`."""

    INITIAL = "initial"
    REPLICAS_ADDED = "replicas_added"
    CAUGHT_UP = "caught_up"
    LEADER_MOVED = "leader_moved"
    ISR_SHRUNK = "isr_shrunk"
    COMPLETED = "completed"


class AdviceAction(StrEnum):
    STATIC_MEMBERSHIP = "static_membership"
    COOPERATIVE_ASSIGNOR = "cooperative_assignor"
    CONSUMER_PROTOCOL = "consumer_protocol"
    CONSUMER_PROTOCOL_STATIC = "consumer_protocol_static"
    RAISE_SESSION_TIMEOUT = "raise_session_timeout"
    LOWER_SESSION_TIMEOUT = "lower_session_timeout"
    LOWER_HEARTBEAT_INTERVAL = "lower_heartbeat_interval"
    RAISE_MAX_POLL_INTERVAL = "raise_max_poll_interval"
    LOWER_CONNECT_DELAY = "lower_connect_delay"
    RAISE_CONNECT_DELAY = "raise_connect_delay"
    FIX_MEMBER = "fix_member"
    NONE = "none"


class AdviceStatus(StrEnum):
    """A suggestion counts as tried once the records show the change; before and after then decide."""

    SUGGESTED = "suggested"
    TRIED = "tried"
    VERIFIED = "verified"
    REFUTED = "refuted"


class QuarantineReason(StrEnum):
    """Why an input could not be read: one name for each way to be wrong, and nothing else in `quarantine.reason`."""

    NULL_KEY = "null_key"
    UNKNOWN_TYPE = "unknown_type"
    EARLY_ACCESS = "early_access"
    UNKNOWN_VERSION = "unknown_version"
    TRUNCATED = "truncated"
    TRAILING_BYTES = "trailing_bytes"
    INVALID_LENGTH = "invalid_length"
    INVALID_UTF8 = "invalid_utf8"
    UNEXPECTED_NULL = "unexpected_null"
    INVALID_VALUE = "invalid_value"
    INVALID_ENVELOPE = "invalid_envelope"
    INVALID_TIMESTAMP = "invalid_timestamp"
    OVERSIZED = "oversized"


class DiagnosisCause(StrEnum):
    """What stands behind repeated rebalances. `FOLLOW_UPS` and `DEPLOY` are normal; `UNKNOWN` is said, never hidden."""

    POLL_TIMEOUT = "poll_timeout"
    SESSION_EXPIRY = "session_expiry"
    DEPLOY = "deploy"
    SCALING = "scaling"
    CRASH_LOOP = "crash_loop"
    SLOW_JOINER = "slow_joiner"
    LEADER_FLAPPING = "leader_flapping"
    FOLLOW_UPS = "follow_ups"
    COORDINATOR = "coordinator"
    TOPIC_CHANGES = "topic_changes"
    CONNECT_DELAY = "connect_delay"
    PROBING = "probing"
    MIXED_PROTOCOLS = "mixed_protocols"
    UNKNOWN = "unknown"


class StormScope(StrEnum):
    """One group far from its own normal, or groups that shake together."""

    GROUP = "group"
    FLEET = "fleet"


class MarkKind(StrEnum):
    DEPLOY = "deploy"
    MAINTENANCE = "maintenance"
    INCIDENT = "incident"
    OTHER = "other"


class AlertName(StrEnum):
    REBALANCE_STORM = "KafkaRebalanceStorm"
    GROUP_STUCK_REBALANCING = "KafkaGroupStuckRebalancing"
    MEMBER_FLAPPING = "KafkaMemberFlapping"
    AVAILABILITY_BURN = "KafkaAvailabilityBurn"
    REASSIGNMENT_STALLED = "KafkaReassignmentStalled"
    REBALANCE_TELEMETRY_STALE = "KafkaRebalanceTelemetryStale"


class AlertSeverity(StrEnum):
    """A symptom that somebody must see now, or a cause that somebody should look at in working hours."""

    PAGE = "page"
    TICKET = "ticket"


class JobOutcome(StrEnum):
    """What a job says of its run; `RUNNING` only holds as long as it goes on saying so."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"


class RuleSeverity(StrEnum):
    """A broken rule makes figures wrong, or only leaves something out."""

    ERROR = "error"
    WARNING = "warning"
