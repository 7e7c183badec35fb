"""What the decoded blobs of a classic consumer show of the client library that wrote them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from schemas.states import UserDataLayout

Blob = Mapping[str, Any]
LAYOUTS = frozenset(UserDataLayout)
WITH_GENERATION = (UserDataLayout.JAVA_GENERATION, UserDataLayout.STICKY, UserDataLayout.STICKY_INT16)


class MemberShape(NamedTuple):
    """The form of a member's subscription and assignment, for those who recognise the library by it.

    Libraries differ in these points although the broker treats them alike; librdkafka, for example, sends an empty rack
    if none is configured, Java and franz-go send null.

    - `subscription_version`: version that the subscription begins with
    - `owned_partitions`: count of owned partitions; None if the subscription has no such field
    - `generation`: generation that the subscription names; None if it has no such field
    - `rack`: None if null or absent, "" if sent empty; absent before version 3
    - `user_data_layout`, `user_data_size`: layout and size in bytes; the size is None for null user data
    - `user_data_generation`: generation in the user data; None if there is none or it is not certain
    - `assignment_version`, `assignment_layout`, `assignment_size`: the same of the assignment, which the library of the
      leader wrote; None if the leader omitted the member

    Bodies that an earlier Regroup stored have no layouts and sizes: these are None, and so is `user_data_generation`.
    """

    subscription_version: int | None
    owned_partitions: int | None
    generation: int | None
    rack: str | None
    user_data_layout: UserDataLayout | None
    user_data_size: int | None
    user_data_generation: int | None
    assignment_version: int | None
    assignment_layout: UserDataLayout | None
    assignment_size: int | None


def member_shape(subscription: Blob, assignment: Blob) -> MemberShape | None:
    """Return the shape of a consumer from its decoded blobs (`member_blobs`).

    None for other members, and if the subscription could not be decoded.
    """
    if "ownedPartitions" not in subscription:
        return None
    owned, layout = subscription["ownedPartitions"], _layout(subscription)
    user_data = subscription.get("userData") if layout in WITH_GENERATION else None
    return MemberShape(
        subscription_version=subscription.get("version"),
        owned_partitions=None if owned is None else sum(map(len, owned.values())),
        generation=subscription.get("generationId"),
        rack=subscription.get("rackId"),
        user_data_layout=layout,
        user_data_size=subscription.get("userDataSize"),
        user_data_generation=user_data["generation"] if user_data else None,
        assignment_version=assignment.get("version"),
        assignment_layout=_layout(assignment),
        assignment_size=assignment.get("userDataSize"),
    )


def _layout(blob: Blob) -> UserDataLayout | None:
    """Return the layout; a name that a newer Regroup may have stored is `unknown`."""
    name = blob.get("userDataLayout")
    if name is None:
        return None
    return UserDataLayout(name) if name in LAYOUTS else UserDataLayout.UNKNOWN
