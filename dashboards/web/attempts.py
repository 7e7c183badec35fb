"""Rate limit for guessing the token: after wrong tokens, a client must wait before its next token is checked.

Every wrong token uses one attempt of three allowances, which refill over time: the client's, that of the address it
connects from, and a global one. A client that once sent the right token is limited only by its own allowance, so that
guessing by others cannot lock it out. No thread waits, and memory is bounded.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from math import ceil
from threading import Lock
from time import monotonic
from typing import NamedTuple, TypeVar

T = TypeVar("T")
Scope = tuple[str, ...]
KEPT = 4_096
"""Maximum number of stored allowances. A dropped allowance, the least recently used one, is full at its next use."""
LONGEST = 64


class AttemptLimit(NamedTuple):
    """Wrong tokens allowed at once, and further ones per second."""

    burst: int
    per_second: float


LIMITS = {"client": AttemptLimit(5, 0.2), "peer": AttemptLimit(50, 1), "all": AttemptLimit(200, 5)}


class AttemptVerdict(NamedTuple):
    """The result of a check. If `wait_s` is not 0, the token was not checked; send it again after that many seconds."""

    is_right: bool
    wait_s: int


@dataclass(slots=True)
class _Allowance:
    left: float
    at: float


class Attempts:
    """The allowances. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._allowances: OrderedDict[Scope, _Allowance] = OrderedDict()
        self._good: OrderedDict[Scope, None] = OrderedDict()

    def judge(self, peer: str, client: str, is_right: Callable[[], bool]) -> AttemptVerdict:
        """Check a token with `is_right`, if the allowances permit it.

        `peer` is the connecting address. `client` is the address for which the peer claims to connect; it need not be
        true, since it only divides the peer's allowance.
        """
        own = ("client", network(peer), network(client))
        with self._lock:
            scopes = [own] if own in self._good else [own, ("peer", network(peer)), ("all",)]
            wait = max(self._wait(scope) for scope in scopes)
            if wait > 0:
                return AttemptVerdict(is_right=False, wait_s=ceil(wait))
            if is_right():
                _remember(self._good, own, None)
                return AttemptVerdict(is_right=True, wait_s=0)
            for scope in scopes:
                _remember(self._allowances, scope, _Allowance(self._left(scope) - 1, self._clock()))
            return AttemptVerdict(is_right=False, wait_s=0)

    def _left(self, scope: Scope) -> float:
        limit, known = LIMITS[scope[0]], self._allowances.get(scope)
        if known is None:
            return limit.burst
        return min(limit.burst, known.left + (self._clock() - known.at) * limit.per_second)

    def _wait(self, scope: Scope) -> float:
        return (1 - self._left(scope)) / LIMITS[scope[0]].per_second


def _remember(of: OrderedDict[Scope, T], scope: Scope, value: T) -> None:
    of[scope] = value
    of.move_to_end(scope)
    if len(of) > KEPT:
        of.popitem(last=False)


def network(address: str) -> str:
    """Return the address, or for IPv6 its /64 network, because one customer has a whole /64."""
    try:
        found = ip_address(address)
    except ValueError:
        return address[:LONGEST]
    return str(ip_network(f"{found}/64", strict=False)) if found.version == 6 else str(found)
