"""Begins the queries of a page as soon as a browser requests its document.

The browser requests the content of the page only after it has loaded the scripts, some 0.7 s later. By then the results
are cached.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from threading import Lock, Thread

from flask import Flask, request

from dashboards.urlstate import parse


def begin_early(server: Flask, build: Callable[[str, str], object]) -> None:
    """Run `build(pathname, search)` in the background, for the same reader, when a page's document is requested.

    Only one runs at a time. Documents that are requested meanwhile are not built early, because their queries would
    only slow down each other.
    """
    one = Lock()

    def run(pathname: str, search: str) -> None:
        try:
            build(pathname, search)
        finally:
            one.release()

    @server.before_request
    def begin() -> None:
        if request.method != "GET" or parse(request.path, "").page is None or not one.acquire(blocking=False):
            return
        search = f"?{request.query_string.decode('latin-1')}" if request.query_string else ""
        context = copy_context()
        Thread(target=lambda path: context.run(run, path, search), args=(request.path,), daemon=True).start()
