"""Everything about one group in the range of an address, prepared for drawing over time."""

from __future__ import annotations

from dataclasses import dataclass

from dashboards.lake.lake import Row
from dashboards.queries.generation_times import ended
from dashboards.queries.group_rows import GroupRows, group_rows
from dashboards.queries.store import KnownSpan, Store
from dashboards.urlstate import State, Window, window
from dashboards.views import sentences
from dashboards.views.timelines.lanes import Lane, delays, lanes
from dashboards.views.timelines.owners import Owned, ownership
from dashboards.views.timelines.running import Running, running
from dashboards.views.timelines.segments import PARTIAL_MODES, Segment
from dashboards.views.timelines.states import states, with_unread_spans
from schemas.folded_rows import count_of
from schemas.states import GroupType


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTimeline:
    """A group in a range. `shown` is the value of `from` that names the range; `last` is the newest known time (ms).

    `inside` holds the generations whose join phase ended in the range, newest first. `strip`, `lanes`, `owned`,
    `running` and `delays` are as the functions of `dashboards.views.timelines` return them.
    """

    found: Row
    seen: KnownSpan
    last: int
    view: Window
    shown: str
    rows: GroupRows
    inside: list[Row]
    strip: list[Segment]
    lanes: list[Lane]
    owned: list[Owned]
    running: list[Running]
    delays: list[Segment]

    @property
    def unit(self) -> str:
        """The noun for a resource of the group."""
        return sentences.unit(self.found["group_type"])

    @property
    def is_unread(self) -> bool:
        """Whether no record of the range was read."""
        return bool(self.rows.gaps.rows) and all(each.kind == "unknown" for each in self.strip)

    @property
    def is_capped(self) -> bool:
        """Whether only the newest part of the range was read."""
        return any(
            each.is_capped for each in (self.rows.generations, self.rows.events, self.rows.members, self.rows.stalls)
        )


def named_group(store: Store, state: State) -> str | None:
    """Return the id of the group that the address names, by its id or its hash."""
    return store.group_by_hash(state.cluster, state.gid) if state.gid else state.group


def group_timeline(store: Store, state: State, now: int) -> GroupTimeline | None:
    """Return the group of the address in its range, or None if the tables hold no such group.

    Raises `LakeError` if a table cannot be read.
    """
    group = named_group(store, state)
    seen = store.span(state.cluster)
    found = store.group(state.cluster, group) if group is not None else None
    if found is None or seen is None or group is None:
        return None
    last = max(seen.last_at, found["last_record_at"] or seen.last_at)
    view, shown = window(state, now, (found["first_seen_at"], last))
    rows = group_rows(store, state.cluster, group, view)
    generations, members, events = rows.generations.rows, rows.members.rows, rows.events.rows
    epochs = {g["generation_id"] for g in generations if sentences.term(g) == "epoch"}
    until = _owned_until(found, generations, seen.last_at)
    owned = ownership(members, rows.stalls.rows, view, until, epochs)
    return GroupTimeline(
        found=found,
        seen=seen,
        last=last,
        view=view,
        shown=shown,
        rows=rows,
        inside=[g for g in generations if view.start <= g["joined_at"] < view.end],
        strip=with_unread_spans(states(generations, found, events, view, seen.last_at), rows.gaps.rows, view),
        lanes=lanes(members, events, view, seen.last_at, state.lanes),
        owned=owned,
        running=running(
            owned,
            rows.stalls.rows,
            view,
            seen.last_at,
            unread=_without_statement(rows, view),
            open_since=until if until < seen.last_at else None,
        )
        if found["group_type"] != GroupType.SHARE
        else [],
        delays=delays(members),
    )


def _without_statement(rows: GroupRows, view: Window) -> list[tuple[int, int]]:
    """Return the spans whose owners are not known: unread, folded into a row, or older than the rows that were read."""
    spans = [(gap["from_at"], gap["to_at"]) for gap in rows.gaps.rows]
    spans += [(g["joined_at"], ended(g)) for g in rows.generations.rows if count_of([g]) > 1]
    if rows.stalls.is_capped:
        spans.append((view.start, min(stall["stopped_at_latest"] for stall in rows.stalls.rows)))
    if rows.members.is_capped:
        spans.append((view.start, min(member["valid_from_at"] for member in rows.members.rows)))
    return spans


def _owned_until(found: Row, generations: list[Row], observed_until: int) -> int:
    """Return the end of the drawn owners. An open rebalance stops all members, unless it is incremental."""
    since = found["open_rebalance_since_at"]
    if since is None or (generations and generations[0]["rebalance_mode"] in PARTIAL_MODES):
        return observed_until
    return min(int(since), observed_until)
