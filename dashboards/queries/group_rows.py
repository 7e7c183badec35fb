"""All rows of a group's page, whose queries run at the same time."""

from __future__ import annotations

from dataclasses import dataclass

from dashboards.lake.lake import Row, Rows
from dashboards.queries.ahead import ahead
from dashboards.queries.lag import Behind
from dashboards.queries.measurements import software_of
from dashboards.queries.store import Store
from dashboards.urlstate import Window


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRows:
    """The rows of one group in a window. The methods of the same names in `Store` describe them; `software` is that of
    `software_of`.
    """

    generations: Rows
    members: Rows
    stalls: Rows
    events: Rows
    gaps: Rows
    marks: list[Row]
    verdicts: list[Row]
    libraries: list[Row]
    software: list[Row]
    behind: list[Behind]
    patterns: list[Row]
    diagnosis: list[Row]
    lines: Rows


def group_rows(store: Store, cluster: str, group: str, window: Window) -> GroupRows:
    """Return the rows of a group in a window. Raises `LakeError` if a table cannot be read."""
    of = (cluster, group, window)
    # The slowest query comes first.
    generations, members, stalls = ahead(store.generations, *of), ahead(store.members, *of), ahead(store.stalls, *of)
    events, gaps, marks = ahead(store.events, *of), ahead(store.gaps, *of), ahead(store.marks, window, cluster, [group])
    verdicts, libraries = ahead(store.group_verdicts, *of), ahead(store.libraries, *of)
    behind, patterns = ahead(store.behind, *of), ahead(store.patterns, *of)
    diagnosis, lines = ahead(store.diagnosis, *of), ahead(store.lines, *of)
    software = ahead(software_of, store.lake, *of)
    return GroupRows(
        generations=generations.result(),
        members=members.result(),
        stalls=stalls.result(),
        events=events.result(),
        gaps=gaps.result(),
        marks=marks.result(),
        verdicts=verdicts.result(),
        libraries=libraries.result(),
        software=software.result(),
        behind=behind.result(),
        patterns=patterns.result(),
        diagnosis=diagnosis.result(),
        lines=lines.result(),
    )
