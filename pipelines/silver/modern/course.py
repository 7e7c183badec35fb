"""One pass over the records of a phase: epochs, members, hand-overs and the group's state (`ConsumerGroup.java`)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from pipelines.silver.history import Record, Resource
from pipelines.silver.modern import reading
from pipelines.silver.modern.epochs import (
    FIRST_EPOCHS,
    NOTHING,
    PAUSED_EPOCH,
    Begun,
    Course,
    Current,
    Emptied,
    Epoch,
    Given,
    Got,
    Happening,
    How,
    Seat,
    Taken,
    What,
)
from pipelines.silver.modern.rests import Rest, base_epoch
from pipelines.silver.modern.snapshot import Snapshot
from pipelines.silver.modern.state import Stand
from pipelines.silver.modern.topics import TopicNames
from pipelines.silver.phases import PREFIXES, Phase
from pipelines.silver.timeline import Timeline
from schemas.states import GroupProtocol, GroupState


class Walk:
    """Reads the records of one phase in order; `course` is what it found, `rests` when the group was at rest."""

    def __init__(
        self,
        phase: Phase,
        names: TopicNames,
        timeline: Timeline,
        survivors: frozenset[str],
        known: Snapshot | None,
    ) -> None:
        self.course = Course(incarnation=timeline.incarnation)
        self._phase, self._names, self._timeline = phase, names, timeline
        self._survivors = survivors
        self._prefix = next(prefix for prefix, p in PREFIXES.items() if p == phase.protocol)
        self.rests: list[Rest] = []
        self._ends_at = phase.records[-1].at if phase.is_handed_on else None
        self._now = Stand()
        self._batch: list[Record] = []
        self._fresh: list[Happening] = []
        self._leaving: list[Taken] = []
        self._is_alive = timeline.is_alive
        self._inherits = phase.is_taken_over
        self._matched: dict[str, frozenset[str]] = {}
        self._matched_before = self._matched
        self._at: int | None = None
        if known is not None:
            self._go_on(known)

    def run(self) -> Course:
        handlers = {
            "Metadata": self._epoch,
            "MemberMetadata": self._member,
            "TargetAssignmentMetadata": self._target_epoch,
            "TargetAssignmentMember": self._target,
            "CurrentMemberAssignment": self._current,
            "RegularExpression": self._regex,
            "PartitionMetadata": self._topics,
            "Topology": self._shape,
        }
        for batch in _batches(self._phase.records):
            self._batch, self._fresh, self._leaving = batch, [], []
            self._matched_before = self._matched
            if (rest := self._rest(batch)) is not None:
                self.rests.append(rest)
            for record in batch:
                handler = handlers.get(record.kind.removeprefix(self._prefix))
                if handler is not None:
                    handler(record)
            if self._ends_at is not None and batch[-1] is self._phase.records[-1]:
                self._hand_on(batch[-1])
            elif any(record.kind == f"{self._prefix}MemberMetadata" for record in batch):
                self._come_and_go(batch[-1])
            for happening in self._fresh:
                happening.number = self._now.number if happening.number is None else happening.number
            self._state(batch[-1])
            self._at = batch[-1].at
        if self.course.epochs:
            self.course.epochs[-1].matched = self._matched
        self.course.members, self.course.is_alive = dict(self._now.seats), self._is_alive
        return self.course

    # --- members -----------------------------------------------------------------------------------------------------

    def _is_conversion(self, record: Record) -> bool:
        """The tombstones with which the whole group goes over to another protocol."""
        return self._ends_at is not None and record.at == self._ends_at and self._batch[-1] is self._phase.records[-1]

    def _member(self, record: Record) -> None:
        member_id = record.member_id or ""
        if record.value is None:
            if not self._is_conversion(record):
                self._gone(member_id, record)
            return
        seat = reading.seat(record, record.value)
        old = self._now.seats.get(member_id)
        self._now.seats[member_id] = seat
        if old is not None:
            if (old.topics, old.regex, old.assignor) != (seat.topics, seat.regex, seat.assignor):
                self._happen(What.CHANGED, record, seat=seat, before=old)
            return
        self._now.behind.add(member_id)
        returned = next((h for h in self._fresh if h.what == What.RETURNED and h.seat and _same(h.seat, seat)), None)
        if returned is not None and returned.seat is not None:
            self._settle_return(record, returned.seat, seat)
            returned.before, returned.seat = returned.seat, seat
        elif not (self._inherits and seat.is_classic):
            self._happen(What.JOINED, record, seat=seat)

    def _come_and_go(self, record: Record) -> None:
        """Members that came or went without a new epoch, as one does whose subscription matches no topic yet."""
        newest = self._newest
        if newest is None:
            return
        at = record.at or newest.joined_at
        for member_id in self._now.seats.keys() - newest.seats.keys():
            newest.seats[member_id], newest.began[member_id] = self._now.seats[member_id], at
            self._now.owed.setdefault(member_id, []).append(newest)
        for member_id in newest.seats.keys() - self._now.seats.keys() - newest.ended.keys():
            newest.ended[member_id] = at
            newest.waiting.discard(member_id)

    def _gone(self, member_id: str, record: Record) -> None:
        seat = self._now.seats.pop(member_id, None)
        now = self._now.currents.pop(member_id, None)
        self._now.targets.pop(member_id, None)
        self._now.target_ids.pop(member_id, None)
        if seat is None:
            return
        is_replaced = any(
            r.value is not None and r.kind.endswith("GroupMemberMetadata") and r.member_id != member_id
            and seat.group_instance_id is not None and r.value.get("instanceId") == seat.group_instance_id
            for r in self._batch
        )  # fmt: skip
        self._happen(What.RETURNED if is_replaced else What.GONE, record, seat=seat)
        for revoked in self._now.revoking.pop(member_id, ()):
            revoked.until, revoked.is_expelled = record, not is_replaced
        how = How.REPLACED if is_replaced else How.GONE
        if taken := self._take(record, how, seat, now.assigned if now else NOTHING):
            self._leaving.append(taken)
        self._now.behind.discard(member_id)
        self._now.owed.pop(member_id, None)

    def _settle_return(self, record: Record, old: Seat, new: Seat) -> None:
        """A static replacement happens within the epoch: no bump (KIP-848)."""
        newest, at = self._newest, record.at or 0
        if newest is None:
            return
        newest.ended[old.member_id], newest.began[new.member_id] = at, at
        newest.seats[new.member_id] = new
        if newest.target is not None and old.member_id in newest.target:
            newest.target[new.member_id] = newest.target[old.member_id]
        if old.member_id in newest.waiting:
            newest.waiting.discard(old.member_id)
            newest.waiting.add(new.member_id)
        self._now.owed.setdefault(new.member_id, []).append(newest)

    # --- epochs ------------------------------------------------------------------------------------------------------

    @property
    def _newest(self) -> Epoch | None:
        epochs = self.course.epochs
        return epochs[-1] if epochs and self._is_alive and self._now.number is not None else None

    def _epoch(self, record: Record) -> None:
        if record.value is None:
            if not self._is_conversion(record):
                self._dead(record)
            return
        number = record.value["epoch"]
        self._now.validated = record.value.get("validatedTopologyEpoch")
        stated = record.value.get("metadataHash")
        if self._now.number is not None and number == self._now.number:
            self._now.metadata_hash = stated
            return
        if (
            self._now.metadata_hash is not None
            and stated is not None
            and stated != self._now.metadata_hash
            and self._now.seats
        ):
            self._happen(What.METADATA, record)
        self._now.metadata_hash = stated
        # The members of a converted group come first, under the number that their generation had.
        is_repeated = self._inherits and bool(self._now.seats) and all(s.is_classic for s in self._now.seats.values())
        self._inherits = False
        if self._is_alive and not is_repeated:
            last = self._now.number if self._now.number is not None else self._timeline.number
            if last is not None and (number <= last or self._now.number is None):
                self._begin(record)
        self._bump(record, number, is_repeated=is_repeated)

    def _begin(self, record: Record) -> None:
        self.course.incarnation += 1
        self._now.number = None
        self.course.moves.append(Begun(record=record, incarnation=self.course.incarnation))

    def _bump(self, record: Record, number: int, *, is_repeated: bool) -> None:
        previous, at = self._newest, record.at or 0
        if previous is not None and previous.completed_at is None:
            previous.overtaken_at = at
        is_taken_over = self._now.number is None and self._phase.is_taken_over
        for happening in self._fresh:
            happening.incarnation = self.course.incarnation
            happening.number = number if happening.number is None else happening.number
        for taken in self._leaving:
            taken.number = number
        self._leaving = []
        if self._now.number is None:
            self._begins_with(number, record, is_taken_over=is_taken_over and not self.course.epochs)
        epoch = Epoch(
            record=record,
            incarnation=self.course.incarnation,
            number=number,
            previous=previous,
            is_repeated=is_repeated,
            seats=dict(self._now.seats),
            owned={m: now for m, now in self._now.currents.items() if m in self._now.seats},
            why=[h for h in self._fresh if h.number == number],
            before=previous.final if previous is not None else {},
        )
        if self.course.epochs:
            self.course.epochs[-1].matched = self._matched_before
        if not self._now.seats:
            epoch.completed_at = at
            self._happen(What.EMPTY, record, number=number)
            self.course.moves.append(Emptied(record=record))
        for member_id in self._now.seats:
            self._now.owed.setdefault(member_id, []).append(epoch)
        self.course.epochs.append(epoch)
        self._now.number, self._is_alive = number, True

    def _begins_with(self, number: int, record: Record, *, is_taken_over: bool) -> None:
        """The first epoch that is known; of a history that begins late it tells nothing about its members."""
        is_whole = number in FIRST_EPOCHS or self.course.incarnation > self._timeline.incarnation
        for happening in self.course.happenings:
            if happening.what == What.JOINED and happening.incarnation == self.course.incarnation:
                happening.number, happening.is_by_then = number, not (is_whole or is_taken_over)
        if is_taken_over:
            self._happen(What.UPGRADED, record, number=number)
        elif is_whole:
            self._happen(What.CREATED, record, number=number)

    def _target_epoch(self, record: Record) -> None:
        if record.value is None:
            return
        self._now.assigned_epoch = number = record.value["assignmentEpoch"]
        self._now.behind = {m for m in self._now.seats if not self._is_done(m, number)}
        # An assignor that runs in the background (4.3) may finish for an epoch that another has followed.
        epoch = next((e for e in reversed(self.course.epochs) if e.number <= number), None)
        if epoch is None or epoch.number != number or epoch.synced_at is not None:
            return
        epoch.synced_at = record.at or epoch.joined_at
        epoch.target = {m: self._now.targets.get(m, Given()) for m in self._now.seats if m in epoch.seats}
        epoch.waiting = set(self._now.behind)
        if epoch is self._newest:
            self._complete(epoch, record)

    def _is_done(self, member_id: str, number: int) -> bool:
        now = self._now.currents.get(member_id)
        return now is not None and now.is_done and now.epoch >= number

    def _complete(self, newest: Epoch, record: Record) -> None:
        if newest.target is not None and not newest.waiting and newest.completed_at is None:
            newest.completed_at = record.at or newest.joined_at

    def _target(self, record: Record) -> None:
        if record.value is not None:
            self._now.targets[record.member_id or ""] = reading.given(record.value, self._names.resources)
            self._now.target_ids[record.member_id or ""] = sorted(
                {t["topicId"] for t in record.value.get("topicPartitions", ())}
            )
        else:
            self._now.targets.pop(record.member_id or "", None)
            self._now.target_ids.pop(record.member_id or "", None)

    # --- current assignments -----------------------------------------------------------------------------------------

    def _current(self, record: Record) -> None:
        member_id = record.member_id or ""
        seat = self._now.seats.get(member_id)
        if record.value is None or seat is None:
            return  # the member's own tombstone follows
        now = reading.current(self._prefix, record.value, self._names.resources)
        was = self._now.currents.get(member_id)
        self._now.currents[member_id] = now
        had = was.assigned if was else NOTHING
        for taken in self._now.revoking.pop(member_id, ()):
            if taken.resources & now.pending:
                self._now.revoking.setdefault(member_id, []).append(taken)
            else:
                taken.until = record
        if now.epoch == PAUSED_EPOCH:
            self._happen(What.PAUSED, record, seat=seat)
            self._take(record, How.PAUSED, seat, had | now.assigned)
        else:
            self._hand_over(record, seat, was, now)
        self._reach(member_id, now, record)

    def _hand_over(self, record: Record, seat: Seat, was: Current | None, now: Current) -> None:
        had = was.assigned if was else NOTHING
        pending = now.pending - (was.pending if was else NOTHING)
        revoked_for = self._now.assigned_epoch or now.epoch
        if pending and (taken := self._take(record, How.REVOKED, seat, pending, revoked_for)):
            self._now.revoking.setdefault(seat.member_id, []).append(taken)
        lost = had - now.assigned - now.pending
        is_eager = seat.is_classic and not seat.owns_on_rejoin
        rejoined = is_eager and was is not None and now.epoch > was.epoch
        # An eager client of the classic protocol gives up everything before it joins again, and then gets it back.
        if taken := self._take(record, How.REJOINED, seat, had if rejoined else lost, now.epoch):
            taken.until = record
        got = now.assigned if rejoined or (was and was.epoch == PAUSED_EPOCH) else now.assigned - had
        if got and self._phase.protocol != GroupProtocol.SHARE:
            self.course.moves.append(
                Got(
                    record=record,
                    incarnation=self.course.incarnation,
                    # A static member's new process is shown at epoch 0 first.
                    number=now.epoch or self._now.number or 0,
                    member_id=seat.member_id,
                    resources=got,
                )
            )

    def _take(
        self, record: Record, how: How, seat: Seat, resources: frozenset[Resource], number: int | None = None
    ) -> Taken | None:
        if self._phase.protocol == GroupProtocol.SHARE:
            resources = NOTHING  # nobody owns what a share group hands out
        if not resources and how != How.GONE:
            return None
        taken = Taken(
            record=record,
            incarnation=self.course.incarnation,
            number=number or self._now.number or 0,
            how=how,
            seat=seat,
            resources=resources,
        )
        self.course.moves.append(taken)
        return taken

    def _reach(self, member_id: str, now: Current, record: Record) -> None:
        """The member is at its epoch, and so at every one before."""
        number = self._now.assigned_epoch
        if number is not None and now.is_done and now.epoch >= number:
            self._now.behind.discard(member_id)
        else:
            self._now.behind.add(member_id)
        if not now.is_done or now.epoch < 0:
            return
        owed = self._now.owed.get(member_id, [])
        self._now.owed[member_id] = [e for e in owed if e.number > now.epoch]
        for epoch in owed:
            if epoch.number <= now.epoch and record.at is not None:
                epoch.reconciled[member_id] = record.at
        newest = self._newest
        if newest is not None and now.epoch >= newest.number:
            newest.waiting.discard(member_id)
            self._complete(newest, record)

    # --- at rest -----------------------------------------------------------------------------------------------------

    def _go_on(self, known: Snapshot) -> None:
        self._now, self._matched, self._at = known.stand.at_rest(), dict(known.matched), known.at
        self._is_alive, self._inherits = True, False
        self.course.epochs.append(base_epoch(known))
        self.course.incarnation = known.incarnation
        self.course.state, self.course.state_since = GroupState.STABLE, known.since

    def _rest(self, batch: list[Record]) -> Rest | None:
        """Before a write that begins an epoch: all members had reached the one before, and for a while."""
        newest, at = self._newest, batch[0].at
        if (
            newest is None
            or newest.completed_at is None
            or at is None
            or self._at is None
            or at - newest.completed_at <= self._timeline.quiet_ms
            or self._phase.protocol != GroupProtocol.CONSUMER
            or self.course.state != GroupState.STABLE
            or any(self._now.owed.values())
            or self._now.revoking
        ):
            return None
        kind, number = f"{self._prefix}Metadata", self._now.number
        begun = next((r for r in batch if r.kind == kind and r.value is not None and r.value["epoch"] != number), None)
        if begun is None:
            return None
        names = self._names.before(batch[0].position)
        if self._names.asked - names.keys():
            return None
        return Rest(
            position=batch[0].position,
            next=begun.position,
            at=self._at,
            next_at=at,
            epoch=newest,
            since=self.course.state_since,
            stand=self._now.at_rest(),
            names=names,
            matched=self._matched,
        )

    # --- what the group consumes -------------------------------------------------------------------------------------

    def _regex(self, record: Record) -> None:
        if record.value is not None:
            self._matched = {**self._matched, record.expression or "": frozenset(record.value["topics"])}
            self._happen(What.REGEX, record)

    def _topics(self, record: Record) -> None:
        if record.value is not None and self._now.number is not None:
            self._happen(What.METADATA, record)

    def _shape(self, record: Record) -> None:
        self._now.topology = record.value["epoch"] if record.value is not None else None

    # --- life and death ----------------------------------------------------------------------------------------------

    def _dead(self, record: Record) -> None:
        self._happen(What.DEAD, record, number=self._now.number)
        if self._is_alive:
            self._begin(record)
        self._is_alive = self._inherits = False
        self._now = self._now.cleared()

    def _hand_on(self, record: Record) -> None:
        """The members that do not go over to the other protocol have left, and a rebalance follows at once."""
        for member_id in sorted(self._now.seats.keys() - self._survivors):
            self._gone(member_id, record)
        for taken in self._leaving:
            taken.number += 1
        if not self._survivors:
            self.course.moves.append(Emptied(record=record))

    def _state(self, record: Record) -> None:
        state = self._now.state(self._phase.protocol) if self._is_alive else GroupState.DEAD
        if state != self.course.state:
            self.course.state, self.course.state_since = state, record.at

    def _happen(
        self, what: What, record: Record, *, number: int | None = None, seat: Seat | None = None,
        before: Seat | None = None,
    ) -> None:  # fmt: skip
        happening = Happening(
            what=what,
            record=record,
            incarnation=self.course.incarnation,
            number=number,
            seat=seat,
            before=before,
        )
        self._fresh.append(happening)
        self.course.happenings.append(happening)


def _batches(records: list[Record]) -> Iterator[list[Record]]:
    """Records of one write: all have one timestamp. One without a timestamp stands alone."""
    for key, batch in groupby(records, key=lambda r: (r.at is None and r.position, r.at)):
        del key
        yield list(batch)


def _same(old: Seat, new: Seat) -> bool:
    return old.group_instance_id is not None and old.group_instance_id == new.group_instance_id
