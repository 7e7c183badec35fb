"""The pages as a web application: `python -m dashboards.app --warehouse ADDRESS`. Read-only; on loopback by default."""

from __future__ import annotations

import argparse
import gc
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any, Protocol
from uuid import uuid4

from dash import ALL, ClientsideFunction, Dash, Input, Output, State, dcc, html, no_update
from dash.development.base_component import Component
from flask import Response

from dashboards import urlstate
from dashboards.freshness import STALE_MS, asked_at, freshness, is_stale
from dashboards.lake.address import address
from dashboards.lake.allocators import keep_trimmed, settle_allocators
from dashboards.lake.lake import Lake, LakeError, LocalLake, WarmLake
from dashboards.lake.readers import ReadersLake, readers_table
from dashboards.lake.without_pandas import without_pandas
from dashboards.pages import fleet
from dashboards.queries.store import Store
from dashboards.teams import Teams, teams_of_document, teams_table
from dashboards.text import visible
from dashboards.views.components import aria, empty
from dashboards.views.ranges import keyed
from dashboards.web.access import GROUPS_HEADER, HEADER, TOKEN_VARIABLE, Access
from dashboards.web.api import add_api
from dashboards.web.compression import compress
from dashboards.web.exports import add_rows
from dashboards.web.guard import guard
from dashboards.web.http_server import bound
from dashboards.web.incidents import add_incidents
from dashboards.web.index_string import INDEX
from dashboards.web.requests import refuse_malformed, refuse_unknown_components
from dashboards.web.runbooks import add_runbooks
from dashboards.web.search import Search, add_search
from dashboards.web.security import harden
from dashboards.web.traces import add_traces
from dashboards.zone import shown_in_zone
from schemas.visible import visible_stream

LOG = logging.getLogger(__name__)
RENDER = {page.name: import_module(f"dashboards.pages.{page.name}").render for page in urlstate.PAGES}
TOOLS = (
    ("u", "UTC", "Zone of all times: UTC or this browser's (U)"),
    ("p", "Pause", "Pause updates (P)"),
    ("l", "Copy link", "Copy a link to exactly this, its range frozen (L)"),
    ("e", "Export", "Tables as CSV or JSON, the page as Markdown (E)"),
    ("t", "Theme", "Theme: system, light or dark (T)"),
    ("?", "?", "All keys (?)"),
)
"""Key, label and title of the tools on every page; the scripts in assets/ implement them."""
TIMELESS = tuple(page.name for page in urlstate.PAGES if not page.has_range)
TICK_MS = 5_000

GUARD_FLAGS = (
    ("--trusted-proxies", "proxies", "networks of the proxies that authenticate readers"),
    ("--identity-header", "header", f"header with the reader's name (default: {HEADER})"),
    ("--groups-header", "groups_header", f"header with the reader's groups (default: {GROUPS_HEADER})"),
    ("--hosts", "hosts", "host names of the pages, in addition to --host"),
    ("--address", "address", "URL that readers open; https:// makes the cookie Secure"),
)
"""Option, field of `Access`, and help text."""


class Server(Protocol):
    """A bound server. `run` serves until Ctrl-C in the main thread, and in another thread until the process ends."""

    effective_port: int

    def run(self) -> None: ...


def create_app(
    lake: Lake,
    *,
    access: Access | None = None,
    teams: Teams | None = None,
    now: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
) -> Dash:
    """Return the application over a lake, for this machine only unless `access` says otherwise.

    `teams` are those of the settings. `now` returns epoch milliseconds; relative ranges end there.
    """
    app = Dash(
        "regroup",
        title="Regroup",
        update_title="",
        assets_folder=str(Path(__file__).parent / "assets"),
        assets_ignore="theme.js|plotly",
        index_string=INDEX,
        suppress_callback_exceptions=True,
        add_log_handler=False,
        meta_tags=[{"name": "viewport", "content": "width=device-width, initial-scale=1"}],
    )
    app.layout = _shell()
    access = access or Access()
    lake = ReadersLake(lake, access.prefixes)
    store = Store(lake, teams)
    _callbacks(app, store, access, now)

    app.server.add_url_rule("/healthz", "healthz", lambda: Response("ok\n", mimetype="text/plain"))
    add_runbooks(app.server)
    add_search(app.server, Search(lake))
    add_rows(app.server, store, now)
    add_incidents(app.server, store, access, now, STALE_MS)
    add_traces(app.server, store, now)
    add_api(app.server, lake, access, now, STALE_MS, store.teams)
    app.server.register_error_handler(LakeError, _unreadable)
    refuse_unknown_components(app.server)
    compress(app.server)
    guard(app.server, access)
    refuse_malformed(app.server, app.callback_map)
    harden(app.server, app.csp_hashes())
    return app


