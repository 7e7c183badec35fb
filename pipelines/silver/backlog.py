"""Whether records waited while a departed member's resources had no owner, from the next owner's first commits.

An idle member commits nothing new, which looks like a member whose handler is blocked. If records waited, the next
owner's first commits soon make progress. If there were none, nothing was lost by the silence.
"""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.silver.generations import Generation
from pipelines.silver.history import CommitHistory, Position, Resource

SOON_MS = 10_000
"""Milliseconds after an assignment within which a consumer with work commits: twice the default auto.commit.interval.ms
of Java, librdkafka and franz-go."""

END: Position = (1 << 31, 1 << 62)


def has_backlog(
    resources: Iterable[Resource], since: Position, g: Generation, following: Generation | None, commits: CommitHistory
) -> bool | None:
    """Return whether records waited for the next owner of these resources, or None if nothing shows it.

    Args:
        resources: what the departed member had.
        since: position of the record that gave them to it.
        g: the generation in which they have another owner.
        following: the generation after `g`, if any.
        commits: the group's commits.
    """
    end = END if following is None else following.position
    for resource in resources:
        before, first = commits.segment(resource, since, g.position), commits.first(resource, g.position, end)
        is_soon = first is not None and first.at - g.synced_at <= SOON_MS
        if before is not None and first is not None and is_soon and first.committed > before.last.committed:
            return True
    has_time = following is None or following.joined_at - g.synced_at > SOON_MS
    return False if has_time else None
