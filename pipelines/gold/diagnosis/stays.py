"""Who came and went with which generation: every stay of a member in its group, chained to those of its instance.

Unlike `churn.lives`, which a replay starts from, a stay ends each time a member is dropped: a KIP-848 member that was
fenced comes back under the same member id.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pipelines.gold.churn import CAME, GONE, Number, Row, Silver, number
from pipelines.gold.instances import Instance, Life, instances
from schemas.states import Evidence, GroupEventKind, Trigger

TOLD_BY_TRIGGER = {
    Trigger.MEMBER_LEFT: GroupEventKind.LEFT,
    Trigger.SESSION_EXPIRED: GroupEventKind.SESSION_EXPIRED,
    Trigger.POLL_TIMEOUT: GroupEventKind.POLL_TIMEOUT,
}
"""What a rebalance's inferred trigger says of a departure of which only the absence is recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stay:
    """One member from the generation that first has it to the one that no longer does. Milliseconds.

    `came_with` is None for who was there when the rows begin, and for a static member that came back without a
    rebalance; `went_with` is None while it stays, and for such a static restart. `settled_at` is when it had its
    assignment, the begin of its first poll. `how` is None where nothing tells how it went; `said` is what the record
    or line says beyond that.
    """

    life: Life
    came_with: Number | None
    settled_at: int
    went_with: Number | None = None
    how: GroupEventKind | None = None
    evidence: Evidence = Evidence.INFERRED
    said: str | None = None

    @property
    def is_over(self) -> bool:
        return self.life.gone_at is not None

    def was_there(self, at: int) -> bool:
        return self.life.arrived_at <= at and (self.life.gone_at is None or self.life.gone_at >= at)

    @property
    def held_ms(self) -> int:
        """From its assignment until the coordinator dropped it."""
        return max(0, (self.life.gone_at or self.settled_at) - self.settled_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One instance's stays in order of time."""

    instance: Instance
    name: str
    stays: tuple[Stay, ...]


@dataclass(slots=True)
class _Open:
    row: Row
    came_with: Number | None
    arrived_at: int
    settled_at: int


@dataclass(slots=True)
class _Walk:
    """Over a group's generations in order."""

    members: Mapping[Number, Sequence[Row]]
    events: Mapping[tuple[str, int, int | None], Sequence[Row]]
    present: dict[str, _Open] = field(default_factory=dict)
    static: dict[str, dict[str, None]] = field(default_factory=lambda: defaultdict(dict))
    ended: list[Stay] = field(default_factory=list)

    def step(self, g: Row, *, is_first: bool) -> None:
        rows = self.members.get(number(g), ())
        here = {row["member_id"] for row in rows}
        for member_id in sorted(self.present.keys() - here):
            self._close(member_id, *self._went(member_id, g))
        began = set(g["joined_member_ids"] or ())
        for row in rows:
            if row["member_id"] in self.present:
                continue
            replaced = next(iter(self.static.get(row["group_instance_id"], ())), None)
            if replaced is not None:
                self._close(replaced, row["valid_from_at"], None, GroupEventKind.LEFT, Evidence.OBSERVED, None)
            is_new = replaced is None and not (is_first and row["member_id"] not in began)
            if row["group_instance_id"] is not None:
                self.static[row["group_instance_id"]][row["member_id"]] = None
            self.present[row["member_id"]] = _Open(
                row=row,
                came_with=number(g) if is_new else None,
                arrived_at=self._arrived(row, g) if is_new else row["valid_from_at"],
                settled_at=row["valid_from_at"],
            )

    def stays(self) -> list[Stay]:
        left = [_stay(o, None) for o in self.present.values()]
        return [*self.ended, *left]

    def _close(
        self,
        member_id: str,
        at: int,
        went_with: Number | None,
        how: GroupEventKind | None,
        evidence: Evidence,
        said: str | None,
    ) -> None:
        opened = self.present.pop(member_id)
        self.static.get(opened.row["group_instance_id"], {}).pop(member_id, None)
        self.ended.append(_stay(opened, at, went_with=went_with, how=how, evidence=evidence, said=said))

    def _went(self, member_id: str, g: Row) -> tuple[int, Number, GroupEventKind | None, Evidence, str | None]:
        found = next((e for e in self._events(member_id, g) if e["kind"] in GONE), None)
        if found is not None and not (found["kind"] == GroupEventKind.LEFT and found["evidence"] == Evidence.INFERRED):
            kind, evidence = GroupEventKind(found["kind"]), Evidence(found["evidence"])
            return found["event_at"], number(g), kind, evidence, found["detail"]
        named = g["trigger_member_id"]
        told = TOLD_BY_TRIGGER.get(g["trigger"]) if named in (None, member_id) else None
        return g["joined_at"], number(g), told, Evidence.INFERRED, None

    def _arrived(self, row: Row, g: Row) -> int:
        came = next((e for e in self._events(row["member_id"], g) if e["kind"] in CAME), None)
        if came is not None and came["evidence"] == Evidence.OBSERVED:
            return int(came["event_at"])
        return int(g["joined_at"])

    def _events(self, member_id: str, g: Row) -> Sequence[Row]:
        return self.events.get((member_id, *number(g)), ())


def places(silver: Silver) -> list[Place]:
    """Every instance of a group with its stays, from generations, generation_members and group_events in any order."""
    generations = sorted(silver["generations"], key=number)
    members: dict[Number, list[Row]] = defaultdict(list)
    for row in sorted(silver["generation_members"], key=lambda r: (r["valid_from_at"], r["member_id"])):
        members[number(row)].append(row)
    events: dict[tuple[str, int, int | None], list[Row]] = defaultdict(list)
    for event in sorted(silver["group_events"], key=lambda e: (e["event_at"], e["kind"])):
        events[event["member_id"], event["incarnation"], event["generation_id"]].append(event)
    walk = _Walk(members, events)
    for at, g in enumerate(generations):
        walk.step(g, is_first=at == 0)
    found = {id(stay.life): stay for stay in walk.stays()}
    chained = instances(stay.life for stay in found.values())
    names = dict(_names(chained))
    return [Place(instance=i, name=names[i.number], stays=tuple(found[id(life)] for life in i.lives)) for i in chained]


def _names(chained: Iterable[Instance]) -> Iterator[tuple[int, str]]:
    """What the instance is called; with its host where others elsewhere are called the same."""
    hosts: dict[str, set[str]] = defaultdict(set)
    chained = list(chained)
    for instance in chained:
        hosts[instance.name].add(instance.lives[-1].client_host)
    for instance in chained:
        host = instance.lives[-1].client_host
        yield instance.number, f"{instance.name} ({host})" if len(hosts[instance.name]) > 1 else instance.name


def _stay(
    opened: _Open,
    gone_at: int | None,
    *,
    went_with: Number | None = None,
    how: GroupEventKind | None = None,
    evidence: Evidence = Evidence.INFERRED,
    said: str | None = None,
) -> Stay:
    row = opened.row
    session = row["session_timeout_ms"] or 0
    # Who did not say goodbye may have been dead, and back already, for as long as its session lasts.
    silent = how in (None, GroupEventKind.SESSION_EXPIRED)
    life = Life(
        member_id=row["member_id"],
        group_instance_id=row["group_instance_id"],
        client_id=row["client_id"] or "",
        client_host=row["client_host"] or "",
        topics=tuple(row["subscribed_topics"] or ()),
        session_timeout_ms=session,
        rebalance_timeout_ms=row["rebalance_timeout_ms"] or 0,
        arrived_at=opened.arrived_at,
        stopped_at=None if gone_at is None else gone_at - session * silent,
        gone_at=gone_at,
        how=how,
    )
    return Stay(
        life=life,
        came_with=opened.came_with,
        settled_at=opened.settled_at,
        went_with=went_with,
        how=how,
        evidence=evidence,
        said=said,
    )