def _unreadable(error: LakeError) -> Response:
    """Return the response to a search, an export or a grid's request for rows. Pages show the error in their body."""
    LOG.warning("%s", error)
    return Response(f"{error}\n", status=503, mimetype="text/plain")


def _shell() -> Component:
    menu: Any = {"aria-expanded": "false", "aria-controls": "places search tools"}
    return html.Div(
        [
            dcc.Location(id="url", refresh="callback-nav"),
            dcc.Store(id="seen"),
            dcc.Store(id="made"),
            dcc.Interval(id="tick", interval=TICK_MS),
            html.Header(
                [
                    html.Nav(navigation(urlstate.State(page="fleet")), id="places", **aria("pages")),
                    html.Div(id="freshness", className="freshness", role="status"),
                    html.Div(id="paused", className="freshness", role="status"),
                    html.Div(id="silent", className="freshness", role="alert"),
                    html.Button("Menu", id="menu", type="button", **menu),
                    html.Div(id="search"),
                    html.Div([html.Button(text, title=title, **keyed(key)) for key, text, title in TOOLS], id="tools"),
                ],
                className="topbar",
            ),
            html.Div(id="loading", role="status"),
            html.Main(html.Div(className="skeleton"), id="page"),
        ]
    )


def _callbacks(app: Dash, store: Store, access: Access, now: Callable[[], int]) -> None:
    @app.callback(
        Output("made", "data"),
        Output("seen", "data"),
        Output("freshness", "children"),
        Input("url", "pathname"),
        Input("url", "search"),
        Input("tick", "n_intervals"),
        State("seen", "data"),
    )
    def show(pathname: Any, search: Any, _: Any, seen: Any) -> Any:
        if not isinstance(pathname, str):
            return no_update, no_update, no_update
        if access.prefixes() == ():
            return _stranger(access), None, ""
        return page(store, pathname, search if isinstance(search, str) else "", seen, now())

    # assets/update.js puts the response into the page without disturbing the reader.
    app.clientside_callback(ClientsideFunction("regroup", "update"), Input("made", "data"))  # type: ignore[no-untyped-call]

    # Runs as soon as the request is sent; assets/draw.js has the reason.
    app.clientside_callback(ClientsideFunction("regroup", "draw"), Input("url", "pathname"))  # type: ignore[no-untyped-call]

    @app.callback(Output("places", "children"), Input("url", "pathname"), Input("url", "search"))
    def lead(pathname: Any, search: Any) -> Any:
        return navigation(urlstate.parse(*(text if isinstance(text, str) else "" for text in (pathname, search))))

    # assets/open.js follows the link of a clicked point.
    app.clientside_callback(  # type: ignore[no-untyped-call]
        ClientsideFunction("regroup", "open"),
        Input({"type": "figure", "name": ALL}, "clickData"),
        State({"type": "links", "name": ALL}, "data"),
        prevent_initial_call=True,
    )

    @app.callback(
        Output("groups", "getRowsResponse"),
        Input("groups", "getRowsRequest"),
        State("url", "pathname"),
        State("url", "search"),
        prevent_initial_call=True,
    )
    def rows(request: Any, pathname: Any, search: Any) -> Any:
        if request is None or not isinstance(pathname, str):
            return no_update
        state = urlstate.parse(pathname, search if isinstance(search, str) else "")
        with shown_in_zone(state.tz):
            return fleet.block(store, state, request, now())


