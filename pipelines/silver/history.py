"""A group's history: group records, commits and log lines, without duplicates and in order."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

from schemas.coordinator_log import WORKER_KINDS

Position = tuple[int, int]
Resource = tuple[str, int]

ROUND_MS = 5
"""One OffsetCommit request is stored within a few milliseconds. Commits of a member that are closer than this belong to
one round.
"""


class Point(NamedTuple):
    """One commit with its exact position and time."""

    position: Position
    at: int
    committed: int


class CommitSegment(NamedTuple):
    """The first, the last but one and the last commit of one resource between two group records.

    They are exact, however long the runs are. If the last two have the same offset, `third_last` is exact too;
    otherwise it is None.
    """

    first: Point
    third_last: Point | None
    before_last: Point | None
    last: Point


ENDS = tuple(
    (f"{end}_offset", f"{end}_commit_at", f"{end}_committed_offset")
    for end in ("first", "third_last", "before_last", "last")
)


class CommitHistory:
    """The commits of one group by resource, as far as runs contain them.

    Each run of `offset_commits` has its first, last but one and last record. If the last two commit the same offset, it
    also has the record before them. A run never spans a group record. More commits in between may be known. They depend
    on the division into runs, so the methods never return them. `committers` has the ids in the metadata of commits, by
    position.
    """

    def __init__(self, runs: Iterable[Mapping[str, Any]]) -> None:
        points: dict[Resource, set[Point]] = defaultdict(set)
        self._topics: dict[str, tuple[Position, str]] = {}
        self.committers: dict[Position, str] = {}
        for run in runs:
            if run["is_tombstone"]:
                continue
            log_epoch, mine = run["log_epoch"], points[run["topic"], run["partition"]]
            if run["topic_id"] is not None:
                self.add_topic(run)
            if run["committer_id"] is not None:
                self.add_committer(run)
            # A run of one commit has one point. Short batches produce many such runs.
            for offset_name, at_name, committed in ENDS[:1] if run["last_offset"] == run["first_offset"] else ENDS:
                offset, at = run[offset_name], run[at_name]
                if offset is not None and at is not None:
                    mine.add(Point((log_epoch, offset), at, run[committed]))
        self._points = {resource: sorted(found) for resource, found in points.items() if found}

    def add_points(self, resource: Resource, points: list[Point]) -> None:
        """Add the commits of a resource that has none yet, in order."""
        self._points[resource] = points

    def add_topic(self, run: Mapping[str, Any]) -> None:
        """Add the name of a topic from a run with its id."""
        named = ((run["log_epoch"], run["first_offset"]), run["topic"])
        self._topics[run["topic_id"]] = min(named, self._topics.get(run["topic_id"], named))

    def add_committer(self, run: Mapping[str, Any]) -> None:
        """Add the id in the metadata of a run's last commit."""
        self.committers[run["log_epoch"], run["last_offset"]] = run["committer_id"]

    def with_points(self, points: Mapping[Resource, Iterable[Point]]) -> CommitHistory:
        """Return the history with additional commits from before its runs."""
        out = CommitHistory(())
        out._topics, out.committers = self._topics, self.committers
        out._points = self._points | {
            resource: sorted({*self._points.get(resource, ()), *more}) for resource, more in points.items() if more
        }
        return out

    def renamed(self, resources: Mapping[Resource, Resource]) -> CommitHistory:
        """Return the commits of other resources, by the names that they shall have."""
        out = CommitHistory(())
        out.committers = self.committers
        out._points = {new: self._points[old] for new, old in resources.items() if old in self._points}
        return out

    def first_topics(self, topics: Collection[str]) -> dict[int, str]:
        """Return for each partition the one of these topics that has the first commit."""
        begun = ((points[0].position, *resource) for resource, points in self._points.items() if resource[0] in topics)
        return {partition: topic for _, topic, partition in sorted(begun, reverse=True)}

    def topic_names(self, before: Position) -> dict[str, tuple[Position, str]]:
        """Return topic id → the first commit before a position that contains the topic's name, and the name."""
        return {topic_id: named for topic_id, named in self._topics.items() if named[0] < before}

    def span(self) -> tuple[int, int] | None:
        """Return the times of the group's first and last commit."""
        ends = [at for points in self._points.values() for at in (points[0].at, points[-1].at)]
        return (min(ends), max(ends)) if ends else None

    def segment(self, resource: Resource, after: Position, before: Position) -> CommitSegment | None:
        """Return the commits strictly between two positions, which are those of group records or the end of the
        history.
        """
        points = self._points.get(resource, [])
        # A point begins with its position, so bisect compares plain tuples and calls no Python function.
        low = bisect_left(points, (after, inf))
        high = bisect_left(points, (before,), low)
        if low >= high:
            return None
        last = points[high - 1]
        before_last = points[high - 2] if high - low > 1 else None
        is_repeated = before_last is not None and last.committed == before_last.committed
        third_last = points[high - 3] if is_repeated and high - low > 2 else None
        return CommitSegment(points[low], third_last, before_last, last)

    def last_committer(self, resource: Resource, after: Position, before: Position) -> str | None:
        """Return the id in the metadata of the last commit strictly between two positions, as `segment` returns it."""
        found = self.segment(resource, after, before)
        return None if found is None else self.committers.get(found.last.position)

    def first(self, resource: Resource, after: Position, before: Position) -> Point | None:
        """Return the first commit strictly between two positions."""
        points = self._points.get(resource, [])
        low = bisect_left(points, (after, inf))
        return points[low] if low < len(points) and points[low].position < before else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One group record (`coordinator_records`).

    `expression` is the regex of a ConsumerGroupRegularExpression record.
    """

    position: Position
    partition: int
    at: int | None
    kind: str
    member_id: str | None
    value: dict[str, Any] | None
    expression: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One lifecycle line (`coordinator_events`) with all fields of the table."""

    at: int
    precision: int
    kind: str
    fields: Mapping[str, Any] = field(hash=False, compare=False)

    @property
    def until(self) -> int:
        """The last millisecond at which the event can have happened."""
        return self.at + max(self.precision, 1) - 1

    def __getitem__(self, name: str) -> Any:
        return self.fields[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The history of one group.

    `events` are the lines of coordinators, `worker_lines` those of Connect workers. From polls of the cluster come
    `topic_names` (id → name) and `partition_counts` (name → the highest partition count in any poll).
    """

    cluster: str
    group_id: str
    records: list[Record]
    commits: CommitHistory
    events: list[Event]
    worker_lines: list[Event] = field(default_factory=list)
    topic_names: Mapping[str, str] = field(default_factory=dict)
    partition_counts: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        cluster: str,
        group_id: str,
        records: Iterable[Mapping[str, Any]],
        runs: Iterable[Mapping[str, Any]] | CommitHistory,
        events: Iterable[Mapping[str, Any]],
        topic_names: Mapping[str, str] | None = None,
        partition_counts: Mapping[str, int] | None = None,
    ) -> History:
        """Build a history. Records are ordered and deduplicated by position, lines by time and text.

        A shipper may send a line twice. `runs` are rows, or the commits made of them.
        """
        by_position = {(row["log_epoch"], row["source_offset"]): row for row in records}
        # A line that was received twice keeps its first place, in any order of arrival.
        lines = {(row["event_at"], row["raw"]): row for row in sorted(events, key=_position, reverse=True)}
        ordered = [
            Event(at=row["event_at"], precision=row["event_precision_ms"], kind=row["event_kind"], fields=row)
            # Lines with equal timestamps keep the order of the file, which is more precise than the clock.
            for row in sorted(lines.values(), key=lambda row: (row["event_at"], *_position(row)))
        ]
        return cls(
            cluster=cluster,
            group_id=group_id,
            records=[
                Record(
                    position=position,
                    partition=row["source_partition"],
                    at=row["record_at"],
                    kind=row["record_kind"],
                    member_id=row["member_id"],
                    value=None if row["is_tombstone"] else row["body"]["value"],
                    expression=row["body"]["key"].get("regularExpression"),
                )
                for position, row in sorted(by_position.items())
            ],
            commits=runs if isinstance(runs, CommitHistory) else CommitHistory(runs),
            events=[e for e in ordered if e.kind not in WORKER_KINDS],
            worker_lines=[e for e in ordered if e.kind in WORKER_KINDS],
            topic_names=topic_names or {},
            partition_counts=partition_counts or {},
        )


def _position(row: Mapping[str, Any]) -> tuple[str, int]:
    return row["source_id"], row["line_no"]
