"""The names by which a membership is recognized as the next one of an instance, best name first:

1. `group.instance.id`
2. the same member id
3. client id and host
4. client id alone
5. host, if the client id is generated at each start
6. the part of a pod's name that survives a restart (Kubernetes names pods `<deployment>-<replica set>-<pod>`)
"""

from __future__ import annotations

import re
from collections.abc import Callable

from pipelines.member_identity import MemberIdentity

POD = re.compile(r"^(?P<deployment>.+?)-[a-z0-9]{6,10}-[bcdfghjklmnpqrstvwxz2456789]{5}(?P<rest>\b.*)$")
"""Names of a Deployment's pods: a hash of the template, then five letters without vowels (apimachinery's `rand`)."""

MADE_UP = re.compile(r"(?=[a-f]{0,7}\d)[0-9a-f]{8}")
"""Part of a UUID or a hash in a client id that is generated at each start. Matching takes time linear in its length."""

Name = tuple[str, ...]


def prefix(client_id: str) -> str:
    """Return the start of a client id, without the parts that differ between instances: numbers, hashes, UUIDs."""
    kept = []
    for part in re.split(r"(?<=[-_.])", client_id):
        if re.search(r"\d", part.rstrip("-_.")):
            break
        kept.append(part)
    return "".join(kept).rstrip("-_.")


def _by_instance_id(one: MemberIdentity) -> Name | None:
    return (one.group_instance_id,) if one.group_instance_id else None


def _by_member(one: MemberIdentity) -> Name | None:
    """Return the member id. A KIP-848 client generates it and keeps it after it was fenced."""
    return (one.member_id,)


def _by_client(one: MemberIdentity) -> Name | None:
    return one.client_id, one.client_host


def _by_client_id(one: MemberIdentity) -> Name | None:
    return (one.client_id,)


def _by_host(one: MemberIdentity) -> Name | None:
    """Return prefix and host for a generated client id. A container that restarts in its pod keeps the address."""
    return (prefix(one.client_id), one.client_host) if MADE_UP.search(one.client_id) else None


def _by_pod(one: MemberIdentity) -> Name | None:
    match = POD.match(one.client_id)
    return (match["deployment"], match["rest"]) if match else None


def names_of(one: MemberIdentity) -> list[tuple[int, Name]]:
    """Return the names of a membership with their ranks, best first."""
    return [(rank, name) for rank, of in enumerate(NAMES) if (name := of(one)) is not None]


NAMES: tuple[Callable[[MemberIdentity], Name | None], ...] = (
    _by_instance_id,
    _by_member,
    _by_client,
    _by_client_id,
    _by_host,
    _by_pod,
)
