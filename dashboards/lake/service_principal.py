"""Tokens of a Databricks service principal: OAuth client credentials at the workspace's token endpoint."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from threading import Lock
from time import monotonic
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from dashboards.lake.lake import LakeError

TIMEOUT_SECONDS = 10
EARLY_SECONDS = 60.0
"""A token is renewed this long before it expires."""


class ServicePrincipal:
    """The request headers of one service principal. Its token is renewed before it expires. Thread-safe."""

    def __init__(self, token_url: str, client_id: str, client_secret: str) -> None:
        self._url = token_url
        known = b64encode(f"{client_id}:{client_secret}".encode()).decode()
        self._known = {"Authorization": f"Basic {known}", "Content-Type": "application/x-www-form-urlencoded"}
        self._lock = Lock()
        self._token = ""
        self._until = 0.0

    def headers(self) -> Mapping[str, str]:
        """Return the headers. Raises `LakeError` if no token can be obtained."""
        with self._lock:
            if not self._token or monotonic() > self._until:
                self._renew()
            return {"Authorization": f"Bearer {self._token}"}

    def _renew(self) -> None:
        asked = urlencode({"grant_type": "client_credentials", "scope": "all-apis"}).encode()
        request = Request(self._url, asked, dict(self._known))  # noqa: S310 - https, from settings
        try:
            with urlopen(request, timeout=TIMEOUT_SECONDS) as body:  # noqa: S310
                response = json.load(body)
            self._token, lasts = str(response["access_token"]), float(response.get("expires_in", 0))
        except HTTPError as error:
            error.close()
            raise LakeError(
                f"Databricks gives the service principal no token (HTTP {error.code}): check client_id and "
                "client_secret, and that it belongs to this workspace."
            ) from error
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise LakeError(
                f"No token could be obtained from {self._url}: check server_hostname and the network."
            ) from error
        self._until = monotonic() + max(0.0, lasts - EARLY_SECONDS)
