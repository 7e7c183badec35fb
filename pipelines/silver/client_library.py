"""The client library of each member, and what shows it.

A sign that only the library itself can give is observed: its protocol type, or a reason in its words. The other signs
are inferred: an application may choose any client id, assignor and timeouts. A client id counts only if the
subscription does not contradict it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple

from pipelines.decoding.member_shape import MemberShape
from schemas.client_libraries import ASSIGNORS, CLIENT_IDS, FACTS, PROTOCOL_TYPES
from schemas.member_blobs import NO_GENERATION
from schemas.states import ClientLibrary, Evidence, GroupProtocol, LibrarySign, UserDataLayout


class Recognized(NamedTuple):
    """A library with the sign that shows it; `evidence` and `sign` are None if the library is unknown."""

    library: ClientLibrary = ClientLibrary.UNKNOWN
    evidence: Evidence | None = None
    sign: LibrarySign | None = None


UNKNOWN = Recognized()
KEPT = 10_000
"""Client ids whose library is remembered."""

LIKE_JAVA = (ClientLibrary.JAVA, ClientLibrary.STREAMS, ClientLibrary.CONNECT)
"""Libraries whose members are Kafka's Java consumers."""

NAMED_ASSIGNORS = ("uniform", "range")
"""Server assignors that franz-go always names; other libraries leave the choice to the broker (KIP-848)."""


def with_group(found: Mapping[str, Recognized]) -> dict[str, Recognized]:
    """Return the libraries of a generation's members. If all recognized members have the same one, it is inferred for
    the unknown members.
    """
    known = {each.library for each in found.values()} - {ClientLibrary.UNKNOWN}
    if len(known) != 1:
        return dict(found)
    same = Recognized(known.pop(), Evidence.INFERRED, LibrarySign.GROUP)
    return {member_id: same if each == UNKNOWN else each for member_id, each in found.items()}


class ClassicMember(NamedTuple):
    """What the record of a classic generation shows of one member."""

    protocol_type: str
    assignor: str | None
    client_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    shape: MemberShape | None


def of_record(member: ClassicMember) -> Recognized:
    """Return the library as far as the record alone shows it."""
    by_type, by_assignor = PROTOCOL_TYPES.get(member.protocol_type), ASSIGNORS.get(member.assignor or "")
    if by_type is not None:
        return Recognized(by_type, Evidence.OBSERVED, LibrarySign.PROTOCOL)
    if by_assignor is not None:
        return Recognized(by_assignor, Evidence.INFERRED, LibrarySign.PROTOCOL)
    by_id, shape = of_client_id(member.client_id), member.shape
    if by_id is not None and (shape is None or _fits(by_id, shape)):
        return Recognized(by_id, Evidence.INFERRED, LibrarySign.CLIENT_ID)
    by_shape = None if shape is None else _of_shape(shape, member)
    return UNKNOWN if by_shape is None else Recognized(by_shape, Evidence.INFERRED, LibrarySign.SUBSCRIPTION)


@lru_cache(KEPT)
def of_client_id(client_id: str) -> ClientLibrary | None:
    """Return the library whose default client id this is."""
    return next((library for pattern, library in CLIENT_IDS if pattern.fullmatch(client_id)), None)


VERSIONS: dict[ClientLibrary, tuple[int, ...]] = {
    ClientLibrary.LIBRDKAFKA: (0, 1, 3),
    ClientLibrary.CONFLUENT_KAFKA_JAVASCRIPT: (0, 1, 3),
    ClientLibrary.SARAMA: (0, 1, 2),
    ClientLibrary.FRANZ_GO: (0, 1, 2, 3),
    ClientLibrary.KAFKA_GO: (1,),
    ClientLibrary.KAFKAJS: (0,),
    ClientLibrary.AIOKAFKA: (0,),
    ClientLibrary.KAFKA_PYTHON: (0, 1),
    ClientLibrary.RUBY_KAFKA: (0,),
    ClientLibrary.BROD: (0,),
}
"""Subscription versions that any release of a library sends; libraries not listed send all."""


def _fits(library: ClientLibrary, shape: MemberShape) -> bool:
    """Return whether a member of this library can have this subscription."""
    version = shape.subscription_version
    if version is None:
        return True
    is_without_owned = version == 1 and shape.owned_partitions is None
    if is_without_owned != (library == ClientLibrary.KAFKA_GO):
        return False
    if version == 3 and library in (*LIKE_JAVA, ClientLibrary.FRANZ_GO) and shape.rack == "":
        return False
    return version in VERSIONS.get(library, (version,))


def _of_shape(shape: MemberShape, member: ClassicMember) -> ClientLibrary | None:
    by_version: dict[int | None, Callable[[MemberShape, ClassicMember], ClientLibrary | None]] = {
        0: _version_0,
        1: _version_1,
        2: lambda _, member: _by_rebalance_timeout(member, ClientLibrary.JAVA, ClientLibrary.SARAMA),
        3: _version_3,
    }
    read = by_version.get(shape.subscription_version)
    return None if read is None else read(shape, member)


