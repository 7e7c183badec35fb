"""Incident documents of the pages: one click on a rebalance or a storm opens its document, to print or to send."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime

from flask import Flask, Response, request

from dashboards.answers.incidents.document import as_html, as_markdown, values
from dashboards.answers.incidents.incident import Incident
from dashboards.answers.incidents.of_episode import of_episode
from dashboards.answers.incidents.of_rebalance import of_rebalance
from dashboards.answers.incidents.of_storm import of_storm
from dashboards.answers.why import NoAnswerError, why_generation
from dashboards.queries.store import Store
from dashboards.urlstate import DOCUMENT, State, parse
from dashboards.web.access import Access
from dashboards.web.requests import sentence
from dashboards.zone import shown_in_zone

KINDS = {
    "html": (as_html, "text/html", "inline"),
    "markdown": (as_markdown, "text/markdown", "attachment"),
    "json": (lambda *found, **state: json.dumps(values(*found, **state)), "application/json", "attachment"),
}
"""Value of `format` → how the document is made, its media type, and whether a browser shows or saves it."""

SUFFIXES = {"html": "html", "markdown": "md", "json": "json"}


def add_incidents(server: Flask, store: Store, access: Access, now: Callable[[], int], stale_ms: int) -> None:
    """Serve `/incident`: the document of the rebalance, the episode (`episode=1`) or the storm in the address.

    `store` is limited to the groups of the request's reader. Data older than `stale_ms` is reported as old.
    """

    @server.route(DOCUMENT)
    def incident() -> Response:
        state = parse(DOCUMENT, request.query_string.decode("ascii", "replace"))
        kind = request.args.get("format", "html")
        if kind not in KINDS:
            return sentence(400, f"The format of a document is one of {', '.join(KINDS)}.")
        made, media, shown = KINDS[kind]
        with shown_in_zone(state.tz):
            try:
                found = _incident(store, state, is_episode=bool(request.args.get("episode")))
            except NoAnswerError as error:
                return sentence(404, str(error))
            base_url = (access.address or request.host_url).rstrip("/")
            response = Response(made(found, base_url, now_ms=now(), stale_ms=stale_ms), mimetype=media)
        name = f"incident-{datetime.fromtimestamp(found.window.start / 1000, UTC):%Y%m%dT%H%M%SZ}.{SUFFIXES[kind]}"
        response.headers["Content-Disposition"] = f'{shown}; filename="{name}"'
        response.headers["Cache-Control"] = "no-store"
        return response


def _incident(store: Store, state: State, *, is_episode: bool) -> Incident:
    """Return the incident in the address. Raises `NoAnswerError` if there is none that the reader may see."""
    if state.storm:
        return of_storm(store.lake, state.storm)
    group = store.group_by_hash(state.cluster, state.gid) if state.gid else state.group
    if group is None or state.generation is None:
        raise NoAnswerError("The address names no rebalance and no storm: open the document from their pages.")
    found = why_generation(store.lake, group, state.generation, cluster=state.cluster, incarnation=state.incarnation)
    return of_episode(store.lake, found) if is_episode else of_rebalance(store.lake, found)
