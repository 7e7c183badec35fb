"""Verdicts in words: what a rebalance, an episode, a storm or a range of time is blamed on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dash import html
from dash.development.base_component import Component

from dashboards.lake.lake import Row, Rows
from dashboards.text import amount, visible
from dashboards.views import sentences
from dashboards.views.components import Cell, evidence_mark, facts, table
from dashboards.views.verdict_words import (
    blamed,
    cause_of,
    hosts_of,
    instances_of,
    lost_of,
    opening,
    sums_sentence,
    without_hosts,
)
from schemas.states import Evidence
from schemas.written import capitalized, count, percent

LINES_SHOWN = 12


def verdict_sentence(row: Row | None) -> Component | None:
    """Return `It was the broker (observed): …` for a row of `verdicts`; None without a row."""
    if row is None:
        return None
    reason = visible(row["reason"], 600)
    named = html.Strong(blamed(row["verdict"]))
    return _sentence([opening(row), named, " ", evidence_mark(row["evidence"]), f" {reason}"])


def verdict_panel(
    row: Row | None, episode: Sequence[Row], lines: Rows, protocol: str | None = None
) -> Component | None:
    """Return a panel with the verdict, its culprit and its proof; None without a row.

    `row` is of `verdicts`. `episode` has the sums of the rebalance's episode if it has several generations. `lines` are
    the log lines about the group near the rebalance, newest first. `protocol` is that of the rebalance.
    """
    if row is None:
        return None
    pairs: list[tuple[str, Cell]] = [
        ("Verdict", html.Span([blamed(row["verdict"]), " ", evidence_mark(row["evidence"])])),
        ("Cause", cause_of(row)),
        ("Who", instances_of(row)),
        ("On", hosts_of(row)),
        ("Lost resource-seconds", lost_of(row, protocol)),
        ("Proof", html.Ul([html.Li(html.Code(visible(each, 300))) for each in row["proof"]], className="proof")),
    ]
    if episode:
        pairs.insert(2, ("The whole episode", sums_sentence(episode)))
    shown = _nearest([line for line in reversed(lines.rows) if line.get("raw")], row["joined_at"])
    if shown:
        raw = html.Ul(
            [html.Li(html.Code(visible(without_hosts(line["raw"]), 400))) for line in shown], className="proof"
        )
        more = "" if len(shown) == len(lines.rows) else f" (the nearest {len(shown)} of {len(lines.rows)})"
        pairs.append((f"Log lines near it{more}", raw))
    return html.Section([html.H2("Verdict"), facts(pairs)], className="panel")


def _nearest(lines: Sequence[Row], at: int) -> list[Row]:
    """Return the `LINES_SHOWN` lines that are nearest to a time in milliseconds, in their order."""
    found = sorted(range(len(lines)), key=lambda i: (abs(lines[i]["event_at"] - at), i))[:LINES_SHOWN]
    return [lines[i] for i in sorted(found)]


def group_panel(rows: Sequence[Row], word: str) -> list[Component]:
    """Return a panel with the group's sums by verdict and cause; empty if it has no verdict in the range."""
    if not rows:
        return []
    cells = [
        [
            blamed(row["verdict"]),
            sentences.cause(row["cause"]),
            lost_of(row),
            f"{row['rebalances']:,}",
            f"{row['observed']:,}",
        ]
        for row in rows
    ]
    head = ("Verdict", "Cause", f"Lost {word}-seconds", "Rebalances", "Observed")
    return [_sums("Broker or application?", rows, table(head, cells), word)]


def fleet_panel(rows: Sequence[Row]) -> list[Component]:
    """Return a panel with the sums of all groups by verdict and cause; empty without a verdict in the range.

    `rows` as `fleet_verdicts` returns them: the causes of a verdict follow each other.
    """
    if not rows:
        return []
    cells = [
        [
            blamed(row["verdict"]),
            sentences.cause(row["cause"]),
            lost_of(row),
            f"{row['groups']:,}",
            f"{row['rebalances']:,}",
            f"{row['observed']:,}",
        ]
        for row in rows
    ]
    head = ("Verdict", "Cause", "Lost resource-seconds", "Groups", "Rebalances", "Observed")
    return [_sums("Broker or application?", rows, table(head, cells), "resource")]


def storm_panel(row: Row) -> Component | None:
    """Return a panel with a storm's sums by verdict; None if it has none or they are hidden."""
    found = row.get("verdicts")
    if not found:
        return None
    cells = [
        [blamed(each["verdict"]), f"{each['rebalances']:,}", amount(each["lost_resource_seconds"])] for each in found
    ]
    text = (
        "The completed rebalances of the groups hit, by what each is blamed on. Of many groups, the hardest hit count."
    )
    body = table(("Verdict", "Rebalances", "Lost resource-seconds"), cells)
    return html.Section([html.H2("Verdict"), html.P(text, className="summary"), body], className="panel")


def storm_verdict(row: Row) -> Component | None:
    """Return `It was the broker: …` for a row of `storms`; None if it has no verdict or it is hidden."""
    found = row.get("verdicts")
    if not found or row.get("verdict") is None:
        return None
    begun = [opening({**row, "evidence": Evidence.INFERRED}), html.Strong(blamed(row["verdict"]))]
    return _sentence([*begun, " ", evidence_mark(Evidence.INFERRED), f" {capitalized(sums_sentence(found))}."])


def _sentence(parts: list[Any]) -> Component:
    return html.P(parts, className="verdict")


def _sums(title: str, rows: Sequence[Row], body: Component, word: str) -> Component:
    by_verdict: dict[str, float] = {}
    for row in rows:
        by_verdict[row["verdict"]] = by_verdict.get(row["verdict"], 0.0) + row["lost"]
    whole = sum(by_verdict.values())
    most = max(by_verdict, key=lambda name: by_verdict[name])
    text = f"{count(sum(row['rebalances'] for row in rows), 'rebalance')} with a verdict"
    if whole > 0:
        text += (
            f", {amount(whole)} {word}-seconds lost in them; {percent(by_verdict[most] / whole)} of the loss: "
            f"{blamed(most)}"
        )
    text += ". The newest rebalances get theirs with the next analysis"
    return html.Section([html.H2(title), html.P(f"{text}.", className="summary"), body], className="panel")
