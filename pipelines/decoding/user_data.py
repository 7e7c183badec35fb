"""Decoders for the user data that an assignor adds to a consumer's subscription or assignment.

Clients write different layouts under the same assignor name, and no field names the layout. So every layout that is
documented for the name is tried (`schemas.member_blobs`). A layout fits if it takes exactly all bytes and its values
are possible: counts are not negative, names are UTF-8, partitions are at least 0 and generations at least -1. If
exactly one layout fits, the content is read in it. If several fit, the layout is `ambiguous` and no generation is
taken. If none fits, the layout is `unknown`. User data never makes the blob around it unreadable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pipelines.decoding.blob_fields import INT16, INT32, Blob, Field, compiled, with_nulls
from pipelines.decoding.wire import WireError
from schemas import member_blobs as facts
from schemas.states import QuarantineReason, UserDataLayout

Read = Callable[[bytes], Blob]
"""Reads all bytes in one layout. Raises only `WireError`, also for bytes left over and impossible values."""


class UserData(NamedTuple):
    """User data, its layout and its fields. `content` is None for the layouts `empty` and `unknown`.

    `reason` is why the first documented layout does not fit; None unless the layout is `unknown` and one is documented.
    """

    layout: UserDataLayout
    content: Blob | None = None
    reason: QuarantineReason | None = None


def subscription_user_data(raw: bytes | None, assignor: str | None) -> UserData:
    """Return the user data of a subscription for this assignor."""
    return _user_data(raw, facts.SUBSCRIPTION_LAYOUTS.get(assignor, ()), _SUBSCRIPTION_READERS)


def assignment_user_data(raw: bytes | None, assignor: str | None) -> UserData:
    """Return the user data of an assignment that this assignor made."""
    return _user_data(raw, facts.ASSIGNMENT_LAYOUTS.get(assignor, ()), _ASSIGNMENT_READERS)


def _user_data(
    raw: bytes | None, documented: Sequence[UserDataLayout], readers: dict[UserDataLayout, Read]
) -> UserData:
    if not raw:
        return UserData(UserDataLayout.EMPTY)
    fitting: list[UserData] = []
    reason: QuarantineReason | None = None
    for layout in documented:
        try:
            fitting.append(UserData(layout, readers[layout](raw)))
        except WireError as error:
            reason = reason or error.reason
    match fitting:
        case []:
            return UserData(UserDataLayout.UNKNOWN, reason=reason)
        case [found]:
            return found
        case _:
            return UserData(UserDataLayout.AMBIGUOUS, {"generation": None})


# --- sticky and cooperative-sticky, rack-affinity --------------------------------------------------------------------

_STICKY, _COOPERATIVE = compiled(facts.STICKY_USER_DATA), compiled(facts.COOPERATIVE_STICKY_USER_DATA)


def _exactly(raw: bytes, position: int, fields: list[Field]) -> Blob:
    """Return the fields, which must end at the last byte and have possible values."""
    out, end = with_nulls(raw, position, fields, 1)
    if end != len(raw):
        raise WireError(QuarantineReason.TRAILING_BYTES, f"{len(raw) - end} bytes after the last field of user data")
    generation, partitions = out["generation"], out.get("previousAssignment", {}).values()
    if generation is not None and generation < facts.NO_GENERATION:
        raise WireError(QuarantineReason.INVALID_VALUE, f"generation {generation}")
    if any(min(numbers, default=0) < 0 for numbers in partitions):
        raise WireError(QuarantineReason.INVALID_VALUE, "a negative partition")
    return out


def _sticky_int16(raw: bytes) -> Blob:
    version, position = INT16(raw, 0)
    if version != facts.STICKY_INT16_VERSION:
        raise WireError(QuarantineReason.UNKNOWN_VERSION, f"sticky user data version {version}")
    out = _exactly(raw, position, _STICKY)
    if out["generation"] is None:
        raise WireError(QuarantineReason.TRUNCATED, "no generation after the previous assignment")
    return {"version": version} | out


def _rack(raw: bytes) -> Blob:
    try:
        return {"rack": raw.decode()}
    except UnicodeDecodeError:
        raise WireError(QuarantineReason.INVALID_UTF8, "the rack is not UTF-8") from None


# --- Kafka Streams ---------------------------------------------------------------------------------------------------

_STREAMS_SUBSCRIPTION = compiled(facts.STREAMS_SUBSCRIPTION)
_STREAMS_ASSIGNMENT = compiled(facts.STREAMS_ASSIGNMENT)
_STREAMS_ASSIGNMENT_END = compiled(facts.STREAMS_ASSIGNMENT_END)


def _streams(raw: bytes, fields: list[Field]) -> tuple[Blob, int]:
    """Return the fields of this version and the position after them."""
    version, position = INT32(raw, 0)
    if not 1 <= version <= facts.STREAMS_NEWEST:
        raise WireError(QuarantineReason.UNKNOWN_VERSION, f"Streams user data version {version}")
    out: Blob = {"version": version}
    for name, read, since, until in fields:
        if since <= version <= until:
            out[name], position = read(raw, position)
    return out, position


def _streams_subscription(raw: bytes) -> Blob:
    out, _ = _streams(raw, _STREAMS_SUBSCRIPTION)
    if "userEndPoint" in out:
        out["userEndPoint"] = out["userEndPoint"].decode(errors="replace")
    for tag in out.get("clientTags", ()):
        tag.update({name: text.decode(errors="replace") for name, text in tag.items()})
    return out


def _streams_assignment(raw: bytes) -> Blob:
    out, position = _streams(raw, _STREAMS_ASSIGNMENT)
    sizes = {"errorCode": 4, "nextRebalanceMs": 8}
    present = [field for field in _STREAMS_ASSIGNMENT_END if field[2] <= out["version"]]
    end = len(raw) - sum(sizes[name] for name, *_ in present)
    if end < position:
        raise WireError(QuarantineReason.TRUNCATED, f"{len(raw) - position} bytes left for the end of an assignment")
    for name, read, *_ in present:
        out[name], end = read(raw, end)
    return out


_STICKY_READERS: dict[UserDataLayout, Read] = {
    UserDataLayout.STICKY: lambda raw: _exactly(raw, 0, _STICKY),
    UserDataLayout.STICKY_INT16: _sticky_int16,
    UserDataLayout.JAVA_GENERATION: lambda raw: _exactly(raw, 0, _COOPERATIVE),
    UserDataLayout.RACK: _rack,
}
_SUBSCRIPTION_READERS = _STICKY_READERS | {UserDataLayout.STREAMS: _streams_subscription}
_ASSIGNMENT_READERS = _STICKY_READERS | {UserDataLayout.STREAMS: _streams_assignment}
