"""Why a group rebalances: the newest diagnoses as one sentence, and the evidence for each cause."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dash import html
from dash.development.base_component import Component

from dashboards.lake.lake import Row
from dashboards.text import amount, instant, span, visible
from dashboards.views import sentences
from dashboards.views.components import Cell, evidence_mark, table
from dashboards.zone import zone
from schemas.states import DiagnosisCause
from schemas.written import capitalized, count, percent

HEAD = ("Cause", "Rebalances", "Share", "Lost resource-seconds", "Who", "First and last (UTC)", "Evidence")
NAMED_CAUSES = 3
NAMED_INSTANCES = 3


def diagnosis_section(rows: Sequence[Row]) -> list[Component]:
    """Return a sentence with evidence grades, and details; empty if there is no diagnosis."""
    if not rows:
        return []
    return [
        html.P(_sentence(rows), className="summary"),
        html.Details(
            [
                html.Summary("Evidence"),
                table(HEAD, [_cells(row) for row in rows]),
                html.Ul([html.Li(_details(row)) for row in rows]),
            ]
        ),
    ]


def panel(rows: Sequence[Row]) -> list[Component]:
    """Return `diagnosis_section` as a section with a heading."""
    if not rows:
        return []
    return [html.Section([html.H2("Why it rebalances"), *diagnosis_section(rows)], className="panel")]


def _sentence(rows: Sequence[Row]) -> list[Any]:
    """Return `Of 14 rebalances 9 come from …: orders-7 (inferred); 5 from …`: problems first, then by count."""
    whole = sum(row["rebalances"] for row in rows)
    first = rows[0]
    since, until = instant(first["window_start_at"])[:19], instant(first["as_of"])[:19]
    if not whole:
        names = _names(list(dict.fromkeys(name for row in rows for name in row["instances"] or ())))
        return [f"No rebalance from {since} to {until} {zone()}, but {names} returned without one."]
    parts: list[Any] = [f"Of {count(whole, 'rebalance')} from {since} to {until} {zone()}, "]
    most = sorted(
        [row for row in rows if row["rebalances"]], key=lambda row: (row["is_normal"], -row["rebalances"], row["rank"])
    )
    for at, row in enumerate(most[:NAMED_CAUSES]):
        parts += ["; " if at else "", _clause(row, is_first=at == 0), " ", evidence_mark(row["evidence"])]
    rest = sum(row["rebalances"] for row in most[NAMED_CAUSES:])
    return [*parts, f"; {rest:,} have other causes." if rest else "."]


def _clause(row: Row, *, is_first: bool) -> str:
    instances = "" if row["is_normal"] or not row["instances"] else f": {_names(row['instances'])}"
    normal = ", which is normal" if row["is_normal"] else ""
    if row["cause"] == DiagnosisCause.UNKNOWN:
        return f"why {row['rebalances']:,} happened is not known{instances}"
    verb = (" comes" if row["rebalances"] == 1 else " come") if is_first else ""
    return f"{row['rebalances']:,}{verb} from {sentences.cause(row['cause'])}{instances}{normal}"


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(visible(name, 60) for name in names[:NAMED_INSTANCES])
    more = len(names) - NAMED_INSTANCES
    return f"{shown} and {count(more, 'other')}" if more > 0 else shown


def _cells(row: Row) -> list[Cell]:
    spread = span(instant(row["first_at"])[:19], instant(row["last_at"])[:19])
    return [
        sentences.cause(row["cause"]) + (" (normal)" if row["is_normal"] else ""),
        int(row["rebalances"]),
        percent(row["share"]),
        amount(row["lost_resource_seconds"]),
        _names(row["instances"] or ()) or "nobody in particular",
        spread,
        evidence_mark(row["evidence"]),
    ]


def _details(row: Row) -> list[Any]:
    name = sentences.cause(row["cause"])
    return [html.Strong(f"{capitalized(name)}: "), visible(row["explanation"], 2_000)]
