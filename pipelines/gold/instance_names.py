"""The names by which a membership is recognised as the next one of an instance, best name first.

An instance is recognised by `group.instance.id`; else by a member id that comes again; else by client id and host; else
by the client id alone; else by its host, if its client id is made up at each start; else by the part of a pod's name
that survives a restart (`<deployment>-<replica set>-<pod>`, as Kubernetes makes it).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

POD = re.compile(r"^(?P<deployment>.+?)-[a-z0-9]{6,10}-[bcdfghjklmnpqrstvwxz2456789]{5}(?P<rest>\b.*)$")
"""Names of a Deployment's pods: a hash of the template, then five letters without vowels (apimachinery's `rand`)."""

MADE_UP = re.compile(r"(?=[a-f]{0,7}\d)[0-9a-f]{8}")
"""Part of a UUID or a hash: the client id is another one after a restart. Linear in the length of the id."""

Name = tuple[str, ...]


class Named(Protocol):
    """What names are made of."""

    @property
    def member_id(self) -> str: ...
    @property
    def group_instance_id(self) -> str | None: ...
    @property
    def client_id(self) -> str: ...
    @property
    def client_host(self) -> str: ...


def prefix(client_id: str) -> str:
    """Return a client id without the parts that tell one instance from another: numbers, hashes, UUIDs."""
    kept = []
    for part in re.split(r"(?<=[-_.])", client_id):
        if re.search(r"\d", part.rstrip("-_.")):
            break
        kept.append(part)
    return "".join(kept).rstrip("-_.")


def _by_instance_id(one: Named) -> Name | None:
    return (one.group_instance_id,) if one.group_instance_id else None


def _by_member(one: Named) -> Name | None:
    """A KIP-848 client makes its member id itself and keeps it when it was fenced."""
    return (one.member_id,)


def _by_client(one: Named) -> Name | None:
    return one.client_id, one.client_host


def _by_client_id(one: Named) -> Name | None:
    return (one.client_id,)


def _by_host(one: Named) -> Name | None:
    """A container that starts anew in its pod keeps the address."""
    return (prefix(one.client_id), one.client_host) if MADE_UP.search(one.client_id) else None


def _by_pod(one: Named) -> Name | None:
    match = POD.match(one.client_id)
    return (match["deployment"], match["rest"]) if match else None


def names_of(one: Named) -> list[tuple[int, Name]]:
    """Return the names of a membership with their ranks, best first."""
    return [(rank, name) for rank, of in enumerate(NAMES) if (name := of(one)) is not None]


NAMES: tuple[Callable[[Named], Name | None], ...] = (
    _by_instance_id,
    _by_member,
    _by_client,
    _by_client_id,
    _by_host,
    _by_pod,
)
