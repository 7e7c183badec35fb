"""How often each instance of a group went within an hour, kept as events pass by: a departure that a deploy explains
does not repeat.

Told apart by the names of `pipelines.gold.instances`, but in one pass and in constant time for each event, because
storms are looked for after every batch.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from pipelines.gold.instances import NAMES, Life, Name
from pipelines.gold.storms.differences import prefix
from schemas.states import GroupEventKind

HOUR_MS = 3_600_000
OVERLAP_MS = 120_000
"""A killed process is back before the coordinator misses it, up to a long session timeout before."""

BACK_MS = 3_500
"""A living process hears at its next heartbeat, every 3 s by default, that it was given up; a new one needs luck."""

DEPLOYS = 4
"""So many deploys within an hour are still planned by somebody."""

SCALED_MS = 300_000
"""Autoscalers wait so long before they take away what they added (Kubernetes' stabilisation, KEDA's cooldown)."""

Key = tuple[int, tuple[str, ...]]


@dataclass(slots=True, kw_only=True, eq=False)
class Place:
    """A running place of an application. `arrived_at` None: before the events that were seen. `is_fresh`: nothing of
    its name was there before, so that a deploy of renamed processes ends the old place and begins this one.
    `is_itself`: the process that was given up, not its next one, as far as that can be told. `away_ms`: how long it had
    been away when it came; `gone_at` and `how`: when and how it went last; `departed`: when it went, ascending.
    """

    keys: tuple[Key, ...]
    member_id: str
    name: str
    client_host: str
    arrived_at: int | None = None
    is_fresh: bool = False
    is_itself: bool = False
    away_ms: int | None = None
    gone_at: int = 0
    how: GroupEventKind | None = None
    departed: list[int] = field(default_factory=list)

    def departures(self, at: int) -> int:
        """How often it went within the hour that ends with `at`, but for being scaled in."""
        return len(self.departed) - bisect_right(self.departed, at - HOUR_MS)

    def is_scaled(self, at: int) -> bool:
        """It came and goes as autoscalers do it, not as what crashes: away for long, and here for long."""
        lived = at - (self.arrived_at or 0)
        return self.away_ms is not None and min(lived, self.away_ms) >= SCALED_MS


class Places:
    """The instances of one group. Events must come in order of time; what is longer ago than an hour plays no part."""

    def __init__(self) -> None:
        self._here: dict[str, Place] = {}
        self._away: dict[Key, list[Place]] = defaultdict(list)
        # In order of arrival; dictionaries, because members of one client id may be thousands.
        self._living: dict[Key, dict[Place, None]] = defaultdict(dict)
        self._fresh: dict[Key, dict[Place, None]] = defaultdict(dict)
        self._gone: dict[Place, None] = {}

    def comes(self, event: Mapping[str, Any]) -> Place:
        """A member joined: the newest place of its name that was given up, or a fresh one."""
        keys = _keys(event)
        place = self._left_behind(keys, event["event_at"])
        is_fresh = place is None
        if place is None:
            place = _place(event, keys)
        place.is_fresh = is_fresh
        place.away_ms = None if is_fresh else event["event_at"] - place.gone_at
        place.is_itself = not is_fresh and _is_itself(place, event)
        place.keys, place.member_id, place.arrived_at = keys, event["member_id"], event["event_at"]
        place.name, place.client_host = _name(event), event["client_host"] or ""
        self._here[place.member_id] = place
        for key in keys:
            self._living[key].pop(place, None)
            self._living[key][place] = None
            if is_fresh:
                self._fresh[key][place] = None
        return place

    def goes(self, event: Mapping[str, Any]) -> Place:
        """A member is gone. Where its next process was there before the coordinator missed it, that is the place."""
        now, kind = event["event_at"], GroupEventKind(event["kind"])
        place = self._here.pop(event["member_id"], None)
        if place is None:
            place = _place(event, _keys(event))
        else:
            for key in place.keys:
                self._living[key].pop(place, None)
                self._fresh[key].pop(place, None)
        successor = self._successor(place, now)
        if successor is not None:
            successor.departed = sorted((*place.departed, now))
            successor.is_fresh = False
            for key in successor.keys:
                self._fresh[key].pop(successor, None)
            successor.gone_at, successor.how = now, kind
            self._gone[successor] = None
            return successor
        place.departed = [at for at in place.departed if now - at < HOUR_MS]
        if not place.is_scaled(now):
            insort(place.departed, now)
        place.gone_at, place.how = now, kind
        self._gone[place] = None
        for key in place.keys:
            self._away[key].append(place)
        return place

    def stays(self, event: Mapping[str, Any]) -> Place:
        """A static member came back within its generation, under another member id: it had gone, said or unsaid."""
        key = _keys(event)[0]
        before = next(reversed(self._living[key]), None)
        if before is not None or self._left_behind((key,), event["event_at"], take=False) is None:
            self.goes({**event, "member_id": before.member_id if before else ""})
        return self.comes(event)

    def deploys(self, place: Place, at: int, *, members: int = 0) -> int:
        """How often a deploy may have restarted this place within the hour: once more than half of the others went.

        Of the `members` those that are not known to have gone have not.
        """
        self._gone = {p: None for p in self._gone if at - p.gone_at < HOUR_MS}
        others = [p.departures(at) for p in self._gone if p is not place]
        others = sorted(others + [0] * (members - 1 - len(others)))
        return min(DEPLOYS, 1 + others[(len(others) - 1) // 2]) if others else 1

    def _successor(self, place: Place, now: int) -> Place | None:
        for key in place.keys:
            newest = islice(reversed(self._fresh[key]), 2) if key[0] < ALONE else ()
            lately = [p for p in newest if now - (p.arrived_at or 0) <= OVERLAP_MS]
            if len(lately) == 1:
                return lately[0]
        return None

    def _left_behind(self, keys: tuple[Key, ...], now: int, *, take: bool = True) -> Place | None:
        for key in keys:
            away = self._away[key]
            while away:
                place = away[-1]
                is_away = place.member_id not in self._here and key in place.keys
                if is_away and now - place.gone_at < HOUR_MS:
                    if take:
                        away.pop()
                    return place
                away.pop()
        return None


def _place(event: Mapping[str, Any], keys: tuple[Key, ...]) -> Place:
    host = event["client_host"] or ""
    return Place(keys=keys, member_id=event["member_id"], name=_name(event), client_host=host)


def _by_place(life: Life) -> tuple[str, ...] | None:
    """A container that starts anew in its pod keeps the address, also where its application makes up a client id."""
    return "", prefix(life.client_id), life.client_host


ALL_NAMES: tuple[Name, ...] = (*NAMES[:-1], _by_place, NAMES[-1])
ALONE = 3
"""So many of these name no more than one living process, mostly: hosts run several, and deployments have many pods."""


def _is_itself(place: Place, event: Mapping[str, Any]) -> bool:
    """A member of the consumer protocol keeps its id; of the classic protocol it is back at once, where it was."""
    is_there = place.name == _name(event) and place.client_host == (event["client_host"] or "")
    is_soon = 0 <= event["event_at"] - place.gone_at <= BACK_MS
    return place.member_id == event["member_id"] or (is_there and is_soon)


def _name(event: Mapping[str, Any]) -> str:
    return str(event["group_instance_id"] or event["client_id"] or event["member_id"])


def _keys(event: Mapping[str, Any]) -> tuple[Key, ...]:
    life = Life(
        member_id=event["member_id"],
        group_instance_id=event["group_instance_id"],
        client_id=event["client_id"] or "",
        client_host=event["client_host"] or "",
        topics=(),
        session_timeout_ms=0,
        rebalance_timeout_ms=0,
        arrived_at=0,
    )
    return tuple((place, name) for place, of in enumerate(ALL_NAMES) if (name := of(life)) is not None)
