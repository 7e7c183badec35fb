"""Every record type of `__consumer_offsets`: the key's int16 type, the key's fields, and each value version's layouts.

Source: Apache Kafka's `group-coordinator/src/main/resources/common/message/*.json`, git tags 2.7 to 4.3, and from later
commits type 24 and tagged fields 2 and 3 of type 17. Field names are Kafka's.

A layout is a `Struct` of (name, type) pairs in the order of the bytes. A type is a primitive's name, `[type]` for an
array, a `Struct`, or `maybe(type)` if null is allowed. `tags` are the known tagged fields of a flexible version. If a
record does not contain a tag, the decoded value does not contain the field either, not even as Kafka's default value.
Some version numbers were written with different bytes. Their layouts are listed newest first, and the first layout that
consumes every byte is the correct one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

OFFSETS_TOPIC = "__consumer_offsets"
"""The topic in which the coordinators keep commits and groups."""

Type = Any
"""`"int8" | "int16" | "uint16" | "int32" | "int64" | "uuid" | "string" | "bytes" | "utf16"`, `[Type]`, `Struct` or
`Maybe`."""


@dataclass(frozen=True, slots=True)
class Struct:
    """Fields in the order of the bytes, and tagged fields by tag number."""

    fields: tuple[tuple[str, Type], ...]
    tags: Mapping[int, tuple[str, Type]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Maybe:
    """A type that allows null."""

    type: Type


@dataclass(frozen=True, slots=True)
class Version:
    """One value version.

    `layouts` are listed newest first. `early_access` holds the layouts of early-access releases (3.6, 3.7), which have
    other fields; they are tried last. In a `flexible` version (KIP-482), lengths are encoded differently and each
    struct ends with a tag buffer.
    """

    layouts: tuple[Struct, ...]
    flexible: bool = True
    early_access: tuple[Struct, ...] = ()


@dataclass(frozen=True, slots=True)
class Kind:
    """One record type. Keys are never flexible."""

    name: str
    key: Struct
    versions: Mapping[int, Version]


def struct(*fields: tuple[str, Type], **tags: tuple[str, Type]) -> Struct:
    """Return a `Struct`; the argument `tag0=("name", type)` defines the tagged field 0."""
    return Struct(fields, {int(name.removeprefix("tag")): field for name, field in tags.items()})


def maybe(kind: Type) -> Maybe:
    """Return the type, with null allowed."""
    return Maybe(kind)


def _classic(*fields: tuple[str, Type]) -> Version:
    return Version((struct(*fields),), flexible=False)


def _only(*layouts: Struct, early_access: tuple[Struct, ...] = ()) -> dict[int, Version]:
    return {0: Version(layouts, early_access=early_access)}


GROUP = struct(("groupId", "string"))
GROUP_MEMBER = struct(("groupId", "string"), ("memberId", "string"))

# --- 0, 1: OffsetCommit ----------------------------------------------------------------------------------------------

COMMIT_KEY = struct(("group", "string"), ("topic", "string"), ("partition", "int32"))
COMMIT_VERSIONS = {
    0: _classic(("offset", "int64"), ("metadata", "string"), ("commitTimestamp", "int64")),
    1: _classic(
        ("offset", "int64"), ("metadata", "string"), ("commitTimestamp", "int64"), ("expireTimestamp", "int64")
    ),
    2: _classic(("offset", "int64"), ("metadata", "string"), ("commitTimestamp", "int64")),
    3: _classic(("offset", "int64"), ("leaderEpoch", "int32"), ("metadata", "string"), ("commitTimestamp", "int64")),
    4: Version(
        (
            struct(
                ("offset", "int64"),
                ("leaderEpoch", "int32"),
                ("metadata", "string"),
                ("commitTimestamp", "int64"),
                tag0=("topicId", "uuid"),
            ),
        )
    ),
}

# --- 2: GroupMetadata ------------------------------------------------------------------------------------------------

_HEAD = (
    ("protocolType", "string"),
    ("generation", "int32"),
    ("protocol", maybe("string")),
    ("leader", maybe("string")),
)
_SINCE = (("currentStateTimestamp", "int64"),)
_BLOBS = (("subscription", "bytes"), ("assignment", "bytes"))
_MEMBER_0 = (("memberId", "string"), ("clientId", "string"), ("clientHost", "string"), ("sessionTimeout", "int32"))
_MEMBER_1 = (*_MEMBER_0[:3], ("rebalanceTimeout", "int32"), ("sessionTimeout", "int32"))
_MEMBER_3 = (_MEMBER_1[0], ("groupInstanceId", maybe("string")), *_MEMBER_1[1:])


def _members(*fields: tuple[str, Type]) -> tuple[str, Type]:
    return "members", [struct(*fields, *_BLOBS)]


GROUP_METADATA_VERSIONS = {
    0: _classic(*_HEAD, _members(*_MEMBER_0)),
    1: _classic(*_HEAD, _members(*_MEMBER_1)),
    2: _classic(*_HEAD, *_SINCE, _members(*_MEMBER_1)),
    3: _classic(*_HEAD, *_SINCE, _members(*_MEMBER_3)),
    # No release writes version 4. It exists so that brokers since KIP-915 can read a future version.
    4: Version((struct(*_HEAD, *_SINCE, _members(*_MEMBER_3)),)),
}

# --- 3 to 8, 16: consumer groups (KIP-848) ---------------------------------------------------------------------------

_CLIENT = (("clientId", "string"), ("clientHost", "string"))
_EPOCH_6 = struct(("assignmentEpoch", "int32"), tag0=("assignmentTimestamp", "int64"))
_TOPIC_PARTITIONS = struct(("topicId", "uuid"), ("partitions", ["int32"]))
_TOPIC_EPOCHS = struct(("topicId", "uuid"), ("partitions", ["int32"]), tag0=("assignmentEpochs", maybe(["int32"])))
_TARGET = struct(("topicPartitions", [_TOPIC_PARTITIONS]))
_TOPIC_METADATA = struct(
    ("topicId", "uuid"),
    ("topicName", "string"),
    ("numPartitions", "int32"),
    ("partitionMetadata", [struct(("partition", "int32"), ("racks", ["string"]))]),
)
_MEMBER_5 = (
    ("instanceId", maybe("string")),
    ("rackId", maybe("string")),
    *_CLIENT,
    ("subscribedTopicNames", ["string"]),
    ("subscribedTopicRegex", maybe("string")),
    ("rebalanceTimeoutMs", "int32"),
    ("serverAssignor", maybe("string")),
)
_CLASSIC_MEMBER = struct(
    ("sessionTimeoutMs", "int32"), ("supportedProtocols", [struct(("name", "string"), ("metadata", "bytes"))])
)
_ASSIGNOR = struct(
    ("name", "string"),
    ("minimumVersion", "int16"),
    ("maximumVersion", "int16"),
    ("reason", "int8"),
    ("version", "int16"),
    ("metadata", "bytes"),
)
_ASSIGNOR_METADATA = (("metadataVersion", "int16"), ("metadataBytes", "bytes"))
_EPOCHS = (("memberEpoch", "int32"), ("previousMemberEpoch", "int32"))

# --- 10 to 15: share groups (KIP-932) --------------------------------------------------------------------------------

_SHARE_TOPIC = struct(("topicId", "uuid"), ("topicName", "string"), ("partitions", ["int32"]))
_DELETING = ("deletingTopics", [struct(("topicId", "uuid"), ("topicName", "string"))])

# --- 17 to 24: streams groups (KIP-1071) -----------------------------------------------------------------------------

_PAIR = struct(("key", "string"), ("value", "string"))
_TASKS = struct(("subtopologyId", "string"), ("partitions", ["int32"]))
_TASK_EPOCHS = struct(
    ("subtopologyId", "string"), ("partitions", ["int32"]), tag0=("assignmentEpochs", maybe(["int32"]))
)
_TOPIC_INFO = struct(
    ("name", "string"), ("partitions", "int32"), ("replicationFactor", "int16"), ("topicConfigs", [_PAIR])
)
_COPARTITION = struct(
    ("sourceTopics", ["int16"]), ("sourceTopicRegex", ["int16"]), ("repartitionSourceTopics", ["int16"])
)
_SUBTOPOLOGY = struct(
    ("subtopologyId", "string"),
    ("sourceTopics", ["string"]),
    ("sourceTopicRegex", ["string"]),
    ("stateChangelogTopics", [_TOPIC_INFO]),
    ("repartitionSinkTopics", ["string"]),
    ("repartitionSourceTopics", [_TOPIC_INFO]),
    ("copartitionGroups", [_COPARTITION]),
)

EARLY_ACCESS = {9: "ShareGroupPartitionMetadata", 18: "StreamsGroupPartitionMetadata"}
"""Record types that only early-access releases wrote. Their bytes are not decoded."""

KINDS: dict[int, Kind] = {
    0: Kind("LegacyOffsetCommit", COMMIT_KEY, COMMIT_VERSIONS),
    1: Kind("OffsetCommit", COMMIT_KEY, COMMIT_VERSIONS),
    2: Kind("GroupMetadata", struct(("group", "string")), GROUP_METADATA_VERSIONS),
    3: Kind("ConsumerGroupMetadata", GROUP, _only(struct(("epoch", "int32"), tag0=("metadataHash", "int64")))),
    4: Kind(
        "ConsumerGroupPartitionMetadata",
        GROUP,
        _only(
            struct(("topics", [_TOPIC_METADATA])),
            early_access=(struct(("epoch", "int32"), ("topics", [_TOPIC_METADATA])),),
        ),
    ),
    5: Kind(
        "ConsumerGroupMemberMetadata",
        GROUP_MEMBER,
        _only(
            struct(*_MEMBER_5, tag0=("classicMemberMetadata", maybe(_CLASSIC_MEMBER))),
            early_access=(struct(*_MEMBER_5, ("assignors", [_ASSIGNOR])),),
        ),
    ),
    6: Kind("ConsumerGroupTargetAssignmentMetadata", GROUP, _only(_EPOCH_6)),
    7: Kind(
        "ConsumerGroupTargetAssignmentMember",
        GROUP_MEMBER,
        _only(
            _TARGET,
            early_access=(struct(("error", "int8"), ("topicPartitions", [_TOPIC_PARTITIONS]), *_ASSIGNOR_METADATA),),
        ),
    ),
    8: Kind(
        "ConsumerGroupCurrentMemberAssignment",
        GROUP_MEMBER,
        _only(
            struct(
                *_EPOCHS,
                ("state", "int8"),
                ("assignedPartitions", [_TOPIC_EPOCHS]),
                ("partitionsPendingRevocation", [_TOPIC_EPOCHS]),
            ),
            early_access=(
                struct(
                    *_EPOCHS,
                    ("targetMemberEpoch", "int32"),
                    ("assignedPartitions", [_TOPIC_PARTITIONS]),
                    ("partitionsPendingRevocation", [_TOPIC_PARTITIONS]),
                    ("partitionsPendingAssignment", [_TOPIC_PARTITIONS]),
                    ("error", "int8"),
                    *_ASSIGNOR_METADATA,
                ),
            ),
        ),
    ),
    10: Kind(
        "ShareGroupMemberMetadata",
        GROUP_MEMBER,
        _only(struct(("rackId", maybe("string")), *_CLIENT, ("subscribedTopicNames", ["string"]))),
    ),
    # 4.1 added metadataHash without a new version number.
    11: Kind(
        "ShareGroupMetadata",
        GROUP,
        _only(struct(("epoch", "int32"), ("metadataHash", "int64")), struct(("epoch", "int32"))),
    ),
    12: Kind("ShareGroupTargetAssignmentMetadata", GROUP, _only(_EPOCH_6)),
    13: Kind("ShareGroupTargetAssignmentMember", GROUP_MEMBER, _only(_TARGET)),
    14: Kind(
        "ShareGroupCurrentMemberAssignment",
        GROUP_MEMBER,
        _only(struct(*_EPOCHS, ("state", "int8"), ("assignedPartitions", [_TOPIC_PARTITIONS]))),
    ),
    # 4.1 added initializingTopics as the first field without a new version number.
    15: Kind(
        "ShareGroupStatePartitionMetadata",
        GROUP,
        _only(
            struct(("initializingTopics", [_SHARE_TOPIC]), ("initializedTopics", [_SHARE_TOPIC]), _DELETING),
            struct(("initializedTopics", [_SHARE_TOPIC]), _DELETING),
        ),
    ),
    16: Kind(
        "ConsumerGroupRegularExpression",
        struct(("groupId", "string"), ("regularExpression", "string")),
        _only(struct(("topics", ["string"]), ("version", "int64"), ("timestamp", "int64"))),
    ),
    17: Kind(
        "StreamsGroupMetadata",
        GROUP,
        _only(
            struct(
                ("epoch", "int32"),
                ("metadataHash", "int64"),
                tag0=("validatedTopologyEpoch", "int32"),
                tag1=("lastAssignmentConfigs", maybe([_PAIR])),
                tag2=("storedDescriptionTopologyEpoch", "int32"),
                tag3=("failedDescriptionTopologyEpoch", "int32"),
            )
        ),
    ),
    19: Kind(
        "StreamsGroupMemberMetadata",
        GROUP_MEMBER,
        _only(
            struct(
                ("instanceId", maybe("string")),
                ("rackId", maybe("string")),
                *_CLIENT,
                ("rebalanceTimeoutMs", "int32"),
                ("topologyEpoch", "int32"),
                ("processId", "string"),
                ("userEndpoint", maybe(struct(("host", "string"), ("port", "uint16")))),
                ("clientTags", [_PAIR]),
            )
        ),
    ),
    20: Kind("StreamsGroupTargetAssignmentMetadata", GROUP, _only(_EPOCH_6)),
    21: Kind(
        "StreamsGroupTargetAssignmentMember",
        GROUP_MEMBER,
        _only(struct(("activeTasks", [_TASKS]), ("standbyTasks", [_TASKS]), ("warmupTasks", [_TASKS]))),
    ),
    22: Kind(
        "StreamsGroupCurrentMemberAssignment",
        GROUP_MEMBER,
        _only(
            struct(
                *_EPOCHS,
                ("state", "int8"),
                ("activeTasks", [_TASK_EPOCHS]),
                ("standbyTasks", [_TASK_EPOCHS]),
                ("warmupTasks", [_TASK_EPOCHS]),
                ("activeTasksPendingRevocation", [_TASK_EPOCHS]),
                ("standbyTasksPendingRevocation", [_TASK_EPOCHS]),
                ("warmupTasksPendingRevocation", [_TASK_EPOCHS]),
            )
        ),
    ),
    23: Kind(
        "StreamsGroupTopology",
        GROUP,
        _only(struct(("epoch", "int32"), ("subtopologies", [_SUBTOPOLOGY]))),
    ),
    24: Kind(
        "StreamsGroupTargetAssignmentResolvedTopicIds",
        GROUP,
        _only(
            struct(
                ("assignmentEpoch", "int32"),
                (
                    "resolvedTopicIdsBySubtopology",
                    [struct(("subtopologyId", "string"), ("topicIds", ["uuid"]))],
                ),
            )
        ),
    ),
}
