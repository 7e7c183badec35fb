"""The sources of the log lines that a page relies on: anyone who can write to a source could have forged its lines."""

from __future__ import annotations

import re
from collections import Counter

from dash import html
from dash.development.base_component import Component

from dashboards.lake.lake import Row, Rows
from dashboards.text import ABSENT, instant, visible
from dashboards.views.components import table
from dashboards.views.verdict_words import lines_sentence
from dashboards.zone import zone

_PLACE_IN_MESSAGE = re.compile(r"#\d+\Z")


def each_line(lines: Rows) -> Component:
    """Return a panel with every line, its source and its place there."""
    rows = [
        (
            f"{instant(line['event_at'])} {zone()}",
            line["event_kind"].replace("_", " "),
            _broker(line),
            visible(line["source_id"], 80),
            str(line["line_no"]),
            _binding(line),
        )
        for line in lines.rows
    ]
    head = ("Time", "Says", "Broker", "Topic-partition or file", "Offset or line", "Bound by")
    return _panel(lines, table(head, rows, empty="No log line: nothing here relies on one."))


def by_source(lines: Rows) -> Component:
    """Return a panel with the number of lines of each source."""
    counted = Counter((_source(line), _broker(line), _binding(line)) for line in lines.rows)
    rows = [(visible(source, 80), broker, bound, n) for (source, broker, bound), n in sorted(counted.items())]
    head = ("Topic-partition or file", "Broker", "Bound by", "Lines")
    return _panel(lines, table(head, rows, empty="No log line: nothing here relies on one."))


def _panel(lines: Rows, body: Component) -> Component:
    summary = lines_sentence(lines)
    return html.Section([html.H2("Log lines"), html.P(summary, className="summary"), body], className="panel")


def _source(line: Row) -> str:
    return _PLACE_IN_MESSAGE.sub("", line["source_id"])


def _broker(line: Row) -> str:
    return ABSENT if line["broker_id"] is None else str(line["broker_id"])


def _binding(line: Row) -> str:
    """Return the setting that binds the line's source. A table of an earlier Regroup lacks the column."""
    return visible(line.get("source_binding") or "nothing", 80)
