"""Freshness of a cluster's history. Without data, a group is neither healthy nor broken, but unknown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Ends = Mapping[int, tuple[int, int]]
"""Partition → (first offset kept, offset of the next record)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """Reading progress of `__consumer_offsets`, from `coverage`. Times are in milliseconds.

    `upto` is the next offset to read, by partition; `newest_ms` the time of the newest record. `still_since_ms` is the
    time since which no progress was seen, None if progress was not observed. `built_ms` is the end of silver if silver
    is behind bronze, and `built_still_since_ms` the time since which silver makes no progress.
    """

    upto: Mapping[int, int]
    newest_ms: int | None
    still_since_ms: int | None = None
    built_ms: int | None = None
    built_still_since_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The brokers' response at `at_ms` about the topic.

    If `ends` is None, no broker responded: `error` is the reason, and `silent_since_ms` the time since which none did.
    """

    at_ms: int
    ends: Ends | None
    error: str = ""
    silent_since_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """How current the tables are. Times are in milliseconds.

    `known_until_ms`: the tables are complete up to this time. `is_fresh`: this is recent enough to judge groups.
    `silent_ms`: how long before that time the cluster last wrote a record. `blind_since_ms` and `why`: since when and
    why Regroup gets no data, if it should. `is_certain` is False while it is too early to know that. `is_broker_there`
    is None if brokers were not asked.
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
    """Return how far a cluster's history is known, and whether reading has stopped for more than `stale_ms`."""
    unread = _unread(read.upto, asked.ends) if asked and asked.ends is not None else None
    known = read.newest_ms
    if asked and unread == 0:
        # An idle cluster writes nothing. The history is complete as long as brokers confirm this.
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
        # Until a stop was observed for `stale_ms`, it may be real or over already.
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
    return still, f"{records} of __consumer_offsets are waiting and none is read" if unread else "no new record is read"


def _unread(upto: Mapping[int, int], ends: Ends) -> int:
    return sum(max(0, high - max(low, upto.get(partition, 0))) for partition, (low, high) in ends.items())
