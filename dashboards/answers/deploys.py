"""The deploys of a range of time, and the newest deploy of a group against the one before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dashboards.answers.why import NoAnswerError, group_of, known_span, require_cluster
from dashboards.answers.written import WIDTH, at, columns, newest_records, not_known, old_record, wrapped
from dashboards.lake.lake import Lake, Row
from dashboards.queries.deploy_store import DEPLOY_ROWS, DeployStore
from dashboards.queries.store import KnownSpan, Store
from dashboards.text import duration, instant, visible, zoned
from dashboards.urlstate import Window
from dashboards.views import deploy_words as words
from dashboards.zone import zone
from schemas import loss_interval
from schemas.written import count

HEAD = ("Group", "Began", "Mark", "Lost", "Against before", "Stable after", "Not back")
ROWS, MOST_ROWS = 20, DEPLOY_ROWS
"""Deploys of the text, and the most of the values."""

TABLE_WIDTH, PAIR_WIDTH = 140, 4 * WIDTH
"""Longest lines of the tables; names in the second one are not cut."""

TIMES = ("started_at", "ended_at", "stable_at", "window_start_at", "window_end_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deploys:
    """The deploys of a range, newest first. `is_whole`: whether all of them are in `rows`."""

    window: Window
    group: Row | None
    rows: list[Row]
    seen: KnownSpan
    is_whole: bool

    @property
    def is_observed(self) -> bool:
        """Return whether anything is known of the range."""
        return self.seen.reaches(self.window)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedDeploys:
    """The newest deploy of a group, and the one before; None if there is no such deploy."""

    group: Row
    newest: Row | None
    before: Row | None
    seen: KnownSpan


def deploys(lake: Lake, window: Window | None, *, group: str | None = None, cluster: str = "") -> Deploys:
    """Return the deploys of all groups or one; without a range, all that are known.

    Raises:
        NoAnswerError: no group is known, or not this one or this cluster, or deploys were never analyzed.
        LakeError: the tables cannot be read.
    """
    store = Store(lake)
    seen = known_span(store)
    row = None if group is None else group_of(store, group, cluster)
    _require_analyzed(store)
    view, asked = window or seen.whole, DeployStore(lake)
    if row is None:
        require_cluster(seen, cluster)
        rows = asked.deploys(view, cluster=cluster).rows
    else:
        rows = asked.of_group(row["cluster"], row["group_id"], view).rows
    return Deploys(window=view, group=row, rows=rows, seen=seen, is_whole=len(rows) < DEPLOY_ROWS)


def compared_deploys(lake: Lake, group: str, *, cluster: str = "") -> ComparedDeploys:
    """Return the newest deploy of a group and the one before. Raises the errors of `deploys`."""
    store = Store(lake)
    row = group_of(store, group, cluster)
    _require_analyzed(store)
    newest, before, *_ = [*DeployStore(lake).of_group(row["cluster"], row["group_id"], rows=2).rows, None, None]
    return ComparedDeploys(group=row, newest=newest, before=before, seen=known_span(store))


def _require_analyzed(store: Store) -> None:
    if "deploys" not in store.versions():
        raise NoAnswerError("Deploys are not analyzed yet: run `regroup analyze`.")


def deploys_text(found: Deploys, *, now_ms: int, stale_ms: int) -> str:
    """Return the deploys as lines of text: their number and cost, and a table."""
    return "\n".join(_lines(found, now_ms, stale_ms)) + "\n"


def _lines(found: Deploys, now_ms: int, stale_ms: int) -> Iterator[str]:
    first, last = (instant(ms)[:19] for ms in (found.window.start, found.window.end))
    of = f" of {visible(found.group['group_id'], 120)}" if found.group else ""
    yield f"Deploys{of} from {first} to {last} {zone()}:"
    if not found.is_observed:
        yield not_known(found.seen)
        return
    yield from _stale(found.seen, now_ms, stale_ms)
    if not found.rows:
        yield "No deploy: no mark of kind deploy, and no rebalance that a deploy caused."
        return
    losses = [tuple(row[f"lost_resource_seconds{end}"] for end in ("", "_low", "_high")) for row in found.rows]
    groups = len({(row["cluster"], row["group_id"]) for row in found.rows})
    total = loss_interval.written(*loss_interval.summed(losses))
    yield f"{count(len(found.rows), 'deploy')} of {count(groups, 'group')}, {total} resource-seconds lost."
    yield ""
    yield from columns([HEAD, *map(_cells, found.rows[:ROWS])], TABLE_WIDTH)
    if (more := len(found.rows) - ROWS) > 0:
        yield f"and {count(more, 'more deploy')}"
    if not found.is_whole:
        yield f"Only the newest {DEPLOY_ROWS} were read: ask for a shorter range."


def _stale(seen: KnownSpan, now_ms: int, stale_ms: int, cluster: str = "") -> Iterator[str]:
    for name, until in sorted(seen.until.items()):
        if cluster in ("", name) and (age := now_ms - until) > stale_ms:
            yield old_record(name, age)


def _cells(row: Row) -> tuple[str, ...]:
    is_known = row["stable_ms"] is not None or not row["rebalances"]
    return (
        visible(row["group_id"], 48),
        instant(row["started_at"])[:19],
        words.title(row, 20),
        words.cost(row) if row["rebalances"] or row["lost_resource_seconds"] else "no rebalance",
        words.against_before(row),
        duration(row["stable_ms"]) if is_known else "not yet",
        count(len(row["not_back"]), "member") if len(row["not_back"]) else "none",
    )


def _newest(row: Row, seen: KnownSpan) -> int:
    return seen.until.get(row["cluster"], seen.last_at)


def compared_text(found: ComparedDeploys, *, now_ms: int, stale_ms: int) -> str:
    """Return the two deploys side by side, and sentences that compare them."""
    return "\n".join(_compared(found, now_ms, stale_ms)) + "\n"


def _compared(found: ComparedDeploys, now_ms: int, stale_ms: int) -> Iterator[str]:
    group, cluster = visible(found.group["group_id"], 120), visible(found.group["cluster"], 60)
    if found.newest is None:
        yield f"No deploy of {group} in {cluster} is known: no mark, and no rebalance that a deploy caused."
        return
    yield f"Deploys of {group} in {cluster}"
    yield from _stale(found.seen, now_ms, stale_ms, found.group["cluster"])
    newest = _newest(found.newest, found.seen)
    this = words.pairs(found.newest, newest)
    if found.before is None:
        yield "It is the first known deploy: there is none to compare it with."
        yield ""
        yield from (f"{zoned(name):<28}{text}".rstrip() for name, text in this)
        return
    that = words.pairs(found.before, newest)
    yield wrapped(words.comparison(found.newest, found.before))
    yield ""
    rows = [(zoned(name), text, other) for (name, text), (_, other) in zip(this, that, strict=True)]
    yield from columns([("", "The newest", "The one before"), *rows], PAIR_WIDTH)


def deploys_values(found: Deploys, limit: int, *, now_ms: int, stale_ms: int) -> dict[str, Any]:
    """Return at most `limit` deploys as values of JSON, with times in ISO 8601 (UTC)."""
    return {
        "from": at(found.window.start),
        "to": at(found.window.end),
        "is_observed": found.is_observed,
        "newest_records": newest_records(found.seen, now_ms, stale_ms),
        "deploys": [deploy_values(row) for row in found.rows[:limit]],
        "is_whole": found.is_whole and len(found.rows) <= limit,
    }


def compared_values(found: ComparedDeploys) -> dict[str, Any]:
    """Return the two deploys as values of JSON; null if there is no such deploy."""
    newest, before = found.newest, found.before
    return {
        "newest": None if newest is None else deploy_values(newest),
        "before": None if before is None else deploy_values(before),
        "comparison": None if newest is None or before is None else words.comparison(newest, before),
    }


def deploy_values(row: Row) -> dict[str, Any]:
    """Return the columns of a row as values of JSON, with the median cost of the group's deploys before."""
    lists = {name: list(row[name]) for name in ("restarted", "not_back", "not_back_hosts")}
    return row | lists | {name: at(row[name]) for name in (*TIMES, "before_at")}