def _stranger(access: Access) -> list[Component]:
    """Return the page for a reader to whom the setting `readers` gives no groups."""
    known = ", ".join(visible(name, 80) for name in access.names) or "nobody"
    text = f"You are known here as {known}. The setting [readers] gives you no groups; ask the operator of the pages."
    return [empty("missing", "No groups for you", text)]


def navigation(state: urlstate.State) -> list[Component]:
    """Return the menu. Its links keep the range and the zone."""
    brand = html.Span(dcc.Link([html.Span(className="mark"), "Regroup"], href=state.href("fleet"), className="brand"))
    return [brand, *(_page_link(state, name, key) for name, key, _ in urlstate.PAGES if key is not None)]


def _page_link(state: urlstate.State, name: str, key: str) -> Component:
    is_here: Any = {"aria-current": "page"} if state.page == name else {}
    link = dcc.Link(name.capitalize(), href=state.href(name))
    return html.Span(link, title=f"({key})", className="place", **keyed(key), **is_here)


def page(store: Store, pathname: str, search: str, seen: Any, now: int) -> tuple[Any, Any, Any]:
    """Return page, inputs of the page, and freshness. The page is not rebuilt unless one of its inputs has changed."""
    state = urlstate.parse(pathname, search)
    with shown_in_zone(state.tz):
        return _page(store, state, [pathname, search], seen, now)


def _page(store: Store, state: urlstate.State, address: list[str], seen: Any, now: int) -> tuple[Any, Any, Any]:
    try:
        span = store.span()
        view, _ = urlstate.window(state, now, (span.first_at, span.last_at) if span else None)
        # The end of a live range moves in steps of a 200th of its width, not with every tick.
        moves = view.is_live and state.page not in TIMELESS
        moment = now // max(TICK_MS, view.width // 200) if moves else 0
        # Pages with a range show states, which are not known any more when the data gets old.
        until = {} if span is None or state.page in TIMELESS else span.until
        old = sorted(name for name, at in until.items() if is_stale(at, now))
        made_from = [*address, sorted(store.versions().items()), moment, old]
        # The browser returns the value after a round trip through JSON.
        if seen == [*address, [list(v) for v in sorted(store.versions().items())], moment, old]:
            return no_update, no_update, freshness(span, now, state.cluster)
        if state.page is None:
            lost = dcc.Link("All groups", href="/", className="button")
            return [empty("missing", "No such page", "There is no page at this address.", lost)], made_from, ""
        notices = [html.P(text, className="notice", role="alert") for text in state.notices]
        return (
            [html.Div(notices), *RENDER[state.page](store, state, now)],
            made_from,
            freshness(span, now, state.cluster),
        )
    except Exception as why:
        error = uuid4().hex[:8]
        LOG.exception("page %s failed", error)
        text = f"This page could not be built; the log has the error under {error}. The page retries every few seconds."
        if isinstance(why, LakeError):
            text = str(why)
        ways = (
            html.A("Try again", href="", className="button"),
            dcc.Link("Health", href=state.href("health")),
        )
        broken = html.Span("the tables cannot be read", className="stale", **asked_at(now))
        return [empty("missing", "Something went wrong", text, *ways)], None, [broken]


def make_server(
    lake: WarmLake,
    *,
    host: str = "127.0.0.1",
    port: int = 8050,
    access: Access | None = None,
    teams: Teams | None = None,
) -> Server:
    """Return a server that is bound but not yet running. Port 0 selects a free port (`effective_port`).

    Raises:
        OSError: the address is not available; `refusal` gives the sentence for it.
    """
    access = access or Access()
    app = create_app(lake, access=replace(access, hosts=(*access.hosts, host.lower())), teams=teams).server
    Thread(target=_warm, args=(lake,), daemon=True).start()
    server: Server = bound(app, host=host, port=port)
    return server


def _warm(lake: WarmLake) -> None:
    # If it fails, every page reports the error when it is opened.
    with suppress(LakeError):
        lake.warm()


