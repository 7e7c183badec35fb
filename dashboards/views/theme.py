"""The visual language: six looks, glyphs with words, identity hues and figure defaults. The same on every page.

Colours hold in both themes: every look has at least 3:1 contrast on white and on #1A1B1E, and the looks stay apart for
protan, deutan and tritan eyes (the theme's tests compute it). Ink, grid and backgrounds belong to the style sheet,
which restyles a drawn figure when the theme changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2s
from typing import Any

from schemas.states import Evidence, GroupEventKind, GroupState, MarkKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How a state is drawn: never by colour alone. `height` is a share of the lane."""

    word: str
    meaning: str
    colour: str
    height: float
    pattern: str = ""


LOOKS = {
    "working": Look(word="working", meaning="stable, everybody processes", colour="#517390", height=0.28),
    "stopped": Look(word="stopped", meaning="members were asked to stop and rejoin", colour="#BD3743", height=1.0),
    "assigning": Look(
        word="assigning", meaning="the leader computes the assignment", colour="#C38300", height=1.0, pattern="/"
    ),
    "partial": Look(word="partial", meaning="only what moves stands still", colour="#AF6AF2", height=0.5),
    "empty": Look(word="empty", meaning="no members", colour="#929292", height=0.07),
    "unknown": Look(
        word="not observed",
        meaning="no record tells; never taken for healthy",
        colour="#929292",
        height=1.0,
        pattern="x",
    ),
}

STATE_LOOKS = {
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
"""Rebalances in one cell of the heatmap. A cell's shade is the highest level it reaches; the first is quiet."""


def look_of(state: str | None) -> str:
    """The look of a `groups.state`; whatever is not known here looks unknown."""
    return next((look for known, look in STATE_LOOKS.items() if known == state), "unknown")


@dataclass(frozen=True, slots=True)
class Glyph:
    """An event's mark: a character for text, Plotly's name of the same shape, and the word."""

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
    GroupEventKind.SETTINGS_CHANGED: Glyph("⚙", "pentagon", "settings changed"),
}

FLAGS = {
    MarkKind.DEPLOY: Glyph("⚑", "", "deploy"),
    MarkKind.MAINTENANCE: Glyph("⚒", "", "maintenance"),
    MarkKind.INCIDENT: Glyph("⚠", "", "incident"),
    MarkKind.OTHER: Glyph("⚐", "", "mark"),
}
"""What people announced."""

LOUD = {
    GroupEventKind.SESSION_EXPIRED,
    GroupEventKind.POLL_TIMEOUT,
    GroupEventKind.FENCED,
    GroupEventKind.FAILED_REBALANCE,
}
"""Events nobody asked for."""

EVIDENCE = {
    Evidence.OBSERVED: "solid edge: a record or log line states it",
    Evidence.BOUNDED: "faded edge: it lies within the faded span",
    Evidence.INFERRED: "dotted edge: a model filled it in",
}

HUES = ("#5B8DB8", "#B98A4E", "#6FA287", "#A9799F", "#8A8F5A", "#7C83B5", "#B27A72", "#5F9EA0")
"""Identity colours; used for owners only, always beside a label."""


def hue(identity: str) -> str:
    """The same colour for the same name, everywhere and always."""
    return HUES[blake2s(identity.encode("utf-8", "surrogatepass"), digest_size=2).digest()[0] % len(HUES)]


def hues(identities: Iterable[str]) -> dict[str, str]:
    """`hue` of each, except that those shown together differ for as long as there are colours."""
    out: dict[str, str] = {}
    for identity in dict.fromkeys(identities):
        start = HUES.index(hue(identity))
        order = [*HUES[start:], *HUES[:start]]
        taken = list(out.values())
        out[identity] = min(order, key=taken.count)
    return out


FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif"


def layout(height: int, **more: Any) -> dict[str, Any]:
    """Defaults of every figure: transparent, no title, no legend; the page around it carries the words."""
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
        # An owner's name that does not fit its bar is left out rather than cut.
        "uniformtext": {"minsize": 9, "mode": "hide"},
        "template": None,
        **more,
    }


CONFIG: Any = {
    "displaylogo": False,
    "responsive": True,
    "scrollZoom": False,
    "doubleClick": False,
    # Plotly offers to upload figures to its cloud unless it is told otherwise.
    "showSendToCloud": False,
    "plotlyServerURL": "",
    "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d", "resetScale2d", "sendChartToCloud"],
    "showTips": False,
}
"""Plotly's own options. The mode bar appears on hover; its PNG export stays. assets/zoom.js zooms out again."""
