"""All silver rows of one group, from its history alone: the same function for streams, backfills and tests."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from pipelines.silver.episodes import episodes, settled
from pipelines.silver.generation_rows import generation_row, moved
from pipelines.silver.generations import Base, Generation, lives
from pipelines.silver.group_events import lifecycle, of_generation, returns
from pipelines.silver.groups import group_row
from pipelines.silver.history import History, Resource
from pipelines.silver.lines import Lines, Story
from pipelines.silver.member_rows import member_rows
from pipelines.silver.stalls import Stall, stalls
from pipelines.silver.stops import work_by_member
from pipelines.silver.triggers import cause
from pipelines.silver.workers import WorkerLog
from schemas.silver import SILVER

Rows = dict[str, list[dict[str, Any]]]


def silver_rows(history: History, quiet_ms: int, base: Base | None = None) -> Rows:
    """Table name → rows, each with its key columns; instants are milliseconds since the epoch.

    With a `base` the history begins at its record, and only the rows of later generations come out (of `group_events`
    those after its completion): the same that the whole history gives, provided that no resource was without an owner
    when the generation after it began and that this generation began an episode (`restarts`).
    """
    found = lives(history.records, base)
    lines = Lines(history.events)
    told = [(g, lines.story(g)) for g in found.generations]
    windows = stalls(told, history.commits, WorkerLog(history.worker_lines))
    bases = settled(found.generations, windows)
    windows = [w for w in windows if not w.is_void]
    out: Rows = {table.name: [] for table in SILVER}
    unfinished = lines.unfinished(found.generations[-1]) if found.generations else []
    out["group_events"] += lifecycle(found, history.events, unfinished)
    last_owner: dict[Resource, str] = {}
    for (g, story), following in zip_longest(told, found.generations[1:]):
        if g.previous is None:
            last_owner = {}
        if base is not None and g.position == base.position:
            moved(g, last_owner)
            out["group_events"] += returns(g)
            continue
        _of_generation(out, history, g, story, following, last_owner)
    if base is not None:
        first = found.generations[1].position
        completed = found.generations[0].completed_at
        windows = [w for w in windows if w.stopped_by >= first]
        out["group_events"] = [e for e in out["group_events"] if e["event_at"] > completed]
    out["stalls"] += [_stall_row(s) for s in windows]
    out["rebalances"] += episodes(out["generations"], windows, quiet_ms, bases)
    out["groups"] += group_row(history, found, told, base)
    out["group_events"] = list({(e["event_at"], e["kind"], e["member_id"]): e for e in out["group_events"]}.values())
    for rows in out.values():
        for row in rows:
            row["cluster"], row["group_id"] = history.cluster, history.group_id
    return out


def _of_generation(
    out: Rows,
    history: History,
    g: Generation,
    story: Story,
    following: Generation | None,
    last_owner: dict[Resource, str],
) -> None:
    done = work_by_member(g.previous, history.commits, g.position)
    until = following.joined_at if following and following.incarnation == g.incarnation else None
    out["generations"].append(generation_row(g, story, cause(g, story, done), done, moved(g, last_owner)))
    out["generation_members"] += member_rows(g, story, done, until)
    out["group_events"] += of_generation(g, story, done)


def _stall_row(stall: Stall) -> dict[str, Any]:
    low, estimate, high = stall.milliseconds or (None, None, None)
    last, first = stall.last_commit, stall.first_commit
    return {
        "incarnation": stall.incarnation,
        "stopped_by_offset": stall.stopped_by[1],
        "log_epoch": stall.stopped_by[0],
        "name": stall.resource[0],
        "index": stall.resource[1],
        "generation_id": stall.generation,
        "resumed_generation_id": stall.resumed_generation,
        "from_member_id": stall.owner,
        "to_member_id": stall.new_owner,
        "stopped_at_earliest": stall.stop.earliest,
        "stopped_at_latest": stall.stop.latest,
        "resumed_at_earliest": stall.resumed_earliest,
        "resumed_at_latest": stall.resumed_latest,
        "stopped_ms_min": low,
        "stopped_ms": estimate,
        "stopped_ms_max": high,
        "last_commit_at": last.at if last else None,
        "last_committed_offset": last.committed if last else None,
        "first_commit_at": first.at if first else None,
        "first_committed_offset": first.committed if first else None,
        "cause": stall.cause,
        "evidence": stall.stop.evidence,
    }
