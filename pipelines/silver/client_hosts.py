"""Privacy of client addresses in silver and in all tables that are computed from it.

Kafka stores `InetAddress.toString()`, which is `name/literal` with a mostly empty name. Bronze keeps the original.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field, replace
from enum import StrEnum
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

from pipelines.silver.history import History

FIELDS = frozenset({"clientHost", "host"})
"""Fields of decoded records that contain an address: of members, schema registries and Streams instances."""
PREFIX = {4: 24, 6: 48}
TOKEN = "hmac:"  # noqa: S105 - a prefix, not a secret
"""The prefix of a hashed host. Names contain no colon, and IPv6 addresses do not contain these letters."""
DIGITS = 12
"""Count of hexadecimal digits (48 bits). For 100,000 hosts, two share a token with a probability of 1 in 50,000."""


class HostPolicy(StrEnum):
    """The policies: `keep` the host, `truncate` it to its network or domain, or `hash` it with a key to a token."""

    KEEP = "keep"
    TRUNCATE = "truncate"
    HASH = "hash"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientHosts:
    """The policy and, for `hash`, the key."""

    policy: HostPolicy = HostPolicy.KEEP
    key: bytes = field(default=b"", repr=False)

    def hide(self, history: History) -> History:
        """Return the history with the policy applied to every address in its records."""
        if self.policy == HostPolicy.KEEP:
            return history
        return replace(
            history, records=[replace(record, value=self._value(record.value)) for record in history.records]
        )

    def of(self, host: str) -> str:
        """Return the replacement for a host. It is the same however the host is written; an empty host stays empty.

        Truncated, `/10.1.2.3` becomes `10.1.2.0/24`, `/2001:db8:1:2::3` becomes `2001:db8:1::/48`, `a.eu.example.com`
        becomes `*.eu.example.com`, and a name without a domain becomes `*`. A host that was truncated or hashed before
        stays unchanged.
        """
        name = _plain(host)
        if self.policy == HostPolicy.KEEP or not name or _is_hidden(name):
            return host
        if self.policy == HostPolicy.HASH:
            return TOKEN + hmac.new(self.key, name.encode(), "sha256").hexdigest()[:DIGITS]
        address = _address(name)
        if address is None:
            _, dot, domain = name.partition(".")
            return f"*{dot}{domain}"
        return str(ip_network((address, PREFIX[address.version]), strict=False))

    def _value(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._field(name, part) for name, part in value.items()}
        if isinstance(value, list) and value and isinstance(value[0], dict | list):
            return [self._value(part) for part in value]
        return value

    def _field(self, name: str, value: Any) -> Any:
        return self.of(value) if name in FIELDS and isinstance(value, str) else self._value(value)


def _plain(host: str) -> str:
    """Return the address, or the name in lower case if there is no address."""
    if _is_hidden(host):
        return host
    name, _, literal = host.rpartition("/")
    address = _address(literal)
    return str(address) if address is not None else (name or literal).lower().rstrip(".")


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """Return the parsed address or None. Java appends a zone to an IPv6 address; an IPv4 address may be IPv6-mapped."""
    try:
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def _is_hidden(host: str) -> bool:
    if host.startswith((TOKEN, "*")):
        return True
    network, slash, length = host.partition("/")
    address = _address(network)
    return bool(slash) and address is not None and length == str(PREFIX[address.version])
