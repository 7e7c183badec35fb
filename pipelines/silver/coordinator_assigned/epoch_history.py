"""One pass over a phase's records: epochs, members, hand-overs and the group's state (`ConsumerGroup.java`)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from pipelines.silver.coordinator_assigned import bumps, membership, reconciliation
from pipelines.silver.coordinator_assigned.epoch_reader import EpochReader
from pipelines.silver.coordinator_assigned.epochs import EpochHistory, What
from pipelines.silver.coordinator_assigned.quiescent_points import QuiescentPoint, base_epoch, quiescent_point
from pipelines.silver.coordinator_assigned.snapshot import Snapshot
from pipelines.silver.coordinator_assigned.topics import TopicNames
from pipelines.silver.history import Record
from pipelines.silver.phases import Phase
from pipelines.silver.timeline import Timeline


def epoch_history(
    phase: Phase, names: TopicNames, timeline: Timeline, survivors: frozenset[str], known: Snapshot | None
) -> tuple[EpochHistory, list[QuiescentPoint]]:
    """Read the records of a phase and return its history and its quiescent points.

    `survivors` are the members that move to the classic protocol with the group. `known` is the stored state from which
    the history resumes, or None.
    """
    walk, rests = EpochReader(phase, names, timeline), list[QuiescentPoint]()
    if known is not None:
        walk.go_on(known, base_epoch(known))
    for batch in _batches(phase.records):
        walk.begin_write(batch)
        if (rest := quiescent_point(walk)) is not None:
            rests.append(rest)
        for record in batch:
            if (reader := READERS.get(record.kind.removeprefix(walk.prefix))) is not None:
                reader(walk, record)
        if walk.is_conversion:
            membership.conversion(walk, batch[-1], survivors)
        elif any(record.kind == f"{walk.prefix}MemberMetadata" for record in batch):
            membership.without_new_epoch(walk, batch[-1])
        walk.end_write()
    course = walk.course
    if course.epochs:
        course.epochs[-1].matched = walk.matched
    course.members, course.is_alive = dict(walk.stand.seats), walk.is_alive
    return course, rests


def _regex(walk: EpochReader, record: Record) -> None:
    if record.value is not None:
        walk.matched = {**walk.matched, record.expression or "": frozenset(record.value["topics"])}
        walk.happen(What.REGEX, record)


def _topics(walk: EpochReader, record: Record) -> None:
    if record.value is not None and walk.stand.number is not None:
        walk.happen(What.METADATA, record)


def _topology(walk: EpochReader, record: Record) -> None:
    walk.stand.topology = record.value["epoch"] if record.value is not None else None


READERS = {
    "Metadata": bumps.group_epoch,
    "MemberMetadata": membership.member,
    "TargetAssignmentMetadata": bumps.target_epoch,
    "TargetAssignmentMember": bumps.target,
    "CurrentMemberAssignment": reconciliation.current,
    "RegularExpression": _regex,
    "PartitionMetadata": _topics,
    "Topology": _topology,
}
"""The reader of each record kind; kinds are without the prefix of their protocol."""


def _batches(records: list[Record]) -> Iterator[list[Record]]:
    """Yield the records of each write. They have one timestamp; a record without a timestamp is a write of its own."""
    for key, batch in groupby(records, key=lambda r: (r.at is None and r.position, r.at)):
        del key
        yield list(batch)
