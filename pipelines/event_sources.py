"""Permissions of the sources of the events topics: a message is accepted only if the settings allow its source to send
it.

Kafka controls who writes to a topic (ACLs), so a separate topic for each principal is reliable. A record header does
not prove who wrote the record. It is reliable only if a trusted shipper or gateway has the sole permission to write to
the topic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from schemas.controller_log import ControllerEventKind
from schemas.coordinator_log import WORKER_KINDS

Headers = Sequence[tuple[str, bytes | None]]

_CONTROLLER_KINDS = frozenset(str(kind) for kind in ControllerEventKind)
_WORKER_KINDS = frozenset(str(kind) for kind in WORKER_KINDS)


class Claim(StrEnum):
    """The type of a message: a log line of one of three programs, a mark, an object of Kubernetes, metrics of clients,
    or another message of Regroup.
    """

    COORDINATOR = "coordinator"
    CONTROLLER = "controller"
    CONNECT = "connect"
    MARK = "mark"
    KUBERNETES = "kubernetes"
    CLIENT_METRICS = "client_metrics"
    ADMIN = "admin"


def claim_of_line(event_kind: str) -> Claim:
    if event_kind in _WORKER_KINDS:
        return Claim.CONNECT
    return Claim.CONTROLLER if event_kind in _CONTROLLER_KINDS else Claim.COORDINATOR


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSource:
    """One source of messages and its permissions.

    A source is all messages of `topic` that have `header` (NAME=VALUE, exactly once); an empty `header` means all
    messages of the topic. Its messages may come from `brokers` and have one of the types `kinds`; empty means any.
    """

    topic: str
    header: str = ""
    brokers: tuple[int, ...] = ()
    kinds: tuple[Claim, ...] = ()

    @property
    def binding(self) -> str:
        """The name of this source in table rows."""
        return f"header {self.header}" if self.header else f"topic {self.topic}"

    def has_sent(self, headers: Headers) -> bool:
        if not self.header:
            return True
        name, _, value = self.header.partition("=")
        return [value.encode()] == [found for each, found in headers if each == name]

    def broker_of(self, claim: Claim, named: int | None) -> int | None:
        """Return the broker of a line: the id in the line, or else the only broker that this source may send for."""
        if named is None and claim is not Claim.CONNECT and len(self.brokers) == 1:
            return self.brokers[0]
        return named

    def refusal(self, claim: Claim, broker_id: int | None) -> str | None:
        """Return the reason why this source may not send such a message, or None if it may."""
        if self.kinds and claim not in self.kinds:
            return f"{self.binding} may not send {claim} messages"
        if self.brokers and broker_id is not None and broker_id not in self.brokers:
            return f"{self.binding} may not send lines of broker {broker_id}"
        return None


def source_of(sources: Sequence[EventSource], headers: Headers) -> EventSource | None:
    """Return the first source that matches these headers, or None."""
    return next((source for source in sources if source.has_sent(headers)), None)


def may_send(claim: Claim, sources: Sequence[EventSource], headers: Headers) -> bool:
    """Return whether a message with these headers may have this type. Without `sources`, every type is allowed."""
    source = source_of(sources, headers)
    return not sources or (source is not None and source.refusal(claim, None) is None)
