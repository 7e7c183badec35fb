"""What the metadata and leader epoch of an offset commit show of the library and the member that committed.

Sources: franz-go writes the member id (`consumer_group.go`); brod writes `+1/`, node and process
(`brod_group_coordinator.erl`, `make_offset_commit_metadata`), before roundrobin_v2 without `+1/`; Kafka Streams writes
base64 of a version, the partition time and its processors' metadata (`TopicPartitionMetadata`). The other libraries
write no metadata. Of these, Java, librdkafka and kafka-python 3 send the leader epoch of the last consumed record;
sarama, kafka-go, kafkajs and aiokafka send none. Java sends none either if the application passes
`OffsetAndMetadata(offset)`, as Spring's listener containers do. Applications may write any metadata: everything here is
inferred.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Collection
from dataclasses import dataclass

from schemas.states import ClientLibrary as Library

WITH_EPOCH = frozenset({Library.JAVA, Library.LIBRDKAFKA, Library.KAFKA_PYTHON})
WITHOUT_EPOCH = frozenset({Library.AIOKAFKA, Library.JAVA, Library.KAFKA_GO, Library.KAFKAJS, Library.SARAMA})
"""Java belongs to both: see the module's docstring."""

_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_CLASSIC_ID = re.compile(rf".+-{_UUID}", re.DOTALL)
"""A member id that a coordinator made: the client id or group.instance.id, a hyphen and a random UUID."""
_FRANZ_ID = re.compile(r"[A-Za-z0-9_-]{22}==")
"""A member id that franz-go made (KIP-848): 16 bytes in base64url, with the padding that Java and librdkafka omit."""
_BROD = re.compile(r"(?:\+1/)?(?P<process>'?[^/\s']+@[^/\s']+'?/<\d{1,10}\.\d{1,10}\.\d{1,10}>)")
_STREAMS_VERSIONS = (1, 2)
_STREAMS_LEAST = 9
"""Size in bytes of the version and the partition time."""
LONGEST = 4096
"""Longest metadata in characters that is examined; the default of the broker's `offset.metadata.max.bytes`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMark:
    """Hints in one commit value.

    - `libraries`: the libraries whose commits look like this; empty if nothing is known
    - `member_id`: id of the member that committed (franz-go)
    - `process`: node and process that committed (brod); it is also the default client.id of brod's members
    """

    libraries: frozenset[Library] = frozenset()
    member_id: str | None = None
    process: str | None = None


def commit_mark(metadata: str, leader_epoch: int | None, member_ids: Collection[str] = ()) -> CommitMark:
    """Return the hints in a commit value.

    Args:
        metadata: text that the committer attached.
        leader_epoch: leader epoch in the value; -1 if the client sent none, None if the value's version has no such
            field (before version 3).
        member_ids: known member ids of the group. Metadata that equals one is a member id, whatever its form.
    """
    if not metadata:
        return CommitMark(libraries=_by_epoch(leader_epoch))
    if len(metadata) > LONGEST:
        return CommitMark()
    if metadata in member_ids or _CLASSIC_ID.fullmatch(metadata) or _FRANZ_ID.fullmatch(metadata):
        return CommitMark(libraries=frozenset({Library.FRANZ_GO}), member_id=metadata)
    if found := _BROD.fullmatch(metadata):
        return CommitMark(libraries=frozenset({Library.BROD}), process=found["process"])
    if _is_streams(metadata):
        return CommitMark(libraries=frozenset({Library.STREAMS}))
    return CommitMark()


def _by_epoch(leader_epoch: int | None) -> frozenset[Library]:
    if leader_epoch is None:
        return frozenset()
    return WITH_EPOCH if leader_epoch >= 0 else WITHOUT_EPOCH


def _is_streams(metadata: str) -> bool:
    """Return whether the metadata is base64 of a known version and a partition time.

    Version 2 may be followed by more bytes, and begins with `Ag` unless the partition time is unknown (-1).
    """
    try:
        raw = base64.b64decode(metadata, validate=True)
    except (binascii.Error, ValueError):
        return False
    if len(raw) < _STREAMS_LEAST or raw[0] not in _STREAMS_VERSIONS:
        return False
    return raw[0] == _STREAMS_VERSIONS[-1] or len(raw) == _STREAMS_LEAST
