"""The primary that Schema Registry instances elect (`SchemaRegistryProtocol`), not the leader of their Kafka group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

DUPLICATE_URLS = 1
ERRORS = {DUPLICATE_URLS: "two registries have the same URL: none was elected"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Elected:
    """The result of an election.

    `member_id` is None if nobody was elected; `url` is the address of the elected registry.
    """

    member_id: str | None
    url: str | None
    error: int


def elected(assignment: dict[str, Any]) -> Elected | None:
    """Return the election in a member's assignment, or None for other assignments. It is the same for all members."""
    if "master_identity" not in assignment and "master" not in assignment:
        return None
    member_id, identity = assignment.get("master"), assignment.get("master_identity")
    error = assignment.get("error")
    return Elected(
        member_id=member_id if isinstance(member_id, str) else None,
        url=_url(identity) if isinstance(identity, dict) else None,
        error=error if isinstance(error, int) else 0,
    )


def _url(identity: dict[str, Any]) -> str | None:
    host, port = identity.get("host"), identity.get("port")
    return None if host is None else f"{identity.get('scheme') or 'http'}://{host}:{port}"