def refusal(host: str, port: int, error: OSError) -> str:
    """Return why the server could not be bound, and the next step."""
    return f"The pages cannot listen on {host}:{port} ({error.strerror}): choose another with --port, or --port 0."


def serve(lake: WarmLake, *, host: str, port: int, access: Access, teams: Teams | None = None) -> int:
    """Print the address and serve until Ctrl-C or SIGTERM, which end the process.

    If the address is not available or not allowed, write the reason to stderr and return 2.
    """
    if (why := access.refusal(host)) is not None:
        sys.stderr.write(f"{why}\n")
        return 2
    try:
        server = make_server(lake, host=host, port=port, access=access, teams=teams)
    except OSError as error:
        sys.stderr.write(f"{refusal(host, port, error)}\n")
        return 2
    # The server shuts down cleanly on SystemExit. A shell's background jobs ignore SIGINT. The signal may follow the
    # address at once, before the server runs.
    with suppress(SystemExit, KeyboardInterrupt):
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        sys.stdout.write(f"Pages: http://{host}:{server.effective_port}/\n")
        sys.stdout.flush()
        keep_trimmed()
        # What is loaded stays. Without this, each full collection would go through it, in the middle of a request.
        gc.freeze()
        server.run()
    sys.stdout.flush()
    # A request may still run in DuckDB, and interpreter shutdown would crash it. Nothing is written here.
    os._exit(0)


def _access(args: argparse.Namespace) -> Access:
    """Return the access rules of the command line. Raises `ValueError` or `OSError`, with a sentence, if unclear."""
    declared = {name: value for _, name, _ in GUARD_FLAGS if (value := getattr(args, name)) is not None}
    if args.access_on_stdin:
        if declared or args.readers:
            raise ValueError("Give access rules either with --access-on-stdin or with the other options, not both.")
        return Access.of_document(sys.stdin.readline())
    token = os.environ.get(TOKEN_VARIABLE)
    if token is not None and not token.strip():
        raise ValueError(f"{TOKEN_VARIABLE} is empty, which protects nothing: set it to a token, or unset it.")
    return Access.of(token=token or "", readers=readers_table(args.readers) if args.readers else None, **declared)


def _teams(args: argparse.Namespace) -> Teams:
    """Return the teams of the command line, read after the access rules. Raises `ValueError` or `OSError`."""
    if args.access_on_stdin:
        if args.teams:
            raise ValueError("Give teams either with --access-on-stdin or with --teams, not both.")
        return teams_of_document(sys.stdin.read())
    return teams_table(args.teams) if args.teams else Teams()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `serve` with the options of the command line."""
    parser = argparse.ArgumentParser(prog="dashboards", description="The pages over a warehouse of Regroup.")
    parser.add_argument(
        "--warehouse", required=True, metavar="ADDRESS", help="folder of the Delta tables, or s3a://, abfss://, gs://"
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8050, help="port, 0 for a free one (default: %(default)s)")
    guard_options = parser.add_argument_group("who may read", f"Everyone with the token, if {TOKEN_VARIABLE} is set.")
    for flag, name, about in GUARD_FLAGS:
        guard_options.add_argument(flag, dest=name, metavar="TEXT", help=about)
    guard_options.add_argument(
        "--readers", type=Path, metavar="FILE", help="TOML file with [readers]: who sees which groups"
    )
    guard_options.add_argument(
        "--access-on-stdin",
        action="store_true",
        help="read all of these, then the teams, as lines of JSON from stdin, as sent by regroup up",
    )
    parser.add_argument("--teams", type=Path, metavar="FILE", help="TOML file with [teams]: which groups a team has")
    sys.stdout, sys.stderr = visible_stream(sys.stdout), visible_stream(sys.stderr)
    args = parser.parse_args(arguments)
    try:
        warehouse, access, teams = address(args.warehouse), _access(args), _teams(args)
    except (ValueError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return serve(LocalLake(warehouse), host=args.host, port=args.port, access=access, teams=teams)


if __name__ == "__main__":
    settle_allocators()
    without_pandas()
    sys.exit(main())
