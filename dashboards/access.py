"""Who may read the pages: whoever is on this machine, whoever knows the token, or whom a trusted proxy lets through."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from hashlib import sha256
from html import escape
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any
from urllib.parse import quote, urlsplit

from flask import Flask, Response, redirect, request

from dashboards.readers import GROUP_MARK, TOKEN, Prefixes, Readers

TOKEN_VARIABLE = "REGROUP_PAGES_TOKEN"  # noqa: S105 - its name
COOKIE = "regroup"
WEEK_S = 7 * 24 * 3600
SHORTEST = 16
OPEN = ("/healthz", "/login", "/assets/regroup.css")
"""What anybody may have: it tells nothing of the tables."""

HEADER = "X-Forwarded-User"
GROUPS_HEADER = "X-Forwarded-Groups"
Network = IPv4Network | IPv6Network
Answer = Response | None

LOGIN = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Regroup</title><link rel="stylesheet" href="/assets/regroup.css"></head>
<body><main><form method="post" action="{action}" class="panel login">
<h1>Regroup</h1><p role="alert">{text}</p>
<label>Token <input name="token" type="password" autocomplete="current-password" autofocus required></label>
<button class="button">Open the pages</button></form></main></body></html>"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Nothing set: the pages are for this machine alone. With `token`, whoever has it reads. With `proxies`, requests
    come from these networks only, and carry in `header` whom the proxy has identified.
    """

    token: str = field(default="", repr=False)
    proxies: tuple[Network, ...] = ()
    header: str = HEADER
    groups_header: str = GROUPS_HEADER
    readers: Readers = field(default_factory=lambda: Readers({}))

    @classmethod
    def of(
        cls,
        *,
        token: str = "",
        proxies: str = "",
        header: str = HEADER,
        groups_header: str = GROUPS_HEADER,
        readers: Any = None,
    ) -> Access:
        """`proxies` are networks, with commas between them; `readers` the setting of that name.

        Raises:
            ValueError: with a sentence, where a network is none, the token is short, both are given, or there are
                readers whom nothing tells apart.
        """
        known = Readers.of(readers or {})
        if known and not token and not proxies:
            raise ValueError(
                "The setting readers needs to know who reads: set trusted_proxies (or pages_token, whose reader is "
                f"called {TOKEN}), or take [readers] away."
            )
        if token and proxies:
            raise ValueError(
                "Either a token or trusted proxies guard the pages, not both: take one of the settings away."
            )
        if token and len(token) < SHORTEST:
            raise ValueError(f"The token of the pages must have at least {SHORTEST} characters.")
        try:
            networks = tuple(ip_network(each.strip()) for each in proxies.split(",") if each.strip())
        except ValueError as error:
            raise ValueError(f"The setting trusted_proxies must be networks such as 10.0.0.0/8: {error}.") from None
        return cls(token=token, proxies=networks, header=header, groups_header=groups_header, readers=known)

    @property
    def is_guarded(self) -> bool:
        return bool(self.token or self.proxies)

    @property
    def names(self) -> tuple[str, ...]:
        """What the reader of the request under way is known by: a name, and groups with GROUP_MARK before them."""
        if not self.proxies:
            return (TOKEN,) if self.token else ()
        name = request.headers.get(self.header, "").strip()
        told = request.headers.get(self.groups_header, "").split(",")
        groups = (GROUP_MARK + group.strip() for group in told if group.strip())
        return (*groups, *((name,) if not name.startswith(GROUP_MARK) else ()))

    def prefixes(self) -> Prefixes | None:
        """Of the groups that the reader of the request under way may see; None: of all."""
        return self.readers.prefixes(self.names) if self.readers else None

    def refusal(self, host: str) -> str | None:
        """Why the pages may not listen on `host`, and the next step; None where they may."""
        if self.is_guarded or is_loopback(host):
            return None
        return (
            f"The pages would be open to everybody who reaches {host}: set pages_token (env:NAME or file:PATH), or "
            "trusted_proxies with a proxy before them that knows its users, or listen on 127.0.0.1."
        )


def is_loopback(host: str) -> bool:
    """Also by name; no other name is looked up."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def guard(server: Flask, access: Access) -> None:
    """Asks `access` before every request but those of `OPEN`."""
    session = hmac.new(access.token.encode(), b"pages of regroup", sha256).hexdigest()

    @server.before_request
    def check() -> Answer:
        if request.path in OPEN:
            return None
        if access.proxies:
            return _identified(access)
        if access.token:
            return _knows(access.token, session)
        # A page of another site can make a browser ask a name of its own that leads to this machine.
        host = urlsplit(f"//{request.host}").hostname or ""
        return None if is_loopback(host) else _sentence(403, "These pages are for this machine alone: open 127.0.0.1.")

    @server.route("/login", methods=["GET", "POST"])
    def login() -> Response:
        wanted = _local(request.args.get("next", "/"))
        if request.method == "GET" or not access.token:
            return _form(wanted, "The pages ask for the token of the setting pages_token.", 200)
        if not hmac.compare_digest(request.form.get("token", "").encode(), access.token.encode()):
            return _form(wanted, "That is not the token.", 401)
        answer = Response(status=303, headers={"Location": wanted})
        answer.set_cookie(COOKIE, session, max_age=WEEK_S, httponly=True, samesite="Lax", secure=request.is_secure)
        return answer


def _identified(access: Access) -> Answer:
    if not any(ip_address(request.remote_addr or "0.0.0.0") in network for network in access.proxies):  # noqa: S104 - none
        return _sentence(403, "These pages are read through their proxy.")
    if not request.headers.get(access.header, "").strip():
        return _sentence(401, f"The proxy sent no {access.header}: it has to say who asks.")
    return None


def _knows(token: str, session: str) -> Answer:
    kind, _, given = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode()):
        return None
    if hmac.compare_digest(request.cookies.get(COOKIE, "").encode(), session.encode()):
        return None
    if request.method == "GET" and "text/html" in request.headers.get("Accept", ""):
        wanted = quote(request.full_path.rstrip("?"), safe="")
        answer: Response = redirect(f"/login?next={wanted}", code=303)  # type: ignore[assignment]
        return answer
    return _sentence(401, "The pages ask for their token: send it as Authorization: Bearer.")


def _form(wanted: str, text: str, status: int) -> Response:
    action = f"/login?next={quote(wanted, safe='')}"
    return Response(LOGIN.format(action=escape(action), text=escape(text)), status, mimetype="text/html")


def _sentence(status: int, text: str) -> Response:
    return Response(f"{text}\n", status, mimetype="text/plain")


def _local(path: str) -> str:
    """A path of ours, whatever was asked for: never another site."""
    parts = urlsplit(path)
    is_ours = path.startswith("/") and not path.startswith(("//", "/\\")) and not parts.netloc and not parts.scheme
    return path if is_ours and path.isprintable() else "/"
