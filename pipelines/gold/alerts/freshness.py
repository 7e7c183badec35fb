"""How far a cluster's history is known: what is not seen is neither healthy nor broken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Ends = Mapping[int, tuple[int, int]]
"""Partition → (first offset kept, offset of the next record)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What `coverage` says of `__consumer_offsets`: offsets read up to by partition, and the newest record's time.

    `still_since_ms` is since when reading has not moved on, as far as anybody watched; None where nobody did.
    `built_ms` is how far silver reaches where it lies behind bronze, and `built_still_since_ms` since when it does not
    move on either.
    """

    upto: Mapping[int, int]
    newest_ms: int | None
    still_since_ms: int | None = None
    built_ms: int | None = None
    built_still_since_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What brokers answered at `at_ms` about the topic; `ends` None: they did not, and `error` says why.

    `silent_since_ms`: since when they have not.
    """

    at_ms: int
    ends: Ends | None
    error: str = ""
    silent_since_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """`known_until_ms`: everything up to then is in the tables. `is_fresh`: that is recent enough to conclude from.

    `silent_ms`: for how long, of what is known, the cluster has written nothing at all.
    `blind_since_ms` and `why` where Regroup gets nothing although it should; `is_certain` False while it is too early
    to tell. `is_broker_there` None where nobody asked.
    """

    known_until_ms: int | None
    is_fresh: bool
    silent_ms: int = 0
    unread: int | None = None
    is_broker_there: bool | None = None
    blind_since_ms: int | None = None
    why: str = ""
    is_certain: bool = True


def freshness(now_ms: int, stale_ms: int, read: Read, asked: Asked | None) -> Freshness:
    """How far one cluster's history is known, and whether reading it has stopped for more than `stale_ms`."""
    unread = _unread(read.upto, asked.ends) if asked and asked.ends is not None else None
    known = read.newest_ms
    if asked and unread == 0:
        # An idle cluster writes nothing, which is known as long as brokers say so.
        known = asked.at_ms if known is None else max(asked.at_ms, known)
    if read.built_ms is not None and known is not None:
        known = min(known, read.built_ms)
    since, why = _blind(read, asked, unread)
    is_late = since is not None and now_ms - since > stale_ms
    is_fresh = known is not None and now_ms - known <= stale_ms
    return Freshness(
        known_until_ms=known,
        is_fresh=is_fresh,
        silent_ms=0 if known is None or read.newest_ms is None else max(0, known - read.newest_ms),
        unread=unread,
        is_broker_there=None if asked is None else asked.ends is not None,
        blind_since_ms=since if is_late else None,
        why=why if is_late else "",
        # Until it has been watched for as long, a stop may be one or may be over.
        is_certain=is_late or since is None or is_fresh,
    )


def _blind(read: Read, asked: Asked | None, unread: int | None) -> tuple[int | None, str]:
    if asked and asked.ends is None:
        return asked.silent_since_ms, f"no broker answers ({asked.error})"
    if unread == 0 and read.built_ms is None:
        return None, ""
    if read.built_ms is not None:
        built = read.built_still_since_ms if read.built_still_since_ms is not None else read.built_ms
        return built, "records are read, but silver is not built from them"
    still = read.still_since_ms if read.still_since_ms is not None else read.newest_ms
    records = "records" if unread is None else f"{unread:,} records"
    return still, f"{records} of __consumer_offsets wait, and nothing is read" if unread else "nothing new is read"


def _unread(upto: Mapping[int, int], ends: Ends) -> int:
    return sum(max(0, high - max(low, upto.get(partition, 0))) for partition, (low, high) in ends.items())
