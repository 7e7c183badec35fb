"""All silver rows of one group, from its history alone: the same function for streams, backfills and tests."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from pipelines.silver.episodes import episodes
from pipelines.silver.generation_rows import generation_row, moved
from pipelines.silver.generations import Generation, lives
from pipelines.silver.group_events import lifecycle, of_generation
from pipelines.silver.groups import group_row
from pipelines.silver.history import History, Resource
from pipelines.silver.lines import Lines, Story
from pipelines.silver.member_rows import member_rows
from pipelines.silver.stalls import Stall, stalls
from pipelines.silver.stops import work_by_member
from pipelines.silver.triggers import cause
from schemas.silver import SILVER

Rows = dict[str, list[dict[str, Any]]]


def silver_rows(history: History, quiet_ms: int) -> Rows:
    """Table name → rows, each with its key columns; instants are milliseconds since the epoch."""
    found = lives(history.records)
    lines = Lines(history.events)
    told = [(g, lines.story(g)) for g in found.generations]
    out: Rows = {table.name: [] for table in SILVER}
    out["group_events"] += lifecycle(found, history.events)
    following = {id(a): b for a, b in pairwise(found.generations) if a.incarnation == b.incarnation}
    last_owner: dict[Resource, str] = {}
    for g, story in told:
        if g.previous is None:
            last_owner = {}
        _of_generation(out, history, g, story, following.get(id(g)), last_owner)
    windows = stalls(told, history.commits)
    out["stalls"] += [_stall_row(s) for s in windows]
    out["rebalances"] += episodes(out["generations"], windows, quiet_ms)
    out["groups"] += group_row(history, found, told)
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
    out["generations"].append(generation_row(g, story, cause(g, story, done), done, moved(g, last_owner)))
    out["generation_members"] += member_rows(g, story, done, following.joined_at if following else None)
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
