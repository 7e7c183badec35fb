"""Building blocks of pages. React escapes their text; no function here accepts HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from dash import dcc, html
from dash.development.base_component import Component
from dash_ag_grid import AgGrid

from dashboards.lake.lake import Row
from dashboards.text import ABSENT, instant, span, visible, zoned
from dashboards.urlstate import State
from dashboards.views.fact import PROOF, Fact
from dashboards.views.marks import flag_of, mark_subject
from dashboards.views.plot import Figure
from dashboards.views.theme import CONFIG, EVIDENCE, FLAGS, GLYPHS, LEVELS, LOST_LEVELS, STYLES
from dashboards.zone import zone

Cell = str | int | Component
WIDE = 4
"""Columns from which a table is shown as cards on narrow screens."""

GRID_CELLS = {"sortable": True, "resizable": True, "suppressMovable": True}


def aria(label: str) -> Any:
    """Return the label for screen readers, as a keyword argument for Dash components."""
    return {"aria-label": label}


def tile(label: str, value: str, note: str = "", *, loud: bool = False) -> Component:
    """Return a headline number; `note` holds its bounds or its time."""
    return html.Div(
        [html.Div(label, className="label"), html.Div(value, className="value"), html.Div(note, className="note")],
        className="tile loud" if loud else "tile",
    )


def panel(
    title: str,
    summary: str,
    figure: Figure | None,
    *more: Component,
    name: str = "",
    table: Component | None = None,
) -> Component:
    """Return a figure with its summary and its equivalent table."""
    body: list[Component] = [html.H2(title), html.P(summary, className="summary")]
    if figure is not None:
        body.append(
            html.Figure(
                dcc.Graph(
                    id={"type": "figure", "name": name},
                    figure=figure,
                    config=CONFIG,
                    mathjax=False,
                    style={"height": f"{figure['layout']['height']}px"},
                ),
                tabIndex=0,  # assets/reading.js
                **aria(f"{title}. {summary}"),
            )
        )
    body += more
    if table is not None:
        body.append(html.Details([html.Summary("Show as table"), table]))
    return html.Section(body, className="panel")


def table(head: Sequence[str], rows: Iterable[Sequence[Cell]], *, empty: str = "Nothing.") -> Component:
    """Return a plain table, with numbers aligned right and other cells left.

    Its rows are sent to the browser as bare cells, and assets/static.js builds the elements. With a component around
    each cell, the cells would be most of the size of a page.
    """
    cells: Any = {"data-rows": [list(row) for row in rows]}
    if not cells["data-rows"]:
        return html.P(empty, className="quiet")
    is_wide = len(head) >= WIDE
    if is_wide:
        # Narrow screens show each row as a card, whose values need their labels.
        cells["data-labels"] = [zoned(name) for name in head]
    right = {at for row in cells["data-rows"] for at, cell in enumerate(row) if isinstance(cell, int)}
    names = [html.Th(zoned(h), scope="col", className="number" if at in right else "") for at, h in enumerate(head)]
    header = html.Thead(html.Tr(names))
    rows_shown = html.Table([header, html.Tbody(**cells)], className="cards" if is_wide else "")
    return html.Div(rows_shown, className="scroll", tabIndex=0)


def table_panel(
    title: str, text: str, head: Sequence[str], rows: Iterable[Sequence[Cell]], nothing: str = "Nothing."
) -> Component:
    """Return a table with a title and a summary."""
    return html.Section(
        [html.H2(title), html.P(text, className="quiet"), table(head, rows, empty=nothing)], className="panel"
    )


def marks_table(marks: Sequence[Row]) -> Component:
    """Return a table of every mark that a figure flags."""
    rows = [
        (
            instant(m["marked_at"]),
            f"{flag_of(m).character} {flag_of(m).word}",
            visible(m["text"], 200),
            mark_subject(m),
            visible(m["cluster"], 40),
            ABSENT if m["marked_by"] is None else visible(m["marked_by"], 60),
        )
        for m in marks
    ]
    return table(("At (UTC)", "What", "Text", "About", "Cluster", "By"), rows, empty="No mark in this range.")


def grid(name: str, columns: Sequence[Row], rows: Sequence[Row], height: int) -> Component:
    """Return a sortable table. Its renderers (assets/regroup.js) create only text and links to this site."""
    return _grid({"type": "grid", "name": name}, columns, height, {}, rowData=list(rows))


def paged_grid(name: str, columns: Sequence[Row], height: int, block: int) -> Component:
    """Return a table that the server sorts and filters, in blocks of `block` rows (`getRowsRequest`)."""
    return _grid(name, columns, height, {"cacheBlockSize": block, "maxBlocksInCache": 10}, rowModelType="infinite")


def _grid(identity: Any, columns: Sequence[Row], height: int, options: Row, **rows: Any) -> Component:
    made: Component = AgGrid(
        id=identity,
        columnDefs=[column | {"headerName": zoned(column["headerName"])} for column in columns],
        defaultColDef=GRID_CELLS,
        columnSize="responsiveSizeToFit",
        getRowId="params.data.key",
        dangerously_allow_code=False,
        className="grid",
        style={"height": f"{height}px"},
        dashGridOptions={
            "rowHeight": 36,
            "headerHeight": 36,
            "animateRows": False,
            "suppressCellFocus": False,
            "enableCellTextSelection": True,
            "ensureDomOrder": True,
            **options,
        },
        **rows,
    )
    return made


def paging_links(state: State, page: str, shown: int, step: int, known: int) -> Component:
    """Return links to the groups before and after the `shown` ones, out of `known`, by the address's `skip`."""
    at = state.skip
    steps = (
        (f"Previous {min(at, step)}", max(0, at - step), at > 0),
        (f"Next {min(step, known - at - shown)}", at + shown, at + shown < known),
    )
    ways = [
        dcc.Link(text, href=state.href(page, q=state.q, heat=state.heat, skip=skip or ""), className="button")
        for text, skip, is_there in steps
        if is_there
    ]
    return html.Nav(ways, className="further", **aria("more groups"))


