"""The receivers of alerts in the settings file: Alertmanagers and webhooks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from ipaddress import ip_address
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

from jobs.config.declared import REFERENCES, all_typed, refuse_unknown, secret, tables
from jobs.config.errors import UserError

R = TypeVar("R", "Alertmanager", "Webhook")


class Receiver(Protocol):
    """A receiver of alerts. Its `name` is unique among all receivers, because `alerts.sent_to` stores it."""

    @property
    def name(self) -> str: ...

    @property
    def url(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Alertmanager:
    """One Alertmanager and the base address of its API. `plain_http` allows HTTP without TLS to another machine."""

    url: str
    name: str = ""
    plain_http: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """An address that gets a POST for each state of an alert, signed with the secret that `secret` refers to."""

    url: str
    secret: str = field(repr=False)
    name: str = ""

    def key(self) -> bytes:
        """Return the key that signs the bodies. Never print or store it.

        Raises:
            UserError: the secret is missing or empty.
        """
        key = secret(f"The secret of the webhook {self.name}", self.secret).strip().encode()
        if not key:
            raise UserError(
                f"The secret of the webhook {self.name} is empty, so anybody could sign its messages: put a secret "
                f"into {self.secret}."
            )
        return key


def alertmanagers(declared: Any) -> tuple[Alertmanager, ...]:
    """Return the receivers of `[[alertmanagers]]`.

    Raises:
        UserError: a key is missing or unknown, or an address is invalid.
    """
    return tuple(_receiver("[[alertmanagers]]", Alertmanager, each) for each in tables("alertmanagers", declared))


def webhooks(declared: Any) -> tuple[Webhook, ...]:
    """Return the receivers of `[[webhooks]]`.

    Raises:
        UserError: as in `alertmanagers`, or the file contains a secret instead of a reference.
    """
    found = tuple(_receiver("[[webhooks]]", Webhook, each) for each in tables("webhooks", declared))
    for hook in found:
        if not hook.secret.startswith(REFERENCES):
            raise UserError(
                f"The secret of the webhook {hook.name} must be a reference: write env:NAME or file:PATH, and put the "
                "secret there."
            )
    return found


def refuse_same_names(receivers: Sequence[Receiver]) -> None:
    """Raise `UserError` for two receivers with one name, because `alerts.sent_to` could not distinguish them."""
    names = [receiver.name for receiver in receivers]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"Two receivers of alerts are called {name}: give each a name of its own (name = ...).")


def _receiver(section: str, kind: type[R], declared: Any) -> R:
    if not isinstance(declared, dict):
        raise UserError(f"{section} must be a table: write {section} on a line of its own.")
    refuse_unknown(declared, {f.name for f in fields(kind)}, section)
    for key in ("url", "secret"):
        if key in {f.name for f in fields(kind)} and key not in declared:
            raise UserError(f"{section} has no {key}: add {key} = ...")
    values = all_typed(kind, declared, section)
    return kind(**values | {"name": _checked(section, values)})


def _checked(section: str, values: dict[str, Any]) -> str:
    """Return the receiver's name: its own, or the host and port of its address.

    Raises:
        UserError: the address is invalid, contains a password, or needs TLS.
    """
    try:
        address = urlsplit(values["url"])
        host, port = address.hostname, address.port
    except ValueError:
        raise UserError(f"The url in {section} is not an address: write it like https://host:9093.") from None
    if address.scheme not in ("http", "https") or not host:
        raise UserError(f"The url in {section} is not an address: write it like https://host:9093.")
    if address.username or address.password:
        raise UserError(
            f"The url in {section} contains a user or password, which do not belong in a settings file: remove them."
        )
    if address.scheme == "http" and not is_loopback(host) and not values.get("plain_http"):
        more = " or, for an Alertmanager in a network that you trust, plain_http = true" if "alertm" in section else ""
        raise UserError(f"The url in {section} sends alerts to {host} without encryption: use https://{more}.")
    return values.get("name") or (f"{host}:{port}" if port else host)


def is_loopback(host: str) -> bool:
    """Return whether the host is a loopback address or `localhost`. Names are not resolved."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
