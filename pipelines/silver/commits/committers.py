"""The client library of a member, as far as the metadata of its offset commits shows it.

franz-go writes the member's own id into each commit, brod its node and process, which are also its default client.id
and group.instance.id. Applications may write any metadata. So it counts only if it names the member that owned the
partition when the commit came, and it is inferred.
"""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.silver.client_library import Recognized
from pipelines.silver.generations import Generation, Member
from pipelines.silver.history import CommitHistory, Position
from schemas.states import ClientLibrary, Evidence, LibrarySign

QUOTES = str.maketrans("", "", "'")
"""Erlang puts a node in quotes in some of its texts."""


def by_commits(g: Generation, following: Generation | None, commits: CommitHistory) -> dict[str, ClientLibrary]:
    """Return by member id the libraries that the last commits of the members show.

    These are the commits in the previous generation, and those in `g` if it is over: while more may follow, the result
    would depend on when it is asked for.
    """
    return {
        member.member_id: library
        for of, after, before in _spans(g, following)
        for member in of.final_members.values()
        if (library := _shown(member, commits, after, before)) is not None
    }


def with_commits(found: Recognized, library: ClientLibrary) -> Recognized:
    """Return the library of a member whose commits show this one.

    A library that is observed, or that the group's protocol shows, counts more; client ids, timeouts and other members
    count less.
    """
    is_shown = found.evidence == Evidence.OBSERVED or found.sign == LibrarySign.PROTOCOL
    if is_shown or (found.library == library and found.sign != LibrarySign.GROUP):
        return found
    return Recognized(library, Evidence.INFERRED, LibrarySign.COMMIT)


def _spans(g: Generation, following: Generation | None) -> Iterator[tuple[Generation, Position, Position]]:
    if g.previous is not None:
        yield g.previous, g.previous.position, g.position
    if following is not None:
        yield g, g.position, following.position


def _shown(member: Member, commits: CommitHistory, after: Position, before: Position) -> ClientLibrary | None:
    for resource in member.assigned:
        named = commits.last_committer(resource, after, before)
        if named == member.member_id:
            return ClientLibrary.FRANZ_GO
        if named is not None and named.translate(QUOTES) in _names(member):
            return ClientLibrary.BROD
    return None


def _names(member: Member) -> set[str]:
    return {name.translate(QUOTES) for name in (member.client_id, member.group_instance_id) if name}
