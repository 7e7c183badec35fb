"""Which rebalances of a group belong to one deploy.

All limits are local: whether two rebalances belong together depends only on the hours before them. So it does not
matter where the known history begins, and a later analysis finds the same deploys.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipelines.gold.deploys.announcements import Announcement, announcements
from schemas.rows import MarkRow, VerdictOfGroup
from schemas.states import DiagnosisCause, Verdict
from schemas.thresholds import HOUR_MS, MARK_MS

GAP_MS = MARK_MS
"""Longest time between two rebalances of one deploy: a rolling update waits for each instance to become ready."""

PERIOD_MS, WITHOUT_PAUSE_MS = 6 * HOUR_MS, 3 * HOUR_MS
"""A run that has had no pause for three hours is divided at 0, 6, 12 and 18 h UTC, so that no run is endless."""

LONGEST_MS = PERIOD_MS + WITHOUT_PAUSE_MS + MARK_MS
"""No run lasts longer, from its mark to its last rebalance."""

BEFORE_MS = LONGEST_MS + WITHOUT_PAUSE_MS + GAP_MS
"""Where a run begins depends only on rebalances and marks of this time before it."""

OF_DEPLOYS = (DiagnosisCause.DEPLOY, DiagnosisCause.SCALING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The rebalances of one deploy, in order. Times are in milliseconds.

    `mark` is None if none announced it. `until` is the end of the time in which a mark's rebalances can follow it, or
    the last rebalance if that is later.
    """

    mark: Announcement | None
    rebalances: tuple[VerdictOfGroup, ...]
    until: int

    @property
    def is_deploy(self) -> bool:
        """Whether a mark or a cause shows a deploy, not only members that came or went."""
        deploy = DiagnosisCause.DEPLOY
        return self.mark is not None or any(deploy in (v["cause"], v["set_off_by"]) for v in self.rebalances)


def is_planned(v: VerdictOfGroup) -> bool:
    """Return whether a rebalance was due to a deploy or scaling, or was started by one."""
    return v["verdict"] == Verdict.DEPLOY_OR_SCALING or v["set_off_by"] in OF_DEPLOYS


def runs(verdicts: Sequence[VerdictOfGroup], marks: Sequence[MarkRow]) -> list[Run]:
    """Return the runs of one group in order, including those of marks that no rebalance follows.

    Planned rebalances at most 30 min apart are a run; a mark up to 30 min before one of them begins another. All other
    rebalances between the first and the last are part of it. A mark that names the group, and that no planned rebalance
    follows, takes whatever other rebalances follow it within 30 min.
    """
    ordered = sorted(verdicts, key=lambda v: (v["joined_at"], v["incarnation"], v["generation_id"]))
    joined = [v["joined_at"] for v in ordered]
    marked = announcements(marks, joined)
    found = [_run(part, ordered, marked) for part in _parts(ordered, marked)]
    begun = {run.mark for run in found}
    for mark in marked:
        if mark.is_named and mark not in begun:
            until = _until(mark, marked)
            mine = tuple(v for v in ordered if mark.at <= v["joined_at"] <= until)
            found.append(Run(mark=mark, rebalances=mine, until=until))
    return sorted(found, key=lambda run: run.mark.at if run.mark else run.rebalances[0]["joined_at"])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    mark: Announcement | None
    first: int
    last: int


def _parts(ordered: Sequence[VerdictOfGroup], marked: Sequence[Announcement]) -> Iterator[_Part]:
    """Yield the positions of the first and the last planned rebalance of each run."""
    planned = [at for at, v in enumerate(ordered) if is_planned(v)]
    mark: Announcement | None = None
    first = last = -1
    without_pause_since = 0
    for at in planned:
        now, before = ordered[at]["joined_at"], ordered[last]["joined_at"] if last >= 0 else None
        if before is None or now - before > GAP_MS:
            without_pause_since = now
        near = _mark_of(now, marked)
        is_announced = near is not None and (before is None or near.at > before)
        if before is not None and (is_announced or _is_divided(before, now, without_pause_since)):
            yield _Part(mark=mark, first=first, last=last)
        elif before is not None:
            last = at
            continue
        mark, first, last = near if is_announced else None, at, at
    if last >= 0:
        yield _Part(mark=mark, first=first, last=last)


def _is_divided(before: int, now: int, without_pause_since: int) -> bool:
    """Return whether a run ends between two planned rebalances: after a pause, or because it has gone on for long."""
    if now - before > GAP_MS:
        return True
    limit = now // PERIOD_MS * PERIOD_MS
    return before < limit and without_pause_since <= limit - WITHOUT_PAUSE_MS


def _mark_of(at: int, marked: Sequence[Announcement]) -> Announcement | None:
    position = bisect_right(marked, at, key=lambda mark: mark.at) - 1
    return marked[position] if position >= 0 and at - marked[position].at <= MARK_MS else None


def _run(part: _Part, ordered: Sequence[VerdictOfGroup], marked: Sequence[Announcement]) -> Run:
    rebalances = tuple(ordered[part.first : part.last + 1])
    last = rebalances[-1]["joined_at"]
    until = last if part.mark is None else max(last, _until(part.mark, marked))
    return Run(mark=part.mark, rebalances=rebalances, until=until)


def _until(mark: Announcement, marked: Sequence[Announcement]) -> int:
    """Return the end of the time in which rebalances follow a mark: 30 min, or until the next one."""
    following = next((each.at - 1 for each in marked if each.at > mark.at), None)
    return mark.at + MARK_MS if following is None else min(mark.at + MARK_MS, following)
