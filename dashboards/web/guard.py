"""Access control before every page and endpoint, by the rules of `Access`."""

from __future__ import annotations

import hmac
import re
from html import escape
from ipaddress import ip_address
from secrets import token_urlsafe
from urllib.parse import quote

from flask import Flask, Response, redirect, request

from dashboards.web.access import Access, is_loopback
from dashboards.web.attempts import Attempts, AttemptVerdict
from dashboards.web.requests import sentence

COOKIE = "regroup"
WEEK_S = 7 * 24 * 3600
OPEN = ("/healthz", "/login", "/assets/regroup.css")
"""Paths open to everybody. Their responses contain nothing from the tables."""
HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::\d{1,5})?", re.ASCII)
TLS = re.compile(r"(?:^|[\s,;=\"])https(?:$|[\s,;\"])", re.IGNORECASE)
Answer = Response | None

LOGIN = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Regroup</title><link rel="stylesheet" href="/assets/regroup.css"></head>
<body><main><form method="post" action="{action}" class="panel login">
<h1>Regroup</h1><p role="alert">{text}</p>
<label>Token <input name="token" type="password" autocomplete="current-password" autofocus required></label>
<button class="button">Open the pages</button></form></main></body></html>"""


def guard(server: Flask, access: Access, attempts: Attempts | None = None) -> None:
    """Check `access` before every request except those of `OPEN`."""
    door = _Door(access, attempts or Attempts())

    @server.before_request
    def check() -> Answer:
        if request.path in OPEN:
            return None
        if access.proxies:
            return _identified(access)
        if access.token:
            return door.knows()
        # DNS rebinding: another site's page can make a browser send that site's name to this machine.
        if is_loopback(_host()):
            return None
        return sentence(403, "These pages are only for this machine: open 127.0.0.1.")

    server.add_url_rule("/login", "login", door.login, methods=["GET", "POST"])


def _identified(access: Access) -> Answer:
    if not any(ip_address(request.remote_addr or "0.0.0.0") in network for network in access.proxies):  # noqa: S104 - none
        return sentence(403, "These pages accept requests only from their proxy.")
    if not access.has_host(_host()):
        return sentence(
            403, "These pages do not use this host name: add it to the setting pages_hosts, or use it in dashboard_url."
        )
    if not request.headers.get(access.header, "").strip():
        return sentence(401, f"The proxy sent no {access.header}: it must name the reader.")
    return None


class _Door:
    """Sign-in by token. After the right token, a reader gets a session cookie.

    The cookie is random and does not depend on the token. It is valid until this process ends.
    """

    def __init__(self, access: Access, attempts: Attempts) -> None:
        self._access = access
        self._attempts = attempts
        self._session = token_urlsafe(32)

    def knows(self) -> Answer:
        if _same(request.cookies.get(COOKIE, ""), self._session):
            return None
        kind, _, sent = request.headers.get("Authorization", "").partition(" ")
        if kind.lower() == "bearer":
            verdict = self._judge(sent.strip())
            if verdict.is_right:
                return None
            if verdict.wait_s:
                return _with_retry_after(sentence(429, _too_many(verdict)), verdict)
        elif request.method == "GET" and "text/html" in request.headers.get("Accept", ""):
            wanted = quote(request.full_path.rstrip("?"), safe="")
            response: Response = redirect(f"/login?next={wanted}", code=303)  # type: ignore[assignment]
            return response
        return sentence(401, "The pages require their token: send it as Authorization: Bearer.")

    def login(self) -> Response:
        wanted = _local(request.args.get("next", "/"))
        if request.method != "POST" or not self._access.token:
            return _form(wanted, "The pages require the token in the setting pages_token.", 200)
        verdict = self._judge(request.form.get("token", ""))
        if verdict.wait_s:
            return _with_retry_after(_form(wanted, _too_many(verdict), 429), verdict)
        if not verdict.is_right:
            return _form(wanted, "That is not the token.", 401)
        response = Response(status=303, headers={"Location": wanted})
        is_secure = request.is_secure or self._access.is_https or _says_tls()
        response.set_cookie(COOKIE, self._session, max_age=WEEK_S, httponly=True, samesite="Lax", secure=is_secure)
        return response

    def _judge(self, sent: str) -> AttemptVerdict:
        client = request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()
        return self._attempts.judge(request.remote_addr or "", client, lambda: _same(sent, self._access.token))


def _same(sent: str, wanted: str) -> bool:
    return hmac.compare_digest(sent.encode("utf-8", "replace"), wanted.encode())


def _says_tls() -> bool:
    """Return whether a header says that a proxy terminated TLS.

    Anybody can send such a header. It only makes the sender's own cookie Secure.
    """
    return any(TLS.search(request.headers.get(name, "")) for name in ("X-Forwarded-Proto", "Forwarded"))


def _host() -> str:
    """Return the host in the request, without its port; empty if it is not a valid host."""
    found = HOST.fullmatch(request.host.lower())
    return (found[1] or found[2]) if found else ""


def _too_many(verdict: AttemptVerdict) -> str:
    return f"Too many wrong tokens were sent: wait {verdict.wait_s} s, then send the right one."


def _with_retry_after(response: Response, verdict: AttemptVerdict) -> Response:
    response.headers["Retry-After"] = str(verdict.wait_s)
    return response


def _form(wanted: str, text: str, status: int) -> Response:
    action = f"/login?next={quote(wanted, safe='')}"
    return Response(LOGIN.format(action=escape(action), text=escape(text)), status, mimetype="text/html")


def _local(path: str) -> str:
    """Return the path if it is on this site, else `/`."""
    is_ours = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if is_ours else "/"
