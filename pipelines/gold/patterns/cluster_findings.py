"""What the finders of `cluster_patterns` read of a cluster, and what each of them returns. Times in milliseconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipelines.gold.wording import shortened
from schemas.rows import ClusterPatternRow, GenerationMemberRow, GenerationRow, GroupEventRow, GroupRow
from schemas.states import Evidence, Pattern

Row = Mapping[str, Any]

NAMED = 5
"""Maximum number of names in a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedPartition:
    """A partition with its owner since `since_ms`, and the commits of it in the last day, the last one at `last_ms`.

    `ends` are the end offsets according to polls, as (time, offset) in order of time.
    """

    group_id: str
    topic: str
    partition: int
    client_id: str
    client_host: str
    since_ms: int
    commits: int
    first_ms: int
    last_ms: int
    committed: int
    ends: Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsettled:
    """A group whose rebalance has not completed.

    `members` are those of its newest stored generation, `lines` the coordinator's lines about it since the rebalance
    began, `polled` the newest poll of it (None: not polled).
    """

    group: GroupRow
    generation: GenerationRow | None
    members: Sequence[GenerationMemberRow]
    lines: Sequence[Row]
    polled: Row | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """The rows of one cluster that its patterns are found in, since the beginning of the window.

    `until_ms`: the time of the newest record, line or poll. `lines`: lines of brokers about partitions of
    `__consumer_offsets`. `topic_polls`: polls of that topic, each with `at` and `partitions`. `partition_of`: offsets
    partition of each group. `min_isr`: `min.insync.replicas` of that topic, if it was polled. `refusals`: events of
    Connect groups whose leader assigned nothing. `written_after(partition, ms)`: time of the partition's first record
    after that time.

    By Connect group with refusals: `assigned` has the times of generations with work, `config_offsets` how far each
    worker had read the configuration in the newest refused one. `moves`: departures, arrivals and moves of the
    coordinator, of the groups in `moved`. `moved`: the members of the generations of each of these groups. `owned`:
    partitions whose commits have stopped.
    """

    cluster: str
    until_ms: int
    since_ms: int = 0
    groups: Sequence[GroupRow] = ()
    partition_of: Mapping[str, int] = field(default_factory=dict)
    lines: Sequence[Row] = ()
    topic_polls: Sequence[Row] = ()
    polled_until_ms: int | None = None
    min_isr: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    unsettled: Sequence[Unsettled] = ()
    refusals: Sequence[GroupEventRow] = ()
    assigned: Mapping[str, Sequence[int]] = field(default_factory=dict)
    config_offsets: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    moves: Sequence[GroupEventRow] = ()
    moved: Mapping[str, Sequence[GenerationMemberRow]] = field(default_factory=dict)
    owned: Sequence[OwnedPartition] = ()
    written_after: Callable[[int, int], int | None] = lambda _partition, _ms: None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFinding:
    """One row of `cluster_patterns` without its cluster."""

    pattern: Pattern
    subject: str
    started_at: int
    last_at: int
    ended_at: int | None
    times: int
    group_ids: Sequence[str]
    instances: Sequence[str] = ()
    sources: Sequence[str]
    evidence: Evidence
    explanation: str
    action: str

    def row(self, cluster: str) -> ClusterPatternRow:
        return {
            "cluster": cluster,
            "pattern": self.pattern,
            "subject": self.subject,
            "started_at": self.started_at,
            "last_at": self.last_at,
            "ended_at": self.ended_at,
            "times": self.times,
            "groups": len(self.group_ids),
            "group_ids": list(self.group_ids),
            "instances": list(self.instances),
            "sources": list(self.sources),
            "evidence": self.evidence,
            "explanation": self.explanation,
            "action": self.action,
        }


ClusterFinder = Callable[[ClusterFacts], list[ClusterFinding]]


def named(names: Sequence[str], noun: str) -> str:
    """Return the first names and the number of the others: `a, b and 3 other groups`."""
    shown = ", ".join(shortened(name) for name in names[:NAMED])
    others = len(names) - NAMED
    return f"{shown} and {others:,} other {noun}{'s' if others > 1 else ''}" if others > 0 else shown
