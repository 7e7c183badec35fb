"""A group with more kinds of events than `EagerGroup`, and its diagnoses by cause."""

from __future__ import annotations

from pipelines.gold.diagnosis.diagnosis import diagnosis_rows
from pipelines.gold.marks_nearby import in_order
from tests.gold.histories import START, EagerGroup


class Group(EagerGroup):
    """A group with further kinds of events."""

    def rejoins(self, at: int, trigger: str, **fields) -> None:
        """The same members rejoin."""
        start = START + at
        self._generation(start, self._wait(), trigger, stops=dict.fromkeys(self.owners.values(), start), left=[])
        self.rows["generations"][-1] |= fields

    def dies(self, index: int, at: int, session_ms: int | None = None) -> None:
        silent = self.session_ms if session_ms is None else session_ms
        self.leaves(index, at, how="session_expired", silent_ms=silent, trigger="session_expired")

    def naps(self, index: int, at: int, back: int = 500) -> None:
        """A member is silent for its whole session, and comes back as soon as it was removed."""
        self.dies(index, at)
        self.returns(index, at + self.session_ms + back)

    def polls_late(self, index: int, at: int, printed: str | None = "consumer poll timeout has expired.") -> None:
        how, trigger = ("poll_timeout", "poll_timeout") if printed else ("left", "member_left")
        self.leaves(index, at, how=how, silent_ms=0, trigger=trigger)
        self.rows["group_events"][-1]["detail"] = printed
        self.returns(index, at + 4_000)

    def moves(self, at: int) -> None:
        """The group's coordinator moves."""
        self._event(START + at, "coordinator_moved", "")

    def forget(self) -> dict:
        """Return the silver rows as without the coordinator's log, for a group that does not commit."""
        silver = {name: [dict(row) for row in rows] for name, rows in self.silver().items()}
        for event in silver["group_events"]:
            event |= {"kind": "joined" if event["kind"] == "joined" else "left", "detail": "by then"}
            event["evidence"] = "bounded" if event["kind"] == "joined" else "inferred"
        for g in silver["generations"]:
            described = g["trigger"] if g["trigger"] in ("member_joined", "first_member") else "unknown"
            g |= {"trigger": described, "trigger_evidence": "inferred", "trigger_member_id": None, "prepared_at": None}
            g |= {"client_reason": None, "slowest_member_id": None, "slowest_waited_ms": None}
        return silver


def diagnosed(group: EagerGroup | dict, since: int = 0, marks=()) -> dict[str, dict]:
    """Return the diagnoses by cause, without the cost of the group's start."""
    silver = group.silver() if isinstance(group, EagerGroup) else group
    return {row["cause"]: row for row in diagnosis_rows(silver, START + since, in_order(marks))}


def later(group: EagerGroup | dict, marks=()) -> dict[str, dict]:
    """Return the diagnoses of what happened some time after the start."""
    return diagnosed(group, since=30_000, marks=marks)


def marked(at: int, text: str = "v2.31", kind: str = "deploy") -> dict:
    return {"marked_at": START + at, "kind": kind, "text": text, "group_id": None, "group_ids": []}


def slow(group: EagerGroup, index: int, waited: int) -> None:
    member = group.up[index]
    group.rows["generations"][-1] |= {"slowest_member_id": member, "slowest_waited_ms": waited}
