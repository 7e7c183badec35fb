"""Which requests for an update are ours to answer: a browser sends what Dash made, and anybody may send anything."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from dash.exceptions import DependencyException
from dash.fingerprint import check_fingerprint
from flask import Flask, Response, request

from schemas.json_depth import DEEPEST_REQUEST, is_too_deep

COMPONENTS = "/_dash-component-suites/"
UPDATE = "/_dash-update-component"
LARGEST = 256 * 1024
"""Bytes of a request; a click or an address is a few hundred."""
REFUSED = "This is no request of these pages.\n"


def parsed(text: str | bytes) -> Any:
    """JSON of a request.

    Raises:
        ValueError: it is no JSON, is nested deeper than `DEEPEST_REQUEST`, or has text that is no Unicode.
    """
    try:
        body = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if is_too_deep(body, DEEPEST_REQUEST):
        raise ValueError("nested too deeply")
    # A lone surrogate, which JSON can spell, fails here and not where the text is used.
    json.dumps(body, ensure_ascii=False).encode()
    return body


def component_file(path: str) -> str | None:
    """Package and file of a component's path, without the fingerprint; None for any other path."""
    if not path.startswith(COMPONENTS):
        return None
    file, _ = check_fingerprint(path.removeprefix(COMPONENTS))  # type: ignore[no-untyped-call]
    return str(file)


def refuse_unknown_components(server: Flask) -> None:
    """Answer 404 to component paths without a file: Dash raises for what it does not know or does not find."""

    @server.errorhandler(DependencyException)
    @server.errorhandler(FileNotFoundError)
    def missing(error: Exception) -> Response:
        if component_file(request.path) is None:
            raise error
        return Response("There is no such file.\n", status=404, mimetype="text/plain")


def refuse_malformed(server: Flask, callbacks: Mapping[str, Mapping[str, Any]]) -> None:
    """Answer 400 to an update that no page asks for, before Dash looks at it.

    `callbacks` are the application's by their output, filled in as Dash learns of them.
    """
    server.config["MAX_CONTENT_LENGTH"] = LARGEST

    @server.before_request
    def check() -> Response | None:
        if request.path != UPDATE or request.method != "POST":
            return None
        try:
            body = parsed(request.get_data(cache=True))
        except ValueError:
            return refused()
        return None if _is_ours(body, callbacks) else refused()


def refused() -> Response:
    return Response(REFUSED, status=400, mimetype="text/plain")


def _is_ours(body: Any, callbacks: Mapping[str, Mapping[str, Any]]) -> bool:
    """It names a callback that runs here, with that one's outputs, inputs and state; their values may be anything."""
    if not isinstance(body, dict) or not isinstance(body.get("output"), str):
        return False
    callback = callbacks.get(body["output"], {})
    changed = body.get("changedPropIds", [])
    return (
        # Those without a function here run in the browser.
        "callback" in callback
        and isinstance(changed, list)
        and all(isinstance(each, str) and "." in each for each in changed)
        and _are(body.get("inputs"), callback["inputs"])
        and _are(body.get("state", []), callback["state"])
        and _are_targets(body.get("outputs"), body["output"])
    )


def _are(found: Any, wanted: Sequence[Mapping[str, str]]) -> bool:
    return isinstance(found, list) and len(found) == len(wanted) and all(map(_is, found, wanted))


def _is(found: Any, wanted: Mapping[str, str]) -> bool:
    """The property of one component, or, where a pattern is wanted, a list of those of components that fit it."""
    if not wanted["id"].startswith("{"):
        return isinstance(found, dict) and (found.get("id"), found.get("property")) == (
            wanted["id"],
            wanted["property"],
        )
    keys = set(json.loads(wanted["id"]))
    return isinstance(found, list) and all(
        isinstance(each, dict)
        and each.get("property") == wanted["property"]
        and isinstance(each.get("id"), dict)
        and set(each["id"]) == keys
        and all(isinstance(value, str) for value in each["id"].values())
        for each in found
    )


def _are_targets(found: Any, output: str) -> bool:
    """`..a.children...b.data..` names two properties, `a.children` one."""
    is_many = output.startswith("..")
    names = output.removeprefix("..").removesuffix("..").split("...") if is_many else [output]
    targets = found if is_many else [found]
    return (
        isinstance(targets, list)
        and all(isinstance(each, dict) for each in targets)
        and [f"{each.get('id')}.{each.get('property')}" for each in targets] == names
    )
