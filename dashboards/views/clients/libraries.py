"""The client libraries of members in words, with the evidence for each."""

from __future__ import annotations

from collections.abc import Sequence

from dashboards.lake.lake import Row
from dashboards.text import ABSENT, visible
from schemas.states import ClientLibrary
from schemas.written import count


def library(member: Row) -> str:
    """Return `franz-go, observed`; a dash for tables that an earlier Regroup wrote."""
    name = member.get("client_library")
    if name is None:
        return ABSENT
    evidence = member.get("client_library_evidence")
    return visible(name, 40) if evidence is None else f"{visible(name, 40)}, {evidence}"


def libraries_sentence(rows: Sequence[Row]) -> str:
    """Return which client libraries a group's members use, with a leading space; empty if nothing is known.

    `rows` have client_library, client_library_evidence and members (their number).
    """
    known = [row for row in rows if row["client_library"] is not None]
    if all(row["client_library"] == ClientLibrary.UNKNOWN for row in known):
        return ""
    parts = [f"{library(row)} ({count(row['members'], 'member')})" for row in known]
    return f" Client libraries: {'; '.join(parts)}."
