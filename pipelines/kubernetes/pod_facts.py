"""Changes of pods and nodes: the fields that are kept of them, and their checks.

Only these fields of an object are stored. A pod's environment, annotations and commands may contain secrets.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, NamedTuple

from pipelines.coordinator_events import Unreadable
from pipelines.decoding.record_times import EPOCH, utc_datetime
from schemas.states import PodChange, QuarantineReason

if TYPE_CHECKING:
    from collections.abc import Mapping

KIND = "kubernetes"
"""The kind of these rows in `admin_observations`."""

LONGEST_DETAIL = 200
MOST_ADDRESSES = 16
"""Kubernetes gives a pod one address for each address family."""

# Names of objects are DNS names of at most 253 characters; ids use the same characters.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,252}")
_WORKLOAD = re.compile(r"[A-Za-z0-9]{1,63}/[A-Za-z0-9][A-Za-z0-9._:-]{0,252}")


class RefusedFactError(ValueError):
    """A field of a Kubernetes object is missing or wrong. The message says which."""

    def __init__(self, text: str, reason: QuarantineReason = QuarantineReason.INVALID_ENVELOPE) -> None:
        super().__init__(text)
        self.reason = reason


class PodFact(NamedTuple):
    """One change of a pod or, if `pod` is empty, of a node. `addresses` are those of the pod in the same object."""

    at: datetime
    change: PodChange
    namespace: str = ""
    pod: str = ""
    uid: str | None = None
    addresses: tuple[str, ...] = ()
    node: str | None = None
    container: str | None = None
    workload: str | None = None
    is_host_network: bool | None = None
    detail: str | None = None

    @property
    def body(self) -> dict[str, Any]:
        """The fact as the JSON object of a row of `admin_observations`; `fact` reads it."""
        found = self._asdict() | {"at": round(self.at.timestamp() * 1000), "change": str(self.change)}
        found["addresses"] = list(self.addresses)
        kept = {name: value for name, value in found.items() if value not in (None, "", [])}
        return {"kind": KIND, "source": KIND, **kept}


def fact(body: Mapping[str, Any]) -> PodFact | Unreadable:
    """Return the fact in the JSON object of a row of `admin_observations`, or why it is none."""
    at = body.get("at")
    found = utc_datetime(at) if isinstance(at, int) and not isinstance(at, bool) else None
    if found is None or found < EPOCH:
        return Unreadable(QuarantineReason.INVALID_TIMESTAMP, "at is not a time in milliseconds")
    change = next((each for each in PodChange if each == body.get("change")), None)
    if change is None:
        return Unreadable(QuarantineReason.INVALID_ENVELOPE, "change is not a known change of a pod")
    is_host_network = body.get("is_host_network")
    try:
        return checked(
            PodFact(
                at=found,
                change=change,
                namespace=name_in(body, "namespace") or "",
                pod=name_in(body, "pod") or "",
                uid=name_in(body, "uid"),
                addresses=addresses(body.get("addresses") or []),
                node=name_in(body, "node"),
                container=name_in(body, "container"),
                workload=_workload(body.get("workload")),
                is_host_network=is_host_network if isinstance(is_host_network, bool) else None,
                detail=text_in(body, "detail"),
            )
        )
    except RefusedFactError as why:
        return Unreadable(why.reason, str(why))


def checked(found: PodFact) -> PodFact:
    """Return the fact if it names a pod, or a node that changed itself.

    Raises:
        RefusedFactError: it names neither.
    """
    if not found.pod and not (found.node and found.change == PodChange.NODE_LOST):
        raise RefusedFactError("the object names no pod")
    return found


def name_in(body: Mapping[str, Any], field: str) -> str | None:
    """Return a name, or None if it is absent or empty.

    Raises:
        RefusedFactError: the value is no name of Kubernetes.
    """
    value = body.get(field)
    if value is None or value == "":
        return None
    if not isinstance(value, str) or _NAME.fullmatch(value) is None:
        raise RefusedFactError(f"{field} is not a name of Kubernetes")
    return value


def _workload(value: Any) -> str | None:
    if value is None or (isinstance(value, str) and _WORKLOAD.fullmatch(value)):
        return value
    raise RefusedFactError("workload is not a kind and a name of Kubernetes")


def text_in(body: Mapping[str, Any], field: str) -> str | None:
    """Return the beginning of a text, or None if it is absent or not text."""
    value = body.get(field)
    if not isinstance(value, str) or not value.strip():
        return None
    return value.strip()[:LONGEST_DETAIL].encode("utf-8", "replace").decode()


def addresses(values: Any) -> tuple[str, ...]:
    """Return IP addresses in their shortest form, sorted.

    Raises:
        RefusedFactError: one of them is no IP address, or there are too many.
    """
    if not isinstance(values, list) or len(values) > MOST_ADDRESSES:
        raise RefusedFactError("the addresses of the pod are not a short list")
    try:
        return tuple(sorted({str(ip_address(value)) for value in values if value not in (None, "")}))
    except ValueError:
        raise RefusedFactError("an address of the pod is not an IP address") from None


def time_of(value: Any) -> datetime | None:
    """Return a time of the Kubernetes API (RFC 3339, with seconds or microseconds), or None if it is absent.

    Raises:
        RefusedFactError: the value is no such time.
    """
    if value is None or value == "":
        return None
    found = None
    if isinstance(value, str) and len(value) <= 40:
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            found = None
    if found is None or found.tzinfo is None:
        raise RefusedFactError("a time of the object is not a time with its zone", QuarantineReason.INVALID_TIMESTAMP)
    try:
        at = found.astimezone(UTC)
    except OverflowError:
        at = EPOCH
    # Go writes the zero time as the year 1.
    return at.replace(microsecond=at.microsecond // 1000 * 1000) if at > EPOCH else None
