"""Why a group rebalanced: the rebalance at a time, its verdict, what it cost and what would have avoided it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboards.answers.group_advice import advice_of
from dashboards.lake.lake import Lake, Row
from dashboards.queries.generation_times import ended
from dashboards.queries.measurements import measured_around
from dashboards.queries.store import KnownSpan, Rebalance, Store, Wanted
from dashboards.text import visible
from dashboards.urlstate import LATEST, Window
from schemas.folded_rows import count_of
from schemas.thresholds import DAY_MS

REACHES = (0, 60_000, 3_600_000, DAY_MS)
"""Milliseconds around a time in which a rebalance is searched for, one after the other; the last search has no
limit."""

SIMILAR = 5
"""Groups with a similar name that are listed if there is no such group."""


class NoAnswerError(Exception):
    """There is no such group, or no rebalance of it. The text is one sentence that says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """The answer for one rebalance.

    `away_ms` is the time between the instant that was asked for and the rebalance, 0 if the instant lies in the
    rebalance or no instant was asked for. If no instant was asked for, this rebalance cost most in the newest episode,
    and `of_episode` is the episode's number of generations; otherwise `of_episode` is 0. `verdict` is a row of
    `verdicts`; None if the rebalance is not judged (yet). `episode` has the sums of the episode's verdicts if it has
    several generations. `advice` has the rows of the group's newest advice, the best first. `measured` has what the
    members measured themselves around the rebalance (`measured_around`).
    """

    cluster: str
    group: Row
    found: Rebalance
    away_ms: int
    of_episode: int
    verdict: Row | None
    episode: list[Row]
    advice: list[Row]
    measured: list[Row]
    seen: KnownSpan


def why(lake: Lake, group: str, *, cluster: str = "", at: tuple[int, int] | None = None) -> Why:
    """Return why a group rebalanced at a time, or last.

    Args:
        lake: the tables.
        group: the group id.
        cluster: the cluster's name; may be empty if only one cluster has the group.
        at: the first and last millisecond that were asked for. The rebalance that took longest of those that overlap
            them is chosen, else the nearest one.

    Raises:
        NoAnswerError: there is no such group, several clusters have it, or no rebalance of it is known.
        LakeError: the tables cannot be read.
    """
    store = Store(lake)
    row = group_of(store, group, cluster)
    away_ms = of_episode = 0
    if at is None:
        generation, of_episode = _newest(store, row)
    else:
        generation, away_ms = _at(store, row, at)
    found = _of(lake, row, generation, away_ms=away_ms, of_episode=of_episode)
    assert found is not None, "its row was just read"
    return found


def why_generation(
    lake: Lake, group: str, generation: int, *, cluster: str = "", incarnation: int | None = None
) -> Why:
    """Return why a group rebalanced to a generation or epoch, by default of the group's present incarnation.

    Raises:
        NoAnswerError: there is no such group, several clusters have it, or this rebalance of it is not known.
        LakeError: the tables cannot be read.
    """
    store = Store(lake)
    row = group_of(store, group, cluster)
    number = row["incarnation"] if incarnation is None else incarnation
    found = _of(lake, row, {"incarnation": number, "generation_id": generation})
    if found is None:
        of = f" of incarnation {number}" if number else ""
        raise NoAnswerError(
            f"No rebalance of {visible(group, 120)} to generation {generation}{of} is known in the cluster "
            f"{visible(row['cluster'], 60)}: its page lists those that are."
        )
    return found


def _of(lake: Lake, group: Row, generation: Row, *, away_ms: int = 0, of_episode: int = 0) -> Why | None:
    """Return the answer for the `incarnation` and `generation_id` of a generation; None if it is unknown."""
    store, cluster, name = Store(lake), group["cluster"], group["group_id"]
    found = store.rebalance(cluster, name, generation["incarnation"], generation["generation_id"])
    seen = store.span(cluster)
    if found is None or seen is None:
        return None
    episode, g = found.episode, found.generation
    return Why(
        cluster=cluster,
        group=group,
        found=found,
        away_ms=away_ms,
        of_episode=of_episode,
        verdict=store.verdict(cluster, name, g["incarnation"], g["generation_id"]),
        episode=store.episode_verdicts(episode) if episode is not None and episode["generations"] > 1 else [],
        advice=advice_of(store, cluster, name),
        measured=measured_around(lake, found),
        seen=seen,
    )


