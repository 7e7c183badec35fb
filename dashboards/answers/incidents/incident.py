"""The content of an incident document, whatever it is about, and how it is chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dashboards.answers.advise import Advised
from dashboards.queries.store import KnownSpan
from dashboards.urlstate import Window
from dashboards.views.fact import Fact
from dashboards.views.plot import Figure

LINES_MOST = 100
"""The highest number of log lines, and of rebalances, in a timeline."""

COST = "Cost"
"""Name of the section with what it cost."""

ANNOUNCED = "announced"
"""The grade of a mark: people or their CI said so, and no record shows it."""


class EvidenceLine(NamedTuple):
    """A line of evidence. It happened within [earliest, latest] (epoch ms); equal if the time is exactly known.

    `evidence` is observed, bounded, inferred or `ANNOUNCED`. `place` is where the record or log line is; empty if the
    line is derived from several.
    """

    earliest: int
    latest: int
    text: str
    evidence: str
    place: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the document: facts, a table, or both."""

    name: str
    text: str = ""
    facts: Sequence[Fact] = ()
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str | int]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """What is known of a rebalance, an episode or a storm (`kind`).

    `verdict` is a sentence, and `is_answered` says whether it blames something. `open_text` says what is not over yet.
    `pages` are names of pages with their addresses, without host. `values` has the columns of the tables for JSON.
    """

    kind: str
    title: str
    cluster: str
    window: Window
    seen: KnownSpan
    is_answered: bool
    verdict: str
    story: Sequence[str]
    figure: Figure
    caption: str
    legend: Sequence[tuple[str, str]]
    timeline: Sequence[EvidenceLine]
    timeline_text: str
    sections: Sequence[Section]
    advice: Sequence[tuple[str, Advised | None]]
    pages: Sequence[tuple[str, str]]
    values: Mapping[str, Any]
    notices: Sequence[str] = field(default=())
    open_text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached:
    """A capture beside the document: its file name, size in bytes and SHA-256."""

    file: str
    size: int
    sha256: str
