"""The groups that lost most in a range of time, and what the losses of all groups are blamed on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dashboards.answers.why import known_span
from dashboards.answers.written import WIDTH, at, columns, newest_records, not_known, old_record, verdict_values
from dashboards.lake.lake import Lake, Row
from dashboards.queries.store import KnownSpan, Store, Wanted
from dashboards.text import instant, visible
from dashboards.urlstate import SPANS, Window
from dashboards.views.theme import STYLES, style_of
from dashboards.views.verdict_words import blamed
from dashboards.zone import zone
from schemas import loss_interval
from schemas.states import GroupProtocol
from schemas.written import amount, count

RANGES = {name.removeprefix("now-"): width for name, (_, width) in SPANS.items()}
"""Name of a range that ends now, as on the pages, and its milliseconds."""

HEAD = ("Group", "Cluster", "State then", "Rebalances", "Lost resource-seconds", "Last rebalance")


@dataclass(frozen=True, slots=True, kw_only=True)
class Top:
    """The groups of a range, those that are rebalancing first, then those that lost most.

    `totals` has the rebalances and the loss of all groups, and `verdicts` their sums by verdict and cause.
    """

    window: Window
    groups: list[Row]
    totals: Row
    verdicts: list[Row]
    seen: KnownSpan

    @property
    def is_observed(self) -> bool:
        """Return whether anything is known of the range."""
        return self.seen.reaches(self.window)


def top(lake: Lake, window: Window | None, rows: int, *, skip: int = 0, named: str = "") -> Top:
    """Return `rows` groups of a range after the first `skip`; without a range, of everything that is known.

    With `named`, only groups whose id contains it; totals are of all groups.

    Raises:
        NoAnswerError: no group is known.
        LakeError: the tables cannot be read.
    """
    store = Store(lake)
    seen = known_span(store)
    window = window or seen.whole
    return Top(
        window=window,
        groups=store.fleet(window, wanted=Wanted(rows=rows, skip=skip, named=named)).rows,
        totals=store.totals(window),
        verdicts=store.fleet_verdicts(window),
        seen=seen,
    )


def top_text(found: Top, *, now_ms: int, stale_ms: int) -> str:
    """Return the answer as lines of text: totals, what is to blame, and a table of groups."""
    return "\n".join(_lines(found, now_ms, stale_ms)) + "\n"


def _lines(found: Top, now_ms: int, stale_ms: int) -> Iterator[str]:
    first, last = (instant(ms)[:19] for ms in (found.window.start, found.window.end))
    yield f"From {first} to {last} {zone()}:"
    if not found.is_observed:
        yield not_known(found.seen)
        return
    lost = loss_interval.written(*(found.totals[name] for name in ("lost", "lost_low", "lost_high")))
    yield f"{count(found.totals['rebalances'], 'rebalance')}, {lost} resource-seconds lost."
    for name, until in sorted(found.seen.until.items()):
        if (age := now_ms - until) > stale_ms:
            yield old_record(name, age)
    sums: dict[str, list[Row]] = {}
    for row in found.verdicts:
        sums.setdefault(row["verdict"], []).append(row)
    for verdict, rows in sums.items():
        number = count(sum(row["rebalances"] for row in rows), "rebalance")
        yield f"  {blamed(verdict)}: {amount(sum(row['lost'] for row in rows))} lost in {number}"
    yield ""
    yield from columns([HEAD, *map(_cells, found.groups)], WIDTH)
    if found.groups and (more := found.groups[0]["total"] - len(found.groups)) > 0:
        yield f"and {count(more, 'more group')}"


def _cells(row: Row) -> tuple[str, ...]:
    state = STYLES[style_of(row["state"], row["group_protocol"])].word
    return (
        visible(row["group_id"], 48),
        visible(row["cluster"], 24),
        state,
        f"{row['rebalances']:,}",
        _lost(row),
        instant(row["last_rebalance_at"])[:19],
    )


def _lost(row: Row) -> str:
    if row["group_protocol"] == GroupProtocol.SHARE:
        return "not observed"
    return loss_interval.written(row["lost"], row["lost_low"], row["lost_high"]) if row["lost_max"] else "none"


def top_values(found: Top, *, now_ms: int, stale_ms: int) -> dict[str, Any]:
    """Return the answer as values of JSON, with times in ISO 8601 (UTC). What is not observed is null."""
    return {
        "from": at(found.window.start),
        "to": at(found.window.end),
        "is_observed": found.is_observed,
        "newest_records": newest_records(found.seen, now_ms, stale_ms),
        "totals": found.totals if found.is_observed else None,
        "verdicts": verdict_values(found.verdicts),
        "total": found.groups[0]["total"] if found.groups else None,
        "groups": [_group(row, is_observed=found.is_observed) for row in found.groups],
    }


LOSSES = ("lost", "lost_min", "lost_max", "lost_low", "lost_high")


def _group(row: Row, *, is_observed: bool) -> dict[str, Any]:
    has_loss = is_observed and row["group_protocol"] != GroupProtocol.SHARE
    return {
        **{name: row[name] for name in ("cluster", "group_id", "state", "group_protocol")},
        "rebalances": row["rebalances"] if is_observed else None,
        **{name: row[name] if has_loss else None for name in LOSSES},
        **{name: at(row[name]) for name in ("state_since_at", "open_rebalance_since_at", "last_rebalance_at")},
    }
