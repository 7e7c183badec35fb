"""A range of a group as a trace: one click on the group's page saves the file that Perfetto opens."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime

from flask import Flask, Response, request

from dashboards.answers.traces.group_trace import group_trace
from dashboards.queries.store import Store
from dashboards.urlstate import TRACE, parse
from dashboards.views.group_timeline import group_timeline
from dashboards.web.requests import sentence


def add_traces(server: Flask, store: Store, now: Callable[[], int]) -> None:
    """Serve `/trace.json`: the trace of the group and the range in the address.

    `store` is limited to the groups of the request's reader.
    """

    @server.route(TRACE)
    def trace() -> Response:
        state = parse(TRACE, request.query_string.decode("ascii", "replace"))
        timeline = group_timeline(store, state, now())
        if timeline is None:
            return sentence(404, "The tables hold no group of this address: open the trace from the group's page.")
        response = Response(json.dumps(group_trace(timeline), separators=(",", ":")), mimetype="application/json")
        name = f"trace-{datetime.fromtimestamp(timeline.view.start / 1000, UTC):%Y%m%dT%H%M%SZ}.json"
        response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
        response.headers["Cache-Control"] = "no-store"
        return response
