"""Search as you type: `GET /search?q=` searches ids in memory, which are read again after `groups` has changed.

`GET /search/members?q=` asks the tables for groups by the hosts, ids and topics of their members.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Iterable
from threading import Lock
from typing import NamedTuple

from flask import Flask, Response, jsonify, request

from dashboards.lake.lake import Lake, Row
from dashboards.queries.fleet_queries import IDS, SHORT_ID, group_address
from dashboards.queries.member_search import MemberHit, member_hits
from dashboards.text import visible
from dashboards.urlstate import parse

ID_ROWS = 200_000
SHOWN = 12
KEPT = 8
"""Number of id lists kept, because readers of different groups have different lists."""
COMPARED = SHORT_ID
"""Characters of an id that are searched."""


class Hit(NamedTuple):
    """A match; smaller is better. Fields in order: kind of match, characters it spans, length of the id."""

    tier: int
    spread: int
    length: int
    group: str
    cluster: str


class Search:
    """A search for ids of one lake that contain the typed text, or its characters in order. Thread-safe."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._lock = Lock()
        self._version: int | None = None
        self._ids: OrderedDict[int, tuple[list[Row], list[tuple[str, str, str]]]] = OrderedDict()

    def find(self, typed: str, shown: int = SHOWN) -> tuple[list[Hit], int]:
        """Return the best hits and the number of all hits.

        The exact id comes first, then prefixes, beginnings of words, other substrings, and last ids that contain the
        characters in order.
        """
        wanted = typed.strip().lower()[:COMPARED]
        if not wanted:
            return [], 0
        found = list(_hits(self._known(), wanted))
        return heapq.nsmallest(shown, found), len(found)

    def members(self, typed: str) -> list[MemberHit]:
        """Return the groups whose members' hosts, ids or topics contain the typed text."""
        return member_hits(self._lake, typed)

    def _known(self) -> list[tuple[str, str, str]]:
        version = self._lake.versions().get("groups")
        rows = self._lake.query(IDS, ("groups",), ID_ROWS, {}).rows
        with self._lock:
            if version != self._version:
                # Lists of earlier versions are not found again, but take as much memory as the current one.
                self._version = version
                self._ids.clear()
            # A lake returns the same object for a reader until the table changes.
            _, ids = self._ids.pop(id(rows), (None, None))
            if ids is None:
                ids = [(r["group_id"][:COMPARED].lower(), r["group_id"], r["cluster"]) for r in rows]
            self._ids[id(rows)] = rows, ids
            while len(self._ids) > KEPT:
                self._ids.popitem(last=False)
            return ids


def _hits(ids: Iterable[tuple[str, str, str]], wanted: str) -> Iterable[Hit]:
    characters = "".join(wanted.split())
    for text, group, cluster in ids:
        at = text.find(wanted)
        if at >= 0:
            tier = 0 if text == wanted else 1 if at == 0 else 3 if text[at - 1].isalnum() else 2
            yield Hit(tier, len(wanted), len(text), group, cluster)
        elif (spread := _spread(text, characters)) is not None:
            yield Hit(4, spread, len(text), group, cluster)


def _spread(text: str, characters: str) -> int | None:
    """Return how many characters of the text the match spans, for the earliest end; None if there is no match."""
    at = -1
    for character in characters:
        at = text.find(character, at + 1)
        if at < 0:
            return None
    first = end = at + 1
    for character in reversed(characters):
        first = text.rfind(character, 0, first)
    return end - first


def add_search(server: Flask, search: Search) -> None:
    """Serve `/search`, and `/search/members` for what members show: labels and addresses, which keep the range."""

    @server.route("/search")
    def found() -> Response:
        state = parse("/", request.query_string.decode("ascii", "replace"))
        best, total = search.find(state.q)
        groups = [
            {
                "label": visible(hit.group, 120),
                "cluster": visible(hit.cluster, 60),
                "href": state.href("group", cluster=hit.cluster, **group_address(hit.group)),
            }
            for hit in best
        ]
        return _unstored(jsonify({"groups": groups, "total": total}))

    @server.route("/search/members")
    def found_members() -> Response:
        state = parse("/", request.query_string.decode("ascii", "replace"))
        hits = search.members(state.q)
        members = [
            {
                "label": f"{hit.kind} {visible(hit.value, 100)}",
                "cluster": f"{visible(hit.group, 80)} · {visible(hit.cluster, 60)}",
                "href": state.href("group", cluster=hit.cluster, **group_address(hit.group)),
            }
            for hit in hits[:SHOWN]
        ]
        return _unstored(jsonify({"groups": members, "total": len(hits)}))


def _unstored(response: Response) -> Response:
    response.headers["Cache-Control"] = "no-store"
    return response
