"""One pass over a phase's records: epochs, members, hand-overs and the group's state (`ConsumerGroup.java`)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from pipelines.silver.coordinator_assigned import bumps, membership, reconciliation
from pipelines.silver.coordinator_assigned.carried_epochs import settle
from pipelines.silver.coordinator_assigned.epoch_reader import EpochReader
from pipelines.silver.coordinator_assigned.epochs import ChangeKind, EpochHistory
from pipelines.silver.coordinator_assigned.snapshot import Snapshot
from pipelines.silver.coordinator_assigned.state_points import StatePoint, base_epoch, state_point
from pipelines.silver.coordinator_assigned.topics import TopicNames
from pipelines.silver.history import Record
from pipelines.silver.phases import Phase
from pipelines.silver.timeline import Timeline


def epoch_history(
    phase: Phase, names: TopicNames, timeline: Timeline, survivors: frozenset[str], known: Snapshot | None
) -> tuple[EpochHistory, list[StatePoint]]:
    """Read the records of a phase and return its history and the points from which it may resume.

    `survivors` are the members that move to the classic protocol with the group. `known` is the stored state from which
    the history resumes, or None.
    """
    reader, points = EpochReader(phase, names, timeline), list[StatePoint]()
    if known is not None:
        reader.go_on(known, base_epoch(known))
    for batch in _batches(phase.records):
        reader.begin_write(batch)
        if (point := state_point(reader)) is not None:
            points.append(point)
        for record in batch:
            if (read := READERS.get(record.kind.removeprefix(reader.prefix))) is not None:
                read(reader, record)
        if reader.is_conversion:
            membership.conversion(reader, batch[-1], survivors)
        elif any(record.kind == f"{reader.prefix}MemberMetadata" for record in batch):
            membership.without_new_epoch(reader, batch[-1])
        reader.end_write()
    history = reader.history
    if history.epochs:
        history.epochs[-1].matched = reader.matched
    history.members, history.is_alive = dict(reader.coordinator.members), reader.is_alive
    settle(reader, points)
    return history, points


def _regex(reader: EpochReader, record: Record) -> None:
    if record.value is not None:
        reader.matched = {**reader.matched, record.expression or "": frozenset(record.value["topics"])}
        reader.happen(ChangeKind.REGEX, record)


def _topics(reader: EpochReader, record: Record) -> None:
    if record.value is not None and reader.coordinator.number is not None:
        reader.happen(ChangeKind.METADATA, record)


def _topology(reader: EpochReader, record: Record) -> None:
    reader.coordinator.topology = record.value["epoch"] if record.value is not None else None


READERS = {
    "Metadata": bumps.group_epoch,
    "MemberMetadata": membership.member_metadata,
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
