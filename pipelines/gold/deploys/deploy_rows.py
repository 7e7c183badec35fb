"""Rows of `deploys`: each deploy of a group, announced by a mark or recognized by the causes of its rebalances."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipelines.gold.deploys.restarts import Restarts, restarts, rounds
from pipelines.gold.deploys.runs import BEFORE_MS, GAP_MS, LONGEST_MS, Run, is_planned, runs
from pipelines.gold.deploys.stops import stops
from pipelines.gold.diagnosis.losses import overtaken
from pipelines.gold.instance_tracker import Number
from pipelines.gold.memberships import number
from pipelines.gold.window import Windows
from schemas.folded_rows import count_of
from schemas.rows import DeployOfGroup, GenerationRow, MarkRow, VerdictOfGroup
from schemas.states import Evidence, GenerationOutcome
from schemas.thresholds import MARK_MS, RESTART_MS

AFTER_MS = LONGEST_MS + RESTART_MS
"""Records of this time after the start of a deploy can change its row. Later ones change only the end of its stops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _History:
    """The generations of one group around the analyzed day, in order; `parts` as `losses.overtaken` returns them."""

    windows: Windows
    generations: Sequence[GenerationRow]
    parts: Mapping[Number, Sequence[Number]]

    def of(self, run: Run) -> list[GenerationRow]:
        """Return the generations of a run, those that were overtaken included."""
        mine = {part for v in run.rebalances for part in self.parts[_number(v)]}
        return [g for g in self.generations if number(g) in mine]

    def before(self, at: int) -> GenerationRow | None:
        """Return the last generation that joined before `at`."""
        return next((g for g in reversed(self.windows.generations) if g["joined_at"] < at), None)


def deploy_rows(
    windows: Windows, verdicts: Sequence[VerdictOfGroup], marks: Sequence[MarkRow], start_ms: int, end_ms: int
) -> list[DeployOfGroup]:
    """Return the deploys of one group that began in [start_ms, end_ms), in order. Times are in milliseconds.

    `windows` and `verdicts` must reach from `BEFORE_MS` before that time to `AFTER_MS` after it; what they have beyond
    changes nothing. `marks` are rows of that table, of the group or its whole cluster.
    """
    first, last = start_ms - BEFORE_MS, end_ms + AFTER_MS
    generations = [g for g in windows.generations if first <= g["joined_at"] < last]
    known = _History(windows=windows, generations=generations, parts=overtaken(generations))
    near = [v for v in verdicts if first <= v["joined_at"] < last and _number(v) in known.parts]
    announced = [m for m in marks if first <= m["marked_at"] < last]
    return [
        row
        for run in runs(near, announced)
        if run.until >= start_ms and (run.mark.at if run.mark else run.rebalances[0]["joined_at"] - MARK_MS) < end_ms
        for each, found in _divided(run, known)
        if each.is_deploy and start_ms <= _started_at(each, known) < end_ms
        if (row := _row(each, found, known, (first, last))) is not None
    ]


def _divided(run: Run, known: _History) -> Iterator[tuple[Run, Restarts]]:
    """Yield the deploys of a run, each with what its members did."""
    found = _restarts(run, known)
    if not any(map(is_planned, run.rebalances)):
        yield run, found
        return
    for each in rounds(run, found, known.parts):
        is_whole = len(each.rebalances) == len(run.rebalances)
        yield each, found if is_whole else _restarts(each, known)


def _restarts(run: Run, known: _History) -> Restarts:
    return restarts(known.windows, run, known.of(run), _started_at(run, known))


def _started_at(run: Run, known: _History) -> int:
    if run.mark is not None:
        return run.mark.at
    joined = run.rebalances[0]["joined_at"]
    first = known.of(run)[0]
    began = first["prepared_at"] if first["prepared_at"] is not None else first["joined_at"]
    # A rebalance that could not complete for long does not move the deploy out of the analyzed day.
    earlier = known.before(first["joined_at"])
    least = max(joined - MARK_MS, 0 if earlier is None else earlier["joined_at"] + 1)
    return min(joined, max(began, least))


def _row(run: Run, found: Restarts, known: _History, limits: tuple[int, int]) -> DeployOfGroup | None:
    """Return the row of a deploy; None if the group was not there yet."""
    started_at, rows = _started_at(run, known), known.of(run)
    base = known.before(min([started_at, *(g["joined_at"] for g in rows[:1])]))
    if base is None and not rows:
        return None
    numbers = {number(g) for g in rows}
    stalls = known.windows.stalls_since([g for g in (base, *rows) if g is not None], 0)
    stopped = stops(stalls, known.windows.generations, numbers, found.returned)
    ended_at = _ended_at(run, rows, known)
    ends = [at for at in (ended_at, stopped.resumed_at) if at is not None]
    is_over = stopped.is_over and (ended_at is not None or not rows)
    stable_at = max(ends, default=None) if is_over else None
    last = rows[-1] if rows else base
    return {
        "started_at": started_at,
        "text": run.mark.text if run.mark else None,
        "evidence": (Evidence.OBSERVED if run.mark else Evidence.INFERRED).value,
        "ended_at": ended_at,
        "stable_at": stable_at,
        "stable_ms": None if stable_at is None else stable_at - started_at,
        "rebalances": count_of(run.rebalances),
        "lost_resource_seconds_min": stopped.bounds.low / 1000,
        "lost_resource_seconds": stopped.bounds.best / 1000,
        "lost_resource_seconds_max": stopped.bounds.high / 1000,
        "lost_resource_seconds_low": stopped.low / 1000,
        "lost_resource_seconds_high": stopped.high / 1000,
        "restarted": list(found.restarted),
        "not_back": [name for name, _ in found.not_back],
        "not_back_hosts": [host for _, host in found.not_back],
        "members_before": base["member_count"] if base else None,
        "members_after": last["member_count"] if last else None,
        "slowest": found.slowest.name if found.slowest else None,
        "slowest_host": found.slowest.host if found.slowest else None,
        "slowest_waited_ms": found.slowest.waited_ms if found.slowest else None,
        "window_start_at": limits[0],
        "window_end_at": limits[1],
    }


def _ended_at(run: Run, rows: Sequence[GenerationRow], known: _History) -> int | None:
    """Return when the last rebalance completed; None if there is none, or if the next one is still in progress."""
    if not rows:
        return None
    last = rows[-1]
    if any(
        g["outcome"] == GenerationOutcome.OPEN and number(g) > number(last)
        and g["joined_at"] <= max(run.until, last["joined_at"] + GAP_MS)
        for g in known.generations
    ):  # fmt: skip
        return None
    return last["last_completed_at"] or last["completed_at"]


def _number(v: VerdictOfGroup) -> Number:
    return v["incarnation"], v["generation_id"]