def known_span(store: Store) -> KnownSpan:
    """Return the span of all clusters. Raises `NoAnswerError` if no group is known."""
    seen = store.span()
    if seen is None:
        raise NoAnswerError("The warehouse has no groups yet: run `regroup up`, or name another with --warehouse.")
    return seen


def require_cluster(seen: KnownSpan, cluster: str) -> None:
    """Raise `NoAnswerError` if `cluster` is a name, and no cluster has it."""
    if cluster and cluster not in seen.until:
        raise NoAnswerError(
            f"There is no cluster {visible(cluster, 60)}: --cluster is one of {_listed(sorted(seen.until))}."
        )


def group_of(store: Store, group: str, cluster: str) -> Row:
    """Return the row of a group. `cluster` may be empty if only one cluster has the group.

    Raises:
        NoAnswerError: there is no such group, or several clusters have it.
    """
    seen = known_span(store)
    require_cluster(seen, cluster)
    rows = [row for name in sorted(seen.until) if cluster in ("", name) and (row := store.group(name, group))]
    shown = visible(group, 120)
    if len(rows) > 1:
        names = _listed([row["cluster"] for row in rows])
        raise NoAnswerError(f"Several clusters have a group {shown}: add --cluster with one of {names}.")
    if rows:
        return rows[0]
    similar = [row["group_id"] for row in store.fleet(seen.whole, group, Wanted(rows=SIMILAR)).rows]
    hint = f"similar names are {_listed(similar)}" if similar else "the Fleet page lists all groups"
    raise NoAnswerError(f"There is no group {shown}: {hint}.")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(visible(name, 120) for name in names)


def _at(store: Store, group: Row, at: tuple[int, int]) -> tuple[Row, int]:
    """Return the rebalance at this time or the nearest one, and its distance in ms.

    Each query has a wider range than the one before, because a query returns only the newest rows.
    """
    first, last = at
    for reach in (*REACHES, max(first, LATEST - last - 1)):
        window = Window(max(0, first - reach), last + reach + 1, is_live=False)
        rows = store.generations(group["cluster"], group["group_id"], window).rows
        nearest = min(rows, key=lambda row: (_away(row, at), began(row) - ended(row)), default=None)
        if nearest is not None and (_away(nearest, at) <= reach or reach > REACHES[-1]):
            return nearest, _away(nearest, at)
    raise _none(group)


def _away(generation: Row, at: tuple[int, int]) -> int:
    return max(0, began(generation) - at[1], at[0] - ended(generation))


def _newest(store: Store, group: Row) -> tuple[Row, int]:
    """Return the rebalance of the newest episode that cost most, and the number of the episode's generations.

    The number is 0 if none is known to have cost anything, or if the episode has more rows than were read.
    """
    last = max(filter(None, (group["last_record_at"], group["first_seen_at"])), default=0) + 1
    rows: list[Row] = []
    for since in (max(0, last - DAY_MS), 0):
        rows = rows or store.generations(group["cluster"], group["group_id"], Window(since, last, is_live=False)).rows
    if not rows:
        raise _none(group)
    newest = rows[0]
    key = (newest["cluster"], newest["group_id"], newest["incarnation"], newest["generation_id"])
    found = store.rebalance(*key)
    episode = found.episode if found is not None else None
    if episode is None:
        return newest, 0
    first_id, last_id = episode["first_generation_id"], episode["last_generation_id"]
    of = [r for r in rows if r["incarnation"] == newest["incarnation"] and first_id <= r["generation_id"] <= last_id]
    most = max(of, key=lambda row: row["lost"], default=newest)
    is_whole = count_of(of) >= episode["generations"]
    return most, int(episode["generations"]) if most["lost"] and is_whole else 0


def _none(group: Row) -> NoAnswerError:
    where = f"{visible(group['group_id'], 120)} is known in the cluster {visible(group['cluster'], 60)}"
    return NoAnswerError(f"No rebalance of the group {where}.")


def began(generation: Row) -> int:
    """Return the earliest time, in ms, at which the rebalance may have begun."""
    earliest = generation["prepared_at_earliest"]
    return int(generation["joined_at"] if earliest is None else min(earliest, generation["joined_at"]))