def document_link(state: State, text: str, **key: object) -> Component:
    """Return a link that opens an incident document in a window of its own. A page's link would stay in the page."""
    href = state.href("incident", **key, from_="", to="")
    return html.A(text, href=href, target="_blank", rel="noopener", className="button")


def empty(kind: str, title: str, text: str, *links: Component) -> Component:
    """Return a notice for an empty page. `kind` is nothing (happened), filtered, unobserved or missing."""
    return html.Div([html.H2(title), html.P(text), *links], className=f"empty {kind}", role="status")


def links(name: str, hrefs: Sequence[str]) -> Component:
    """Return the addresses by row of the figure `name`, for figures whose points cannot hold one (heatmaps)."""
    return dcc.Store(id={"type": "links", "name": name}, data=list(hrefs))


def facts(pairs: Iterable[tuple[str, Cell]]) -> Component:
    """Return a list of names and values."""
    return html.Dl(
        [item for name, value in pairs for item in (html.Dt(zoned(name)), html.Dd(value))], className="facts"
    )


def graded(found: Iterable[Fact]) -> list[tuple[str, Cell]]:
    """Return the facts as pairs for `facts`, with the grades as marks. Places of records are shown as code."""
    return [(fact.name, _value(fact)) for fact in found]


def _value(fact: Fact) -> Cell:
    if fact.name == PROOF:
        return html.Code(fact.text)
    return fact.text if fact.evidence is None else html.Span([fact.text, " ", evidence_mark(fact.evidence)])


def swatch(style: str) -> Component:
    hidden: Any = {"aria-hidden": "true"}
    return html.Span(className=f"swatch {style}", **hidden)


def legend(*, styles: Iterable[str] = STYLES, glyphs: bool = True) -> Component:
    """Return the legend of styles, edges and markers; styles and edges are always visible.

    A click on a style hides it in the figures of its panel (assets/legend.js).
    """
    items = [
        html.Li(
            html.Button(
                [swatch(name), html.Span(STYLES[name].word)],
                type="button",
                title=f"{STYLES[name].meaning}; click to hide or show",
                **_hides(name),
            )
        )
        for name in styles
    ]
    edges = [
        html.Li([swatch(f"edge {grade}"), html.Span(grade.value)], title=meaning) for grade, meaning in EVIDENCE.items()
    ]
    drawn = (*GLYPHS.values(), *FLAGS.values())
    marks = [html.Li([html.Span(g.character, className="glyph"), html.Span(g.word)]) for g in drawn]
    return html.Div(
        [
            html.Ul([*items, html.Li("evidence:"), *edges], className="legend"),
            html.Details([html.Summary("Glyphs"), html.Ul(marks, className="legend")]) if glyphs else None,
        ]
    )


def _hides(style: str) -> Any:
    """Return the attributes of a button that hides a style, for assets/legend.js."""
    return {"data-style": style, "aria-pressed": "true"}


def heat_legend(*, by_loss: bool) -> Component:
    """Return what the shades of the heatmap mean: lost resource-seconds, or numbers of rebalances."""
    if by_loss:
        words = ["no rebalance", f"rebalance, under {LOST_LEVELS[2]} or not analyzed yet"]
        words += [*(span(str(least), str(last)) for least, last in pairwise(LOST_LEVELS[2:])), f"{LOST_LEVELS[-1]}+"]
    else:
        words = ["none", *(span(str(least), str(last - 1)) for least, last in pairwise(LEVELS[1:])), f"{LEVELS[-1]}+"]
    items = [html.Li([swatch(f"heat level-{i}"), html.Span(word)]) for i, word in enumerate(words)]
    per_cell = "lost resource-seconds per cell:" if by_loss else "rebalances per cell:"
    return html.Ul(
        [html.Li(per_cell), *items, html.Li([swatch("heat blank"), html.Span("not observed")])],
        className="legend",
    )


def state_word(style: str, state: str | None) -> Component:
    """Return the swatch of `style` with Kafka's name of the state."""
    return html.Span(
        [swatch(style), html.Span(STYLES[style].word), html.Span(visible(state), className="quiet")], className="state"
    )


def old_state(style: str, state: str | None, until: int) -> Component:
    """Return that the state is not observed since `until`, in milliseconds, and the state that was seen last."""
    text = f"{STYLES['unknown'].word} since {instant(until)[:19]} {zone()}"
    last = html.Span(f"last seen {STYLES[style].word} ({visible(state)})", className="quiet")
    return html.Span([swatch("unknown"), html.Span(text), last], className="state")


def evidence_mark(grade: str) -> Component:
    return html.Span(visible(grade), className=f"evidence {grade if grade in set(EVIDENCE) else ''}")
