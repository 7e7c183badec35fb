"""One POST of JSON to an address that the settings name: no redirect is followed, nothing waits for long."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from jobs.receivers import is_loopback
from pipelines.gold.alerts.escaping import defused

TIMEOUT_S = 5.0
LONGEST_ANSWER = 300


class NotTakenError(Exception):
    """Why a receiver did not take what was sent, in a few words."""


class _NoRedirect(HTTPRedirectHandler):
    """An address that the settings do not name gets nothing."""

    def redirect_request(self, *_: Any) -> None:
        return None


def post(url: str, body: bytes, headers: Mapping[str, str]) -> None:
    """Send the body.

    Raises:
        NotTakenError: nobody answered in time, or with anything but success.
    """
    proxies = [ProxyHandler({})] if is_loopback(urlsplit(url).hostname or "") else []
    request = Request(url, body, {"Content-Type": "application/json", **headers}, method="POST")  # noqa: S310 - the settings allow http and https only
    try:
        with build_opener(_NoRedirect, *proxies).open(request, timeout=TIMEOUT_S) as answer:
            answer.read(LONGEST_ANSWER)
    except HTTPError as error:
        with error:
            said = defused(error.read(LONGEST_ANSWER).decode("utf-8", "replace").strip())
        raise NotTakenError(f"answered {error.code}{f': {said}' if said else ''}") from None
    except (URLError, OSError, HTTPException, ssl.SSLError) as error:
        raise NotTakenError(_words(error)) from None


def _words(error: Exception) -> str:
    reason = error.reason if isinstance(error, URLError) else error
    if isinstance(reason, TimeoutError):
        return f"no answer within {TIMEOUT_S:.0f} s"
    if isinstance(reason, OSError) and reason.strerror:
        return reason.strerror.lower()
    return defused(str(reason) or type(reason).__name__)
