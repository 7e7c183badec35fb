"""The runbooks that alerts link to, served as plain text."""

from __future__ import annotations

from pathlib import Path

from flask import Flask, Response, abort

from schemas.states import AlertName

HERE = Path(__file__).parent
FOLDER = next(
    (folder for folder in (HERE / "runbooks", HERE.parents[1] / "docs" / "runbooks") if folder.is_dir()),
    HERE / "runbooks",
)
"""In a wheel, the runbooks are next to this module."""


def add_runbooks(server: Flask) -> None:
    """Serve `/runbooks/<alert name>`. Only names of our alerts are read from disk."""

    @server.get("/runbooks/<name>")
    def runbook(name: str) -> Response:
        file = FOLDER / f"{name}.md"
        if name not in set(AlertName) or not file.is_file():
            abort(404)
        return Response(file.read_text(encoding="utf-8"), mimetype="text/plain")
