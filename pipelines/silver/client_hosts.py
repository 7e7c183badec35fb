"""What becomes of clients' addresses on their way into silver, and so into all that is made of it.

Kafka stores `InetAddress.toString()`: `name/literal`, the name mostly empty. Bronze keeps what was read.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field, replace
from enum import StrEnum
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

from pipelines.silver.history import History

FIELDS = frozenset({"clientHost", "host"})
"""Fields of decoded records that hold an address: a member's, and those of registries and Streams instances."""
PREFIX = {4: 24, 6: 48}
TOKEN = "hmac:"  # noqa: S105 - the beginning of what a host becomes
"""No host begins so: names have no colon, and an IPv6 address no such letters."""
DIGITS = 12
"""48 bits: among 100,000 hosts two share a token once in 50,000 times."""


class HostPolicy(StrEnum):
    """`keep` as it is; `truncate` to its network or domain; `hash` to a token that needs the key to be made."""

    KEEP = "keep"
    TRUNCATE = "truncate"
    HASH = "hash"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientHosts:
    """The policy, and for `hash` the key."""

    policy: HostPolicy = HostPolicy.KEEP
    key: bytes = field(default=b"", repr=False)

    def hide(self, history: History) -> History:
        """The same history, every address in its records as the policy wants it."""
        if self.policy == HostPolicy.KEEP:
            return history
        return replace(
            history, records=[replace(record, value=self._value(record.value)) for record in history.records]
        )

    def of(self, host: str) -> str:
        """What stands for a host; one host is told alike however it is written, and nothing stays nothing.

        Truncated, `/10.1.2.3` is `10.1.2.0/24`, `/2001:db8:1:2::3` is `2001:db8:1::/48`, `a.eu.example.com` is
        `*.eu.example.com`, and a name without a domain `*`. What was truncated or hashed before stays what it is.
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
    """The address alone, else the name in small letters."""
    if _is_hidden(host):
        return host
    name, _, literal = host.rpartition("/")
    address = _address(literal)
    return str(address) if address is not None else (name or literal).lower().rstrip(".")


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """Java writes a zone behind an IPv6 address; an IPv4 address may come as one of IPv6."""
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
