"""Validation of update requests: a browser sends what Dash generated, but anybody may send anything."""

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
"""Maximum bytes of a request; a click or an address takes a few hundred."""
REFUSED = "This is not a request of these pages.\n"


def parsed(text: str | bytes) -> Any:
    """Return the JSON of a request.

    Raises:
        ValueError: it is not JSON, is nested deeper than `DEEPEST_REQUEST`, or contains text that is not Unicode.
    """
    try:
        body = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if is_too_deep(body, DEEPEST_REQUEST):
        raise ValueError("nested too deeply")
    # JSON can contain a lone surrogate. Fail here instead of where the text is used.
    json.dumps(body, ensure_ascii=False).encode()
    return body


def component_file(path: str) -> str | None:
    """Return package and file of a component's path, without the fingerprint; None for any other path."""
    if not path.startswith(COMPONENTS):
        return None
    file, _ = check_fingerprint(path.removeprefix(COMPONENTS))  # type: ignore[no-untyped-call]
    return str(file)


def refuse_unknown_components(server: Flask) -> None:
    """Answer 404 to component paths without a file, because Dash raises for unknown packages and missing files."""

    @server.errorhandler(DependencyException)
    @server.errorhandler(FileNotFoundError)
    def missing(error: Exception) -> Response:
        if component_file(request.path) is None:
            raise error
        return Response("There is no such file.\n", status=404, mimetype="text/plain")


def refuse_malformed(server: Flask, callbacks: Mapping[str, Mapping[str, Any]]) -> None:
    """Answer 400 to an update that no page requests, before Dash processes it.

    `callbacks` are the application's callbacks by output; Dash adds entries later.
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


def sentence(status: int, text: str) -> Response:
    """Return a response of one line of text."""
    return Response(f"{text}\n", status, mimetype="text/plain")


def refused() -> Response:
    return Response(REFUSED, status=400, mimetype="text/plain")


def _is_ours(body: Any, callbacks: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return whether the body names a server-side callback with its outputs, inputs and state; values may be any."""
    if not isinstance(body, dict) or not isinstance(body.get("output"), str):
        return False
    callback = callbacks.get(body["output"], {})
    changed = body.get("changedPropIds", [])
    return (
        # Callbacks without a Python function run in the browser.
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
    """Return whether `found` is the wanted property, or for a pattern a list of properties of matching components."""
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
    """Return whether the targets match `output`: `..a.children...b.data..` names two properties, `a.children` one."""
    is_many = output.startswith("..")
    names = output.removeprefix("..").removesuffix("..").split("...") if is_many else [output]
    targets = found if is_many else [found]
    return (
        isinstance(targets, list)
        and all(isinstance(each, dict) for each in targets)
        and [f"{each.get('id')}.{each.get('property')}" for each in targets] == names
    )