def _version_0(shape: MemberShape, member: ClassicMember) -> ClientLibrary | None:
    """Return the library by its default timeouts; kafkajs and ruby-kafka have the same, but other assignors.

    aiokafka's rebalance timeout is its session timeout unless it is set. Of the other libraries with this version,
    only brod has equal defaults, and its assignor shows it.
    """
    if shape.user_data_layout == UserDataLayout.STICKY_INT16:
        return ClientLibrary.KAFKA_PYTHON
    if member.session_timeout_ms == member.rebalance_timeout_ms:
        return ClientLibrary.AIOKAFKA
    timeouts = (member.session_timeout_ms, member.rebalance_timeout_ms)
    libraries = (ClientLibrary.KAFKA_PYTHON, ClientLibrary.SARAMA, ClientLibrary.RUBY_KAFKA)
    return next((x for x in libraries if (FACTS[x].session_ms, FACTS[x].rebalance_ms) == timeouts), None)


def _version_1(shape: MemberShape, member: ClassicMember) -> ClientLibrary | None:
    if shape.owned_partitions is None:
        return ClientLibrary.KAFKA_GO
    if member.assignor == "cooperative-sticky" and shape.user_data_layout == UserDataLayout.EMPTY:
        return ClientLibrary.KAFKA_PYTHON
    return _by_rebalance_timeout(member, ClientLibrary.JAVA, ClientLibrary.SARAMA)


def _version_3(shape: MemberShape, member: ClassicMember) -> ClientLibrary | None:
    """Return the library by the rack: librdkafka sends an empty one, Java and franz-go none."""
    if shape.rack == "":
        facts = FACTS[ClientLibrary.CONFLUENT_KAFKA_JAVASCRIPT]
        is_javascript = (member.session_timeout_ms, member.rebalance_timeout_ms) == (
            facts.session_ms,
            facts.rebalance_ms,
        )
        return ClientLibrary.CONFLUENT_KAFKA_JAVASCRIPT if is_javascript else ClientLibrary.LIBRDKAFKA
    if shape.user_data_layout == UserDataLayout.JAVA_GENERATION:
        return ClientLibrary.JAVA
    if shape.rack is not None:
        return None
    if shape.user_data_layout == UserDataLayout.AMBIGUOUS and shape.generation == NO_GENERATION:
        # Four zero bytes: franz-go's empty previous assignment. Java would repeat the generation -1.
        return ClientLibrary.FRANZ_GO
    if shape.user_data_layout == UserDataLayout.STICKY and shape.owned_partitions:
        # Under this layout's other name, `sticky`, Java lists no owned partitions.
        return ClientLibrary.FRANZ_GO
    return _by_rebalance_timeout(member, ClientLibrary.JAVA, ClientLibrary.FRANZ_GO)


def _by_rebalance_timeout(member: ClassicMember, *candidates: ClientLibrary) -> ClientLibrary | None:
    """Return the candidate whose default rebalance timeout the member has."""
    return next((x for x in candidates if FACTS[x].rebalance_ms == member.rebalance_timeout_ms), None)


URL_ALPHABET, STANDARD_ALPHABET = frozenset("-_"), frozenset("+/")
CLIENT_MADE = 22
"""Characters of a random UUID in base64 without padding; franz-go adds the padding `==`."""


def consumer_library(
    member_id: str, client_id: str, protocol: GroupProtocol, assignor: str | None, rebalance_timeout_ms: int | None
) -> Recognized:
    """Return the library of a member that made its own member id (KIP-848, KIP-932, KIP-1071)."""
    if protocol == GroupProtocol.STREAMS:
        return Recognized(ClientLibrary.STREAMS, Evidence.OBSERVED, LibrarySign.PROTOCOL)
    if (by_member_id := _of_member_id(member_id)) is not None:
        return Recognized(by_member_id, Evidence.INFERRED, LibrarySign.MEMBER_ID)
    by_id = of_client_id(client_id)
    if by_id is not None and (by_id == ClientLibrary.STREAMS or FACTS[by_id].consumer_protocol is not None):
        return Recognized(by_id, Evidence.INFERRED, LibrarySign.CLIENT_ID)
    franz_go = FACTS[ClientLibrary.FRANZ_GO].rebalance_ms
    if assignor in NAMED_ASSIGNORS and rebalance_timeout_ms == franz_go:
        return Recognized(ClientLibrary.FRANZ_GO, Evidence.INFERRED, LibrarySign.SUBSCRIPTION)
    return UNKNOWN


def _of_member_id(member_id: str) -> ClientLibrary | None:
    """Return the library by the alphabet of a member id. About half of all ids contain no telling character."""
    if len(member_id) == CLIENT_MADE + 2 and member_id.endswith("=="):
        return ClientLibrary.FRANZ_GO
    if len(member_id) != CLIENT_MADE:
        return None
    used = frozenset(member_id)
    if used & URL_ALPHABET and not used & STANDARD_ALPHABET:
        return ClientLibrary.JAVA
    return ClientLibrary.LIBRDKAFKA if used & STANDARD_ALPHABET and not used & URL_ALPHABET else None
