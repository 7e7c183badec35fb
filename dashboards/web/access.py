"""Who may read the pages: only this machine, everyone with the token, or the readers that a trusted proxy names.

`Access` holds every setting of access control. Processes pass it on as one document, so that no setting can be
forgotten. `dashboards.web.guard` enforces it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, fields
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any, Self
from urllib.parse import urlsplit

from flask import request

from dashboards.lake.readers import GROUP_MARK, TOKEN, Prefixes, Readers

TOKEN_VARIABLE = "REGROUP_PAGES_TOKEN"  # noqa: S105 - the variable's name, not a token
SHORTEST = 16
HEADER = "X-Forwarded-User"
GROUPS_HEADER = "X-Forwarded-Groups"
ANY_HOST = "*"
BLANKS = " \t"
"""The characters that HTTP allows around a header value. `str.strip` removes more, which could make two names equal."""
HOST = re.compile(r"\*|[a-z0-9._-]+|[0-9a-f:.]+", re.ASCII)
REFERENCES = ("env:", "file:")
Network = IPv4Network | IPv6Network


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Access control of the pages.

    Without `token` and `proxies`, only this machine may read. With `token`, everyone who sends it may read. With
    `proxies`, requests must come from these networks and name the reader in `header`.

    `hosts` holds the host names and addresses that requests through a proxy may use. `address` is the URL that readers
    open.
    """

    token: str = field(default="", repr=False)
    proxies: tuple[Network, ...] = ()
    header: str = HEADER
    groups_header: str = GROUPS_HEADER
    readers: Readers = field(default_factory=Readers)
    hosts: tuple[str, ...] = ()
    address: str = ""

    @classmethod
    def of(
        cls,
        *,
        token: str = "",
        proxies: str = "",
        header: str = HEADER,
        groups_header: str = GROUPS_HEADER,
        readers: Any = None,
        hosts: str = "",
        address: str = "",
    ) -> Self:
        """Build it from settings. `proxies` and `hosts` are comma-separated; `readers` is the table of that name.

        Raises:
            ValueError: with a sentence, if a value is invalid or the values contradict each other.
        """
        known = Readers.of({} if readers is None else readers)
        if known and not token and not proxies:
            raise ValueError(
                "The setting readers requires that readers are identified: set trusted_proxies (or pages_token, whose "
                f"reader is called {TOKEN}), or remove [readers]."
            )
        if token and proxies:
            raise ValueError(
                "The pages are protected either by a token or by trusted proxies, not both: remove one of the settings."
            )
        _check_token(token)
        networks = _networks(proxies)
        if networks and not header.strip():
            raise ValueError(
                "The setting identity_header is empty: name the header in which the proxy sends the reader's name."
            )
        return cls(
            token=token,
            proxies=networks,
            header=header,
            groups_header=groups_header,
            readers=known,
            hosts=_hosts(hosts),
            address=_address(address),
        )

    @classmethod
    def of_document(cls, text: str) -> Self:
        """Rebuild it from the text that `document` returned.

        Raises:
            ValueError: with a sentence, if a field is missing, unknown or of another type.
        """
        try:
            values = json.loads(text)
        except (ValueError, RecursionError):
            values = None
        if not isinstance(values, dict) or _types(values) != _types(_all_declared(cls())):
            raise ValueError(
                "The access rules of the pages did not arrive complete, so the pages do not start: run one version of "
                "Regroup, and let regroup up start this process."
            )
        return cls.of(**values)

    def document(self) -> str:
        """Return every field as JSON. It contains the token: never print, log or store it."""
        return json.dumps(_all_declared(self))

    @property
    def is_guarded(self) -> bool:
        return bool(self.token or self.proxies)

    @property
    def is_https(self) -> bool:
        """Return whether readers open the pages over TLS, even if a proxy terminates it."""
        return self.address.lower().startswith("https:")

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the current request's reader in `readers`: the name, and groups prefixed by GROUP_MARK.

        A user or group from the proxy cannot take the name TOKEN or a name of the other kind.
        """
        if not self.proxies:
            return (TOKEN,) if self.token else ()
        name = request.headers.get(self.header, "").strip(BLANKS)
        values = request.headers.get(self.groups_header, "").split(",") if self.groups_header else []
        groups = (GROUP_MARK + group.strip(BLANKS) for group in values if group.strip(BLANKS))
        return (*groups, *((name,) if name != TOKEN and not name.startswith(GROUP_MARK) else ()))

    def prefixes(self) -> Prefixes | None:
        """Return the prefixes of the groups that the current request's reader may see; None for all groups."""
        return self.readers.prefixes(self.names) if self.readers else None

    def refusal(self, host: str) -> str | None:
        """Return why the pages may not listen on `host`, and the next step; None if they may."""
        if self.is_guarded or is_loopback(host):
            return None
        return (
            f"The pages would be open to everybody who can reach {host}: set pages_token (env:NAME or file:PATH), or "
            "set trusted_proxies and use a proxy that authenticates users, or listen on 127.0.0.1."
        )

    def has_host(self, host: str) -> bool:
        """Return whether a request may use `host`, without its port, as its Host header.

        With DNS rebinding, another site's page can make a browser send a name of that site, but not an address.
        """
        if is_loopback(host):
            return True
        known = {*self.hosts, (urlsplit(self.address).hostname or "").lower()} - {""}
        is_everywhere = any(_is_wildcard(each) for each in known)
        return bool({ANY_HOST, host} & known) or (is_everywhere and _is_address(host))


def is_loopback(host: str) -> bool:
    """Return whether the host is a loopback address or `localhost`; no other name is resolved."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _is_address(host: str) -> bool:
    try:
        return bool(ip_address(host))
    except ValueError:
        return False


def _is_wildcard(host: str) -> bool:
    return _is_address(host) and ip_address(host).is_unspecified


def _check_token(token: str) -> None:
    if token.startswith(REFERENCES):
        raise ValueError("The token of the pages must be the token itself here, not env:NAME or file:PATH.")
    if token and len(token.strip()) < SHORTEST:
        raise ValueError(f"The token of the pages must have at least {SHORTEST} characters.")


def _networks(value: str) -> tuple[Network, ...]:
    try:
        found = tuple(ip_network(each.strip()) for each in value.split(",") if each.strip())
    except ValueError as error:
        raise ValueError(f"The setting trusted_proxies must be networks such as 10.0.0.0/8: {error}.") from None
    if value and not found:
        raise ValueError("The setting trusted_proxies names no network: write for example 10.0.0.0/8, or remove it.")
    return found


def _hosts(value: str) -> tuple[str, ...]:
    found = tuple(each.strip().strip("[]").lower() for each in value.split(",") if each.strip())
    if wrong := [each for each in found if not HOST.fullmatch(each)]:
        raise ValueError(f"The setting pages_hosts must be names without port, such as regroup.example: {wrong[0]!r}.")
    return found


def _address(value: str) -> str:
    try:
        urlsplit(value).hostname  # noqa: B018 - reading it checks it
    except ValueError:
        raise ValueError(f"The setting dashboard_url is no address: {value!r}.") from None
    return value


def _all_declared(access: Access) -> dict[str, Any]:
    """Return every field in the form that `Access.of` accepts."""
    return {each.name: _declared(getattr(access, each.name)) for each in fields(access)}


def _types(values: dict[str, Any]) -> dict[str, type]:
    return {name: type(value) for name, value in values.items()}


def _declared(value: Any) -> Any:
    if isinstance(value, Readers):
        return value.declared
    return ", ".join(map(str, value)) if isinstance(value, tuple) else value
