"""All rows of the paged table, which the browser holds only in part, for exports (assets/share.js)."""

from __future__ import annotations

from collections.abc import Callable

from flask import Flask, Response, jsonify, request

from dashboards.pages import fleet
from dashboards.queries.store import Store
from dashboards.urlstate import parse
from dashboards.web.requests import parsed, refused
from dashboards.zone import shown_in_zone

MOST_ROWS = 50_000
"""A warehouse with more groups returns only the first of them; the response's total shows it."""


def add_rows(server: Flask, store: Store, now: Callable[[], int]) -> None:
    """Serve `/rows`: the rows of the fleet's table for an address's query.

    `request` holds the grid's request as JSON. All rows are returned without it, or if it is empty.
    """

    @server.route("/rows")
    def rows() -> Response:
        state = parse("/", request.query_string.decode("ascii", "replace"))
        try:
            asked = parsed(request.args.get("request") or "null")
        except ValueError:
            return refused()
        with shown_in_zone(state.tz):
            response = jsonify(fleet.block(store, state, asked, now(), rows=MOST_ROWS))
        response.headers["Cache-Control"] = "no-store"
        return response
