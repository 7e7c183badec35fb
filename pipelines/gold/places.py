"""How often each instance of a group went within an hour, kept as events pass by: a departure that a deploy explains
does not repeat.

Told apart by the names of `pipelines.gold.instances`, but in one pass and in constant time for each event, because
storms are looked for after every batch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pipelines.gold.instances import NAMES, Life
from schemas.states import GroupEventKind

HOUR_MS = 3_600_000
OVERLAP_MS = 120_000
"""A killed process is back before the coordinator misses it, up to a long session timeout before."""

Key = tuple[int, tuple[str, ...]]


@dataclass(slots=True, kw_only=True, eq=False)
class Place:
    """A running place of an application. `arrived_at` None: before the events that were seen. `is_fresh`: nothing of
    its name was there before, so that a deploy of renamed processes ends the old place and begins this one.
    """

    keys: tuple[Key, ...]
    member_id: str
    name: str
    client_host: str
    arrived_at: int | None = None
    is_fresh: bool = False
    gone: list[tuple[int, GroupEventKind]] = field(default_factory=list)

    def departures(self, at: int, kind: GroupEventKind | None = None) -> int:
        """How often it went within the hour that ends with `at`: in this way, or in any."""
        return sum(at - when < HOUR_MS and kind in (None, how) for when, how in self.gone)


class Places:
    """The instances of one group. Events must come in order of time; what is longer ago than an hour plays no part."""

    def __init__(self) -> None:
        self._here: dict[str, Place] = {}
        self._away: dict[Key, list[Place]] = defaultdict(list)
        self._living: dict[Key, list[Place]] = defaultdict(list)

    def comes(self, event: Mapping[str, Any]) -> Place:
        """A member joined: the newest place of its name that was given up, or a fresh one."""
        keys = _keys(event)
        place = self._left_behind(keys, event["event_at"])
        is_fresh = place is None
        if place is None:
            place = _place(event, keys)
        place.is_fresh = is_fresh
        place.keys, place.member_id, place.arrived_at = keys, event["member_id"], event["event_at"]
        place.name, place.client_host = _name(event), event["client_host"] or ""
        self._here[place.member_id] = place
        for key in keys:
            self._living[key].append(place)
        return place

    def goes(self, event: Mapping[str, Any]) -> Place:
        """A member is gone. Where its next process was there before the coordinator missed it, that is the place."""
        now = event["event_at"]
        place = self._here.pop(event["member_id"], None)
        if place is None:
            place = _place(event, _keys(event))
        else:
            for key in place.keys:
                self._living[key].remove(place)
        departure = (now, GroupEventKind(event["kind"]))
        successor = self._successor(place, now)
        if successor is not None:
            successor.gone = [*place.gone, departure]
            successor.is_fresh = False
            return successor
        place.gone = [(at, how) for at, how in place.gone if now - at < HOUR_MS] + [departure]
        for key in place.keys:
            self._away[key].append(place)
        return place

    def stays(self, event: Mapping[str, Any]) -> Place:
        """A static member came back within its generation, under another member id: it had gone, said or unsaid."""
        key = _keys(event)[0]
        before = self._living[key][-1] if self._living[key] else None
        if before is not None or self._left_behind((key,), event["event_at"], take=False) is None:
            self.goes({**event, "member_id": before.member_id if before else ""})
        return self.comes(event)

    def _successor(self, place: Place, now: int) -> Place | None:
        for key in place.keys:
            lately = [p for p in self._living[key] if p.is_fresh and now - (p.arrived_at or 0) <= OVERLAP_MS]
            if key[0] < BY_POD and len(lately) == 1:
                return lately[0]
        return None

    def _left_behind(self, keys: tuple[Key, ...], now: int, *, take: bool = True) -> Place | None:
        for key in keys:
            away = self._away[key]
            while away:
                place = away[-1]
                is_away = place.member_id not in self._here and key in place.keys
                if is_away and now - place.gone[-1][0] < HOUR_MS:
                    if take:
                        away.pop()
                    return place
                away.pop()
        return None


def _place(event: Mapping[str, Any], keys: tuple[Key, ...]) -> Place:
    host = event["client_host"] or ""
    return Place(keys=keys, member_id=event["member_id"], name=_name(event), client_host=host)


BY_POD = len(NAMES) - 1
"""Pods of one deployment share this name, so it tells nothing about a second one that is alive."""


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
    return tuple((place, name) for place, of in enumerate(NAMES) if (name := of(life)) is not None)
