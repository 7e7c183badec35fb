"""What a classic member's subscription and assignment bytes hold, by the group's protocol type.

Sources: `ConsumerProtocolSubscription.json` and `…Assignment.json`; Connect's `ConnectProtocol` and
`IncrementalCooperativeConnectProtocol`; Kafka Streams' `SubscriptionInfoData.json` and `AssignmentInfo`.
Each begins with an int16 version (Streams' user data with an int32); later versions only append fields.
"""

from __future__ import annotations

from schemas.records import Type, maybe, struct

TOPIC_PARTITIONS = [struct(("topic", "string"), ("partitions", ["int32"]))]

SUBSCRIPTION: tuple[tuple[int, str, Type], ...] = (
    (0, "topics", ["string"]),
    (0, "userData", maybe("bytes")),
    (1, "ownedPartitions", TOPIC_PARTITIONS),
    (2, "generationId", "int32"),
    (3, "rackId", maybe("string")),
)
"""(since version, name, type)."""

ASSIGNMENT: tuple[tuple[int, str, Type], ...] = (
    (0, "partitions", TOPIC_PARTITIONS),
    (0, "userData", maybe("bytes")),
)

CONNECT_TASKS = [struct(("connector", "string"), ("tasks", ["int32"]))]
"""Task -1 is the connector itself."""

CONNECT_SUBSCRIPTION: tuple[tuple[int, str, Type], ...] = (
    (0, "url", "string"),
    (0, "configOffset", "int64"),
    (1, "allocation", maybe("bytes")),
)

CONNECT_ASSIGNMENT: tuple[tuple[int, str, Type], ...] = (
    (0, "error", "int16"),
    (0, "leader", "string"),
    (0, "leaderUrl", "string"),
    (0, "configOffset", "int64"),
    (0, "assignment", maybe(CONNECT_TASKS)),
    (1, "revoked", maybe(CONNECT_TASKS)),
    (1, "delay", "int32"),
)

STICKY_USER_DATA: tuple[tuple[int, str, Type], ...] = (
    (0, "previousAssignment", TOPIC_PARTITIONS),
    (1, "generation", "int32"),
)
"""`StickyAssignor`: no version in front; the generation is missing in the oldest."""

COOPERATIVE_STICKY_USER_DATA: tuple[tuple[int, str, Type], ...] = ((0, "generation", "int32"),)

STREAMS_NEWEST = 11
STREAMS_OFFSET_SUMS = [
    struct(
        ("topicGroupId", "int32"), ("partitionToOffsetSum", [struct(("partition", "int32"), ("offsetSum", "int64"))])
    )
]
STREAMS_NAMED_OFFSET_SUMS = [
    struct(
        ("topicGroupId", "int32"), ("partition", "int32"), ("offsetSum", "int64"), ("namedTopology", maybe("string"))
    )
]
STREAMS_TASK = struct(("topicGroupId", "int32"), ("partition", "int32"))
