"""What the finders of patterns in one group read, and what they return."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pipelines.gold.churn import known_instants
from pipelines.gold.diagnosis.causes import Context
from pipelines.gold.instance_tracker import Number
from pipelines.gold.memberships import Silver, number
from pipelines.gold.rejoin_runs import GroupLife, is_logged, name_of
from schemas.client_libraries import FACTS
from schemas.rows import GenerationMemberRow, GenerationRow, GroupEventRow
from schemas.states import ClientLibrary, Evidence, GenerationOutcome, GroupEventKind, Pattern
from schemas.thresholds import RESTART_MS

__all__ = ["LOG", "TOPIC", "GroupFacts", "GroupFinding", "name_of", "unique"]

TOPIC, LOG = "topic", "log"
"""Sources of evidence: the records of __consumer_offsets, and log lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFinding:
    """One pattern that a group shows. Timestamps are in milliseconds.

    `subject` is the topic, member or instance id that it is about, '' for the group itself. `ended_at` is None while it
    lasts. `instances` has the culprits first. `explanation` and `action` are sentences with untrusted names in them.
    """

    pattern: Pattern
    subject: str = ""
    started_at: int
    last_at: int
    ended_at: int | None
    times: int
    instances: Sequence[str] = ()
    sources: Sequence[str] = (TOPIC,)
    evidence: Evidence
    explanation: str
    action: str


@dataclass(frozen=True, kw_only=True)
class GroupFacts:
    """One window of one group, as `window` returns it. Generations that joined before `start_ms` are the initial state.

    The properties are computed when a finder first reads them.
    """

    silver: Silver
    start_ms: int
    known: Context
    """Instances with their departures and returns."""

    @cached_property
    def generations(self) -> Sequence[GenerationRow]:
        """All generations in order, the initial one too."""
        return self.life.generations

    @cached_property
    def completed(self) -> Sequence[GenerationRow]:
        """Generations in which every member has its assignment."""
        return [g for g in self.generations if g["outcome"] == GenerationOutcome.COMPLETED]

    @cached_property
    def completed_at(self) -> Mapping[Number, int]:
        """When each completed generation was complete, in milliseconds."""
        return {number(g): g["completed_at"] for g in self.completed if g["completed_at"] is not None}

    @cached_property
    def life(self) -> GroupLife:
        """Generations, members and departures."""
        return GroupLife.of(self.silver)

    @cached_property
    def members(self) -> Mapping[Number, Sequence[GenerationMemberRow]]:
        """The members of each generation, in order of their ids."""
        return self.life.members

    @cached_property
    def events(self) -> Sequence[GroupEventRow]:
        """All events in order of time."""
        return sorted(self.silver["group_events"], key=lambda e: (e["event_at"], e["kind"], e["member_id"]))

    @cached_property
    def as_of(self) -> int:
        """The end of the data in milliseconds."""
        return max(known_instants(self.silver, [g for g in self.generations if g["joined_at"] >= self.start_ms]))

    @cached_property
    def has_log(self) -> bool:
        """Whether the coordinator's log of any part of the window was read."""
        return any(is_logged(g) for g in self.generations)

    @cached_property
    def poll_limit(self) -> str:
        """How the clients name the longest time between two polls: only some libraries have max.poll.interval.ms."""
        named = {row["client_library"] for row in self.silver["generation_members"]}
        known = [FACTS[ClientLibrary(each)] for each in named if each in set(FACTS)]
        if not known:
            return "poll interval (max.poll.interval.ms)"
        return "max.poll.interval.ms" if all(each.watchdog == "leave" for each in known) else "rebalance timeout"

    def of(self, g: GenerationRow) -> Sequence[GenerationMemberRow]:
        """Return the members of a generation."""
        return self.members.get(number(g), ())

    def departures_in(self, g: GenerationRow) -> Sequence[GroupEventRow]:
        """Return the events with which members were gone in a generation."""
        return self.life.gone.get(number(g), ())

    def is_current(self, g: GenerationRow) -> bool:
        """Return whether a generation is the newest, and the group still has members as far as the data goes."""
        over = (GroupEventKind.EMPTY, GroupEventKind.DEAD)
        is_over = any(e["kind"] in over and e["event_at"] > (g["completed_at"] or g["joined_at"]) for e in self.events)
        return g is self.generations[-1] and not is_over

    def ended(self, last_at: int, quiet_ms: int = RESTART_MS) -> int | None:
        """Return `last_at` if the data goes on for more than `quiet_ms` after it; None: the pattern may last."""
        return last_at if self.as_of - last_at > quiet_ms else None

    @cached_property
    def sources(self) -> Sequence[str]:
        """The sources of a finding that the log confirms if there is one."""
        return (TOPIC, LOG) if self.has_log else (TOPIC,)


def unique(names: Iterable[str]) -> list[str]:
    """Return the names without repetition, in order."""
    return list(dict.fromkeys(names))
