"""The visual language of all pages: six styles, markers with words, identity hues and figure defaults.

The colours suit both themes. Every style has a contrast of at least 3:1 on white and on #1A1B1E, and the styles are
distinguishable with protan, deutan and tritan vision (the theme's tests compute both). The style sheet sets text, grid
and background colours, and restyles figures when the theme changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2s
from typing import Any

from schemas.states import Evidence, GroupEventKind, GroupProtocol, GroupState, MarkKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How a state is drawn: never by colour alone. `height` is a fraction of the lane."""

    word: str
    meaning: str
    colour: str
    height: float
    pattern: str = ""


STYLES = {
    "working": Style(word="working", meaning="stable, everybody processes", colour="#517390", height=0.28),
    "stopped": Style(word="stopped", meaning="members must stop and rejoin", colour="#BD3743", height=1.0),
    "assigning": Style(
        word="assigning", meaning="the leader computes the assignment", colour="#C38300", height=1.0, pattern="/"
    ),
    "partial": Style(word="partial", meaning="only moving partitions are stopped", colour="#AF6AF2", height=0.5),
    "empty": Style(word="empty", meaning="no members", colour="#929292", height=0.07),
    "unseen": Style(
        word="work not observed",
        meaning="the members have their assignment, but no record shows whether they process (share groups)",
        colour="#929292",
        height=0.28,
        pattern="x",
    ),
    "unknown": Style(
        word="not observed",
        meaning="no record covers it; never counted as healthy",
        colour="#929292",
        height=1.0,
        pattern="x",
    ),
}

STATE_STYLES = {
    GroupState.STABLE: "working",
    GroupState.PREPARING_REBALANCE: "stopped",
    GroupState.COMPLETING_REBALANCE: "assigning",
    GroupState.ASSIGNING: "assigning",
    GroupState.RECONCILING: "partial",
    GroupState.EMPTY: "empty",
    GroupState.DEAD: "empty",
    GroupState.NOT_READY: "stopped",
    GroupState.UNKNOWN: "unknown",
}

LEVELS = (0, 1, 2, 4, 8)
"""Rebalances in one cell of the heatmap. A cell has the shade of the highest level it reaches; level 0 is quiet."""


LOST_LEVELS = (0, 0, 1, 10, 100)
"""Lost resource-seconds in one cell of the heatmap. A cell with a rebalance has at least level 1."""


def style_of(state: str | None, protocol: str | None = None) -> str:
    """Return the style of a `groups.state`; an unknown state looks unknown.

    Brokers keep the progress of share groups (`protocol`) in another topic, so none of them looks as if it worked.
    """
    if state == GroupState.STABLE and protocol == GroupProtocol.SHARE:
        return "unseen"
    return next((style for known, style in STATE_STYLES.items() if known == state), "unknown")


@dataclass(frozen=True, slots=True)
class Glyph:
    """The marker of an event: a character for text, Plotly's name of the same shape, and the word."""

    character: str
    symbol: str
    word: str


GLYPHS = {
    GroupEventKind.CREATED: Glyph("●", "circle", "group created"),
    GroupEventKind.JOINED: Glyph("▲", "triangle-up", "joined"),
    GroupEventKind.LEFT: Glyph("▼", "triangle-down", "left"),
    GroupEventKind.SESSION_EXPIRED: Glyph("✕", "x", "expelled (session timeout)"),
    GroupEventKind.POLL_TIMEOUT: Glyph("◆", "diamond", "expelled (poll timeout)"),
    GroupEventKind.FENCED: Glyph("⊘", "circle-x", "fenced"),
    GroupEventKind.STATIC_RETURNED: Glyph("↻", "hexagon", "static member returned"),
    GroupEventKind.LEADER_CHANGED: Glyph("★", "star", "became leader"),
    GroupEventKind.FAILED_REBALANCE: Glyph("!", "y-down", "rebalance failed"),
    GroupEventKind.EMPTY: Glyph("○", "circle-open", "group empty"),
    GroupEventKind.DEAD: Glyph("■", "square-open", "group deleted"),
    GroupEventKind.COORDINATOR_MOVED: Glyph("▣", "square", "coordinator moved"),
    GroupEventKind.UPGRADED: Glyph("⇑", "arrow-up", "upgraded"),
    GroupEventKind.DOWNGRADED: Glyph("⇓", "arrow-down", "downgraded"),
    GroupEventKind.CONVERSION_REFUSED: Glyph("⊗", "circle-cross", "conversion refused"),
    GroupEventKind.SETTINGS_CHANGED: Glyph("⚙", "pentagon", "settings changed"),
}

FLAGS = {
    MarkKind.DEPLOY: Glyph("⚑", "", "deploy"),
    MarkKind.MAINTENANCE: Glyph("⚒", "", "maintenance"),
    MarkKind.INCIDENT: Glyph("⚠", "", "incident"),
    MarkKind.OTHER: Glyph("⚐", "", "mark"),
    MarkKind.KUBERNETES: Glyph("☸", "", "pod"),
}
"""Markers of marks, which people set to announce an event."""

LOUD = {
    GroupEventKind.SESSION_EXPIRED,
    GroupEventKind.POLL_TIMEOUT,
    GroupEventKind.FENCED,
    GroupEventKind.FAILED_REBALANCE,
}
"""Unwanted events, shown prominently."""

EVIDENCE = {
    Evidence.OBSERVED: "solid edge: a record or log line contains it",
    Evidence.BOUNDED: "faded edge: it lies within the faded span",
    Evidence.INFERRED: "dotted edge: a model estimated it",
}

HUES = ("#5B8DB8", "#B98A4E", "#6FA287", "#A9799F", "#8A8F5A", "#7C83B5", "#B27A72", "#5F9EA0")
"""Identity colours. They are used only for owners, always next to a label."""


def hue(identity: str) -> str:
    """Return the colour of a name; the same name always has the same colour."""
    return HUES[blake2s(identity.encode("utf-8", "surrogatepass"), digest_size=2).digest()[0] % len(HUES)]


def hues(identities: Iterable[str]) -> dict[str, str]:
    """Return `hue` of each, changed so that identities shown together differ while there are unused colours."""
    out: dict[str, str] = {}
    for identity in dict.fromkeys(identities):
        start = HUES.index(hue(identity))
        order = [*HUES[start:], *HUES[:start]]
        used = list(out.values())
        out[identity] = min(order, key=used.count)
    return out


FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif"


def layout(height: int, **more: Any) -> dict[str, Any]:
    """Return the defaults of every figure: transparent, without title and legend, which the page provides."""
    return {
        "height": height,
        "autosize": True,
        "margin": {"l": 120, "r": 14, "t": 10, "b": 34},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": FONT, "size": 11, "color": "#808488"},
        "showlegend": False,
        "bargap": 0,
        "barmode": "overlay",
        "hovermode": "closest",
        "hoverlabel": {"align": "left", "font": {"family": FONT, "size": 12}},
        "dragmode": "zoom",
        # Hide an owner's name that does not fit its bar instead of cutting it.
        "uniformtext": {"minsize": 9, "mode": "hide"},
        "template": None,
        **more,
    }


CONFIG: Any = {
    "displaylogo": False,
    "responsive": True,
    "scrollZoom": False,
    "doubleClick": False,
    # By default, Plotly offers to upload figures to its cloud.
    "showSendToCloud": False,
    "plotlyServerURL": "",
    "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d", "resetScale2d", "sendChartToCloud"],
    "showTips": False,
}
"""Plotly's options. The mode bar appears on hover and keeps its PNG export. assets/zoom.js implements zooming out."""
