"""The JSON API: `GET /api/v1/QUESTION` for programs, with the answers and the rules of the pages."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from flask import Flask, Response, request

from dashboards.answers.questions.question import API, BadRequestError, QuestionContext
from dashboards.answers.questions.questions import BY_NAME
from dashboards.answers.why import NoAnswerError
from dashboards.lake.lake import Lake, LakeError
from dashboards.teams import Teams
from dashboards.text import visible
from dashboards.web.access import Access
from dashboards.web.attempts import network
from dashboards.web.openapi import document
from dashboards.web.rate_limit import RateLimit

BURST, PER_SECOND = 60, 2.0
"""Requests of a reader at once, and further ones per second."""

STATUS = ((BadRequestError, 400), (NoAnswerError, 404), (LakeError, 503))
ERRORS = tuple(kind for kind, _ in STATUS)


def add_api(
    server: Flask, lake: Lake, access: Access, now: Callable[[], int], stale_ms: int, teams: Teams | None = None
) -> None:
    """Serve the questions, and their OpenAPI document at `/api/v1/openapi.json`.

    `lake` is limited to the groups of the request's reader. Data older than `stale_ms` is reported as old.
    """
    limit = RateLimit(BURST, PER_SECOND)

    @server.route(f"{API}/openapi.json")
    def described() -> Response:
        return _json(document())

    @server.route(f"{API}/<path:name>")
    def answer(name: str) -> Response:
        if wait_s := limit.wait_s(access.names or network(request.remote_addr or "")):
            response = _error(429, f"Too many requests: wait {wait_s} s.")
            response.headers["Retry-After"] = str(wait_s)
            return response
        question = BY_NAME.get(name)
        if question is None:
            return _error(404, f"There is no question {visible(name, 40)}: ask one of {', '.join(BY_NAME)}.")
        base_url = (access.address or request.host_url).rstrip("/")
        asked = QuestionContext(lake=lake, now_ms=now(), stale_ms=stale_ms, base_url=base_url, teams=teams or Teams())
        try:
            return _json(question.ask(asked, _given()))
        except ERRORS as error:
            return _error(next(status for kind, status in STATUS if isinstance(error, kind)), str(error))


def _given() -> dict[str, str]:
    """Return the parameters in the address. Raises `BadRequestError` if one is there twice."""
    if twice := [name for name, found in request.args.lists() if len(found) > 1]:
        raise BadRequestError(f"The parameter {visible(twice[0], 40)} is there twice.")
    return request.args.to_dict()


def _error(status: int, text: str) -> Response:
    return _json({"error": text}, status)


def _json(values: dict[str, Any], status: int = 200) -> Response:
    # Other numbers than those of JSON would be a defect, and no client could read them.
    response = Response(json.dumps(values, allow_nan=False) + "\n", status, mimetype="application/json")
    response.headers["Cache-Control"] = "no-store"
    return response
