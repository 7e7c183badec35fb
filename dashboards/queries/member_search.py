"""Groups by what their members show: host, client id, instance id, member id or topic, newest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from dashboards.lake.lake import Lake, Parameter, Row, moment
from dashboards.queries.fleet_queries import SHORT
from dashboards.queries.gold_store import DAY_MS

SEARCHED_MS = 7 * DAY_MS
"""Members that were in a group within this time before the newest record are searched."""

LEAST = 3
"""Characters from which members are searched: fewer are in nearly every name."""

FOUND_ROWS = 200
TEXTS = ("client_host", "group_instance_id", "client_id", "member_id")
WORDS = {
    "client_host": "host",
    "group_instance_id": "instance",
    "client_id": "client id",
    "member_id": "member",
    "topic": "topic",
}
NEWEST = "SELECT max(last_record_at) AS at FROM groups LIMIT $cap"
MATCHES = " OR ".join(f"contains(lower({name}), lower($typed))" for name in TEXTS)
TOPICS = "coalesce(array_to_string(subscribed_topics, chr(10)), '')"
FOUND = f"""
SELECT cluster, {SHORT} AS group_id, client_host, group_instance_id, client_id,
       max(CASE WHEN contains(lower(member_id), lower($typed)) THEN member_id END) AS member_id,
       {TOPICS} AS topics, max(valid_from_at) AS seen_at
FROM generation_members
WHERE (valid_to_at IS NULL OR valid_to_at >= $start)
  AND ({MATCHES} OR contains(lower({TOPICS}), lower($typed)))
GROUP BY cluster, {SHORT}, client_host, group_instance_id, client_id, {TOPICS}
ORDER BY seen_at DESC, cluster, group_id, client_id, client_host LIMIT $cap
"""  # noqa: S608 - our own names


class MemberHit(NamedTuple):
    """A group with what was found of it: `kind` is a word such as host, and `value` the whole text."""

    kind: str
    value: str
    group: str
    cluster: str


def member_hits(lake: Lake, typed: str) -> list[MemberHit]:
    """Return the groups whose members contain the typed text, of the newest first; none for fewer than `LEAST` letters.

    Raises:
        LakeError: the tables cannot be read.
    """
    wanted = typed.strip()
    if len(wanted) < LEAST:
        return []
    newest = lake.query(NEWEST, ("groups",), 1, {}).rows
    if not newest or newest[0]["at"] is None:
        return []
    start = moment(newest[0]["at"] - SEARCHED_MS)
    parameters: dict[str, Parameter] = {"typed": wanted, "start": start}
    rows = lake.query(FOUND, {"generation_members": (start, None)}, FOUND_ROWS, parameters).rows
    return list(dict.fromkeys(_hits(rows, wanted.lower())))


def _hits(rows: Iterable[Row], wanted: str) -> Iterator[MemberHit]:
    for row in rows:
        texts = [(name, row[name]) for name in TEXTS] + [("topic", topic) for topic in row["topics"].split("\n")]
        for name, text in texts:
            if text is not None and wanted in text.lower():
                yield MemberHit(WORDS[name], text, row["group_id"], row["cluster"])
                # An id contains the client id, so one match says enough of a member.
                break
