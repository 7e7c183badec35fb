"""All silver rows of one group, computed from its history alone. Streams, backfills and tests use the same function."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from typing import cast

from pipelines.rows_of_tables import by_table
from pipelines.silver.carrying.folding import blocks, fold
from pipelines.silver.carrying.points import Carried, point_row
from pipelines.silver.classic_rows import add_classic
from pipelines.silver.client_hosts import ClientHosts
from pipelines.silver.coordinator_assigned.rows import add_coordinator_assigned
from pipelines.silver.episodes import episodes
from pipelines.silver.generations import ResumeState
from pipelines.silver.history import History
from pipelines.silver.missing_partitions import without_missing
from pipelines.silver.phases import phases
from pipelines.silver.stops.stall import Stall, roots
from pipelines.silver.timeline import Timeline
from schemas.rows import SilverOfGroup, SilverRows, StallOfGroup
from schemas.states import GroupProtocol

KEPT = ClientHosts()


def silver_rows(
    history: History, quiet_ms: int, base: ResumeState | None = None, hosts: ClientHosts = KEPT
) -> SilverRows:
    """Return the rows of every silver table with the group's columns (`rows_of_group`)."""
    group = {"cluster": history.cluster, "group_id": history.group_id}
    rows = rows_of_group(history, quiet_ms, base, hosts)
    return cast("SilverRows", {name: [group | dict(row) for row in found] for name, found in by_table(rows).items()})


def rows_of_group(
    history: History, quiet_ms: int, base: ResumeState | None = None, hosts: ClientHosts = KEPT
) -> SilverOfGroup:
    """Return the rows of every silver table; `hosts` is the policy for clients' addresses.

    With a `base`, the history begins at the base's record. Only the rows of later generations are returned, and the
    rows of `group_events` after the base's completion. They equal the rows from the whole history if the next
    generation began an episode and every resource had an owner at its start (`resume_points`), or if the base has the
    state that is carried on (`carrying.points`). Then rows of unfinished stalls and episodes are returned as well.
    """
    history = without_missing(hosts.hide(history))
    carried = Carried.of(base.carried) if base is not None and base.carried is not None else None
    if carried is not None and not carried.is_of_coordinator:
        history = replace(history, commits=history.commits.with_points(carried.commits))
    timeline = Timeline.of(history, base, quiet_ms, carried)
    parts = phases(history)
    for phase, following in zip(parts, [*parts[1:], None], strict=True):
        if phase.protocol == GroupProtocol.CLASSIC:
            add_classic(timeline, phase)
        else:
            add_coordinator_assigned(timeline, phase, following)
    out, windows = timeline.out, [w for w in timeline.ownership.stalls if not w.is_void]
    if base is not None and timeline.base_at is not None and out["generations"]:
        first = out["generations"][0]["log_epoch"], out["generations"][0]["source_offset"]
        unfinished = carried.live if carried is not None else ()
        windows = [
            w
            for w in windows
            if timeline.is_state_of_coordinator or w.stopped_by >= first or (w.stopped_by, w.resource) in unfinished
        ]
        out["group_events"] = [e for e in out["group_events"] if e["event_at"] > timeline.base_at]
    _add_episodes(timeline, windows, has_changed=len(parts) > 1)
    out["stalls"] += [_stall_row(s) for s in windows]
    out["group_events"] = list({(e["event_at"], e["kind"], e["member_id"]): e for e in out["group_events"]}.values())
    return out


def _add_episodes(timeline: Timeline, windows: list[Stall], *, has_changed: bool) -> None:
    """Add the episodes and the resume points, and fold loops.

    A group that changed its protocol is rebuilt from its first record.
    """
    out, carried = timeline.out, timeline.carried
    borders, epoch_borders = ({}, {}) if has_changed else (timeline.borders, timeline.epoch_borders)
    begun = carried.episodes if carried is not None else []
    bases = {} if has_changed else timeline.bases
    unfinished = {position: roots(each.live) for position, each in borders.items()}
    unfinished |= {position: roots(each.live) for position, each in epoch_borders.items()}
    found = episodes(out["generations"], windows, timeline.quiet_ms, bases, begun, unfinished)
    out["rebalances"] += found.rows
    rests = sorted(
        ((r["log_epoch"], r["source_offset"]), (r["base_log_epoch"], r["base_offset"]))
        for r in found.rows
        if r["base_log_epoch"] is not None and r["base_offset"] is not None
    )
    commits = timeline.ownership.commits
    for position, known in found.carried.items():
        if position in epoch_borders:
            out["resume_points"].append(epoch_borders[position].row(known, commits))
            continue
        nth = bisect_left(rests, (position,))
        rest = timeline.generations.get(rests[nth - 1][1]) if nth else None
        out["resume_points"].append(point_row(borders[position], known, rest, commits))
    starts = {position for position, each in borders.items() if each.begins_block}
    fold(out, blocks([each for each in found.point_rows if each.position in starts]))


def _stall_row(stall: Stall) -> StallOfGroup:
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
