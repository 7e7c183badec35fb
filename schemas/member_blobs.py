"""Layouts of a classic member's subscription and assignment bytes, by the group's protocol type.

Sources: `ConsumerProtocolSubscription.json` and `…Assignment.json`; Connect's `ConnectProtocol` and
`IncrementalCooperativeConnectProtocol`; `StickyAssignor` and `CooperativeStickyAssignor`, and what librdkafka, sarama,
franz-go, kafka-go and kafka-python write under the same names (librdkafka `rdkafka_sticky_assignor.c`, sarama
`balance_strategy.go`, franz-go `group_balancer.go`, kafka-go `groupbalancer.go`, kafka-python `coordinator/assignors`);
Kafka Streams' `SubscriptionInfoData.json` and `AssignmentInfo`; Schema Registry's `SchemaRegistryIdentity` and
`SchemaRegistryProtocol`. None of these formats is flexible (KIP-482). A new version only appends fields, so an unknown
newer version is read like the newest known one; this does not hold for the user data of sticky assignors, which has no
version.
"""

from __future__ import annotations

from typing import NamedTuple

from schemas.records import Type, maybe, struct
from schemas.states import UserDataLayout


class BlobField(NamedTuple):
    """A field that versions `since` to `until` have. Fields are listed in the order of the bytes."""

    name: str
    type: Type
    since: int = 0
    until: int = 0x7FFF


TOPIC_PARTITIONS = [struct(("topic", "string"), ("partitions", ["int32"]))]

SUBSCRIPTION = (
    BlobField("topics", ["string"]),
    BlobField("userData", maybe("bytes")),
    # kafka-go writes version 1 without this field, as some older clients did.
    BlobField("ownedPartitions", TOPIC_PARTITIONS, since=1),
    BlobField("generationId", "int32", since=2),
    BlobField("rackId", maybe("string"), since=3),
)
"""Follows an int16 version. `generationId` is the generation that the member came from, -1 if none."""

ASSIGNMENT = (
    BlobField("partitions", TOPIC_PARTITIONS),
    BlobField("userData", maybe("bytes")),
)
"""Follows an int16 version. If there are no bytes at all, the leader did not include this member."""

CONNECT_TASKS = [struct(("connector", "string"), ("tasks", ["int32"]))]
"""Task number -1 stands for the connector itself."""

CONNECT_SUBSCRIPTION = (
    BlobField("url", "string"),
    BlobField("configOffset", "int64"),
    BlobField("allocation", maybe("bytes"), since=1),
)
"""Follows an int16 version. `allocation` is a complete assignment blob: the connectors and tasks that the worker runs
now."""

CONNECT_ASSIGNMENT = (
    BlobField("error", "int16"),
    BlobField("leader", "string"),
    BlobField("leaderUrl", "string"),
    BlobField("configOffset", "int64"),
    BlobField("assignment", maybe(CONNECT_TASKS)),
    BlobField("revoked", maybe(CONNECT_TASKS), since=1),
    BlobField("delay", "int32", since=1),
)
"""Follows an int16 version. Since version 1, `assignment` contains only newly assigned connectors and tasks. `delay` is
in milliseconds."""

REGISTRY_IDENTITY = ("version", "host", "port", "master_eligibility", "scheme", "leader")
REGISTRY_ASSIGNMENT = ("version", "error", "master", "master_identity")
"""Fields of the JSON objects that Schema Registry writes. No version precedes them."""

STICKY_USER_DATA = (
    BlobField("previousAssignment", TOPIC_PARTITIONS),
    BlobField("generation", "int32", since=1),
)
"""`StickyAssignor`. No version precedes these fields, and the bytes may end before `generation`: franz-go omits a
generation of -1."""

STICKY_INT16_VERSION = 1
"""kafka-python 3 writes this int16 before the fields of `STICKY_USER_DATA`, which are then both present."""

COOPERATIVE_STICKY_USER_DATA = (BlobField("generation", "int32"),)
"""`CooperativeStickyAssignor`, and sarama's assignor of the same name."""

SUBSCRIPTION_LAYOUTS: dict[str | None, tuple[UserDataLayout, ...]] = {
    "stream": (UserDataLayout.STREAMS,),
    "sticky": (UserDataLayout.STICKY, UserDataLayout.STICKY_INT16),
    "cooperative-sticky": (UserDataLayout.STICKY, UserDataLayout.JAVA_GENERATION),
    "rack-affinity": (UserDataLayout.RACK,),
}
"""Documented layouts of a subscription's user data, by the name of the assignor."""

ASSIGNMENT_LAYOUTS: dict[str | None, tuple[UserDataLayout, ...]] = {
    "stream": (UserDataLayout.STREAMS,),
    "sticky": (UserDataLayout.STICKY,),
    "cooperative-sticky": (UserDataLayout.STICKY,),
}
"""Documented layouts of an assignment's user data: the leader repeats the member's blob (sarama under `sticky`,
librdkafka under `cooperative-sticky`)."""

NO_GENERATION = -1
"""The generation of a member that was in none."""

STREAMS_NEWEST = 11
"""Newest known version of Streams' user data. The version is an int32 before both the subscription and the
assignment."""

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
"""An offset sum of -2 means that the task is active here. Any other value is the position up to which the task's
standby or dormant state is restored."""

STREAMS_ASSIGNMENT = (
    BlobField("commonlySupportedVersion", "int32", since=3),
    BlobField("activeTasks", [struct(*_TASK)], until=9),
    BlobField("activeTasks", [struct(*_NAMED_TASK)], since=10),
    BlobField("standbyTasks", [struct(*_TASK, _STANDBY)], until=9),
    BlobField("standbyTasks", [struct(*_NAMED_TASK, _STANDBY)], since=10),
)
"""Active tasks are in the order of the sorted partitions. The partitions of every host follow; they are not read."""

STREAMS_ASSIGNMENT_END = (
    BlobField("errorCode", "int32", since=4),
    BlobField("nextRebalanceMs", "int64", since=7),
)
"""The last bytes of an assignment. `errorCode`: 1 source topics missing, 2 version probing, 3 assignment failed, 4
shutdown requested. `nextRebalanceMs`: time of the next probing rebalance; the greatest int64 if there is none."""
