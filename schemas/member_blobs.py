"""What a classic member's subscription and assignment bytes hold, by the group's protocol type.

Sources: `ConsumerProtocolSubscription.json` and `…Assignment.json`; Connect's `ConnectProtocol` and
`IncrementalCooperativeConnectProtocol`; `StickyAssignor` and `CooperativeStickyAssignor`; Kafka Streams'
`SubscriptionInfoData.json` and `AssignmentInfo`; Schema Registry's `SchemaRegistryIdentity` and
`SchemaRegistryProtocol`. None is flexible. A later version only appends fields, so a version newer than these is read
as the newest known one.
"""

from __future__ import annotations

from typing import NamedTuple

from schemas.records import Type, maybe, struct


class BlobField(NamedTuple):
    """A field of versions `since` to `until`, in the order of the bytes."""

    name: str
    type: Type
    since: int = 0
    until: int = 0x7FFF


TOPIC_PARTITIONS = [struct(("topic", "string"), ("partitions", ["int32"]))]

SUBSCRIPTION = (
    BlobField("topics", ["string"]),
    BlobField("userData", maybe("bytes")),
    # Some clients wrote version 1 without this.
    BlobField("ownedPartitions", TOPIC_PARTITIONS, since=1),
    BlobField("generationId", "int32", since=2),
    BlobField("rackId", maybe("string"), since=3),
)
"""After an int16 version. `generationId` is the generation the member came from, -1 for none."""

ASSIGNMENT = (
    BlobField("partitions", TOPIC_PARTITIONS),
    BlobField("userData", maybe("bytes")),
)
"""After an int16 version. No bytes at all: the leader left this member out."""

CONNECT_TASKS = [struct(("connector", "string"), ("tasks", ["int32"]))]
"""Task -1 is the connector itself."""

CONNECT_SUBSCRIPTION = (
    BlobField("url", "string"),
    BlobField("configOffset", "int64"),
    BlobField("allocation", maybe("bytes"), since=1),
)
"""After an int16 version. `allocation` is a whole assignment blob: what the worker runs now."""

CONNECT_ASSIGNMENT = (
    BlobField("error", "int16"),
    BlobField("leader", "string"),
    BlobField("leaderUrl", "string"),
    BlobField("configOffset", "int64"),
    BlobField("assignment", maybe(CONNECT_TASKS)),
    BlobField("revoked", maybe(CONNECT_TASKS), since=1),
    BlobField("delay", "int32", since=1),
)
"""After an int16 version. From version 1 on `assignment` is only what is newly given; `delay` is in milliseconds."""

REGISTRY_IDENTITY = ("version", "host", "port", "master_eligibility", "scheme", "leader")
REGISTRY_ASSIGNMENT = ("version", "error", "master", "master_identity")
"""Schema Registry writes JSON objects with these names, and no version in front."""

STICKY_USER_DATA = (
    BlobField("previousAssignment", TOPIC_PARTITIONS),
    BlobField("generation", "int32", since=1),
)
"""No version in front: the generation (version 1) is there or the bytes end before it."""

COOPERATIVE_STICKY_USER_DATA = (BlobField("generation", "int32"),)

STREAMS_NEWEST = 11
"""Newest version of Streams' user data; it is an int32 in front of both kinds."""

_TASK = (("topicGroupId", "int32"), ("partition", "int32"))
_NAMED_TASK = (*_TASK, ("namedTopology", "utf16"))
_STANDBY = ("partitions", [struct(("topic", "string"), ("partition", "int32"))])
_OFFSET_SUM = ("offsetSum", "int64")
_OFFSET_SUMS = struct(_TASK[0], ("partitionToOffsetSum", [struct(_TASK[1], _OFFSET_SUM)]))
_NAMED_OFFSET_SUM = struct(*_TASK, _OFFSET_SUM, ("namedTopology", maybe("string")))

STREAMS_SUBSCRIPTION = (
    BlobField("latestSupportedVersion", "int32", since=3),
    BlobField("processId", "uuid"),
    BlobField("prevTasks", [struct(*_TASK)], until=6),
    BlobField("standbyTasks", [struct(*_TASK)], until=6),
    BlobField("userEndPoint", "bytes", since=2),
    BlobField("taskOffsetSums", [_OFFSET_SUMS], since=7, until=9),
    BlobField("taskOffsetSums", [_NAMED_OFFSET_SUM], since=10),
    BlobField("uniqueField", "int8", since=8),
    BlobField("errorCode", "int32", since=9),
    BlobField("clientTags", [struct(("key", "bytes"), ("value", "bytes"))], since=11),
)
"""An offset sum of -2: the task runs here as active; else how far its standby or dormant state is restored."""

STREAMS_ASSIGNMENT = (
    BlobField("commonlySupportedVersion", "int32", since=3),
    BlobField("activeTasks", [struct(*_TASK)], until=9),
    BlobField("activeTasks", [struct(*_NAMED_TASK)], since=10),
    BlobField("standbyTasks", [struct(*_TASK, _STANDBY)], until=9),
    BlobField("standbyTasks", [struct(*_NAMED_TASK, _STANDBY)], since=10),
)
"""Active tasks are in the order of the sorted partitions. After these come the partitions of every host, not read."""

STREAMS_ASSIGNMENT_END = (
    BlobField("errorCode", "int32", since=4),
    BlobField("nextRebalanceMs", "int64", since=7),
)
"""The last bytes. `errorCode`: 1 source topics missing, 2 version probing, 3 assignment failed, 4 shutdown requested;
`nextRebalanceMs`: time of the next probing rebalance, the greatest int64 for none."""
