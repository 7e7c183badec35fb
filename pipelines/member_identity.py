"""The identity of a group member, as all parts of the pipeline read it."""

from __future__ import annotations

from typing import Protocol


class MemberIdentity(Protocol):
    """The identity of a member, as records of both protocols contain it."""

    @property
    def member_id(self) -> str: ...
    @property
    def group_instance_id(self) -> str | None: ...
    @property
    def client_id(self) -> str: ...
    @property
    def client_host(self) -> str: ...
