"""The [otlp] section of the settings: the OpenTelemetry collector that gets traces, metrics and log records."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any
from urllib.parse import urlsplit

from jobs.config.declared import REFERENCES, all_typed, refuse_unknown, secret, table, text
from jobs.config.errors import UserError
from jobs.config.receivers import is_loopback

HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
"""A header's name: a token of RFC 9110."""
MOST_ENTRIES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Otlp:
    """A collector that takes OTLP over HTTP with protobuf. `endpoint` is its base address, without a signal's path."""

    endpoint: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    resource: Mapping[str, str] = field(default_factory=dict)
    traces: bool = True
    metrics: bool = True
    logs: bool = True
    max_hours: int = 48
    plain_http: bool = False

    def request_headers(self) -> dict[str, str]:
        """Return the headers with their values. Never print or store them.

        Raises:
            UserError: a reference is broken, or a value cannot be in a header.
        """
        found = {name: secret(f"The header {name} in [otlp]", value).strip() for name, value in self.headers.items()}
        for name, value in found.items():
            if not (value.isascii() and value.isprintable()):
                raise UserError(
                    f"The header {name} in [otlp] refers to a value that no HTTP header can have: it must be one line "
                    "of ASCII text."
                )
        return found


def otlp_section(declared: Any) -> Otlp | None:
    """Return what [otlp] describes; None without this section.

    Raises:
        UserError: a key is unknown or missing, or a value is not valid.
    """
    if declared is None:
        return None
    values = dict(table("otlp", declared))
    refuse_unknown(values, {f.name for f in fields(Otlp)}, "[otlp]")
    if not values.get("endpoint"):
        raise UserError('[otlp] has no endpoint: add endpoint = "https://host:4318".')
    headers, resource = _texts("headers", values.pop("headers", {})), _texts("resource", values.pop("resource", {}))
    for name, value in headers.items():
        if not HEADER.fullmatch(name):
            raise UserError("A name in [otlp.headers] is no name of an HTTP header: correct it.")
        if not value.startswith(REFERENCES):
            raise UserError(
                f"The header {name} in [otlp] must be a reference: write env:NAME or file:PATH, and put the value "
                "there."
            )
    found = Otlp(headers=headers, resource=resource, **all_typed(Otlp, values, "[otlp]"))
    if found.max_hours < 1:
        raise UserError(f"The setting max_hours in [otlp] must be at least 1, but is {found.max_hours}.")
    _check_endpoint(found)
    return found


def _texts(key: str, declared: Any) -> dict[str, str]:
    found = table(f"otlp.{key}", declared)
    if len(found) > MOST_ENTRIES:
        raise UserError(f"[otlp.{key}] has more than {MOST_ENTRIES} entries: remove some.")
    return {text(f"A name in [otlp.{key}]", name): text(f"{name} in [otlp.{key}]", v) for name, v in found.items()}


def _check_endpoint(found: Otlp) -> None:
    """Raise `UserError` if the address is invalid, contains a secret, or needs TLS."""
    try:
        address = urlsplit(found.endpoint)
        host, is_valid = address.hostname or "", address.port is None or address.port > 0
    except ValueError:
        host, is_valid = "", False
    if not host or not is_valid or address.scheme not in ("http", "https") or address.query or address.fragment:
        raise UserError("The endpoint in [otlp] is not an address: write it like https://host:4318.")
    if address.username or address.password:
        raise UserError(
            "The endpoint in [otlp] contains a user or password, which do not belong in a settings file: use "
            "[otlp.headers]."
        )
    if address.scheme == "http" and not is_loopback(host) and not found.plain_http:
        raise UserError(
            f"The endpoint in [otlp] sends names of groups to {host} without encryption: use https:// or, in a network "
            "that you trust, plain_http = true."
        )
