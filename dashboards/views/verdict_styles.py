"""How verdicts are drawn in bars: never by colour alone.

The colours are those of the group's states, which hold in both themes and for every kind of colour vision. Every
verdict has a pattern of its own as well.
"""

from __future__ import annotations

from dash import html
from dash.development.base_component import Component

from dashboards.views.components import swatch
from dashboards.views.theme import STYLES, Style
from dashboards.views.verdict_words import BLAMED
from schemas.states import Verdict

PENDING = "pending"
"""Name of the rebalances that are not analyzed yet."""

PENDING_WORD = "not analyzed yet"
DRAWN = {
    Verdict.BROKER: ("stopped", ""),
    Verdict.CLIENT_APPLICATION: ("partial", "/"),
    Verdict.DEPLOY_OR_SCALING: ("working", "\\"),
    Verdict.CONFIGURATION: ("assigning", "."),
    Verdict.UNKNOWN: ("empty", "-"),
}
"""By verdict: the state whose colour it has, and its pattern."""

VERDICT_STYLES = {
    str(verdict): Style(
        word=BLAMED[verdict], meaning=verdict.says, colour=STYLES[state].colour, height=1.0, pattern=pattern
    )
    for verdict, (state, pattern) in DRAWN.items()
} | {
    PENDING: Style(
        word=PENDING_WORD,
        meaning="completed rebalances without a verdict; the next analysis judges them",
        colour=STYLES["unknown"].colour,
        height=1.0,
        pattern="+",
    )
}


def verdict_legend() -> Component:
    """Return the legend of the bars."""
    items = [
        html.Li([swatch(f"blame {name}"), html.Span(style.word)], title=style.meaning)
        for name, style in VERDICT_STYLES.items()
    ]
    unseen = html.Li([swatch("unknown"), html.Span("not observed")], title="no record covers this time")
    return html.Ul([*items, unseen], className="legend")
