"""Who may say what on the events topics: a message is believed only within what the settings grant its source.

Kafka enforces who writes to a topic (ACLs), so a topic of its own for each principal is a sound binding. A record
header proves nothing about the writer: it is as good as the shipper or gateway that alone can write to the topic.
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
    """What a message claims to be: a log line of one of three programs, a mark, or another message of Regroup's own."""

    COORDINATOR = "coordinator"
    CONTROLLER = "controller"
    CONNECT = "connect"
    MARK = "mark"
    ADMIN = "admin"


def claim_of_line(event_kind: str) -> Claim:
    if event_kind in _WORKER_KINDS:
        return Claim.CONNECT
    return Claim.CONTROLLER if event_kind in _CONTROLLER_KINDS else Claim.COORDINATOR


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSource:
    """Messages of `topic` that have `header` (NAME=VALUE, exactly once; empty: all messages of the topic), and what
    they may claim: to come from one of `brokers`, and to be one of `kinds`. Empty means any.
    """

    topic: str
    header: str = ""
    brokers: tuple[int, ...] = ()
    kinds: tuple[Claim, ...] = ()

    @property
    def binding(self) -> str:
        """How rows name this source."""
        return f"header {self.header}" if self.header else f"topic {self.topic}"

    def has_sent(self, headers: Headers) -> bool:
        if not self.header:
            return True
        name, _, value = self.header.partition("=")
        return [value.encode()] == [found for each, found in headers if each == name]

    def broker_of(self, claim: Claim, stated: int | None) -> int | None:
        """Return the broker that a line came from: the stated one, else the only one that this source speaks for."""
        if stated is None and claim is not Claim.CONNECT and len(self.brokers) == 1:
            return self.brokers[0]
        return stated

    def refusal(self, claim: Claim, broker_id: int | None) -> str | None:
        """Return why this source may not claim that, None if it may."""
        if self.kinds and claim not in self.kinds:
            return f"{self.binding} may not send {claim} messages"
        if self.brokers and broker_id is not None and broker_id not in self.brokers:
            return f"{self.binding} may not speak for broker {broker_id}"
        return None


def source_of(sources: Sequence[EventSource], headers: Headers) -> EventSource | None:
    """Return the first source that has sent a message with these headers."""
    return next((source for source in sources if source.has_sent(headers)), None)


def may_send(claim: Claim, sources: Sequence[EventSource], headers: Headers) -> bool:
    """Return whether a message with these headers may be of this kind; without sources any may."""
    source = source_of(sources, headers)
    return not sources or (source is not None and source.refusal(claim, None) is None)
