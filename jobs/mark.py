"""`regroup mark`: record a deploy or another event, so that every time axis shows it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from jobs.config.errors import UserError
from jobs.kafka.events_topic import EventsTopic
from pipelines.coordinator_events import Unreadable
from pipelines.marks import mark, moment

if TYPE_CHECKING:
    import argparse

    from jobs.config.settings import Settings


def run(settings: Settings, args: argparse.Namespace) -> int:
    """Send one mark and return after the broker has acknowledged it. Needs only WRITE on the events topic.

    Raises:
        UserError: the text or the time is invalid, or the broker, the topic or the permission is missing.
    """
    cluster = settings.only(args.cluster)
    message = envelope(args.text, kind=args.kind, at=args.at, group=args.group, by=args.by)
    topic = EventsTopic(cluster, args.topic or cluster.events_topic)
    topic.send(message)
    topic.flush()
    return 0


def envelope(text: str, *, kind: str, at: str | None, group: str | None, by: str | None) -> dict[str, Any]:
    """Return the JSON object of a mark on the topic; `pipelines.marks` reads it.

    The object contains its timestamp, so that a mark sent twice counts once.

    Raises:
        UserError: the mark would be rejected when it is read.
    """
    body = {"source": "mark", "kind": "mark", "text": text, "mark_kind": kind, "at": int(time.time() * 1000)}
    try:
        body |= {"at": round(moment(at).timestamp() * 1000)} if at is not None else {}
    except ValueError as error:
        raise UserError(f"--at {error}.") from None
    body |= {name: value for name, value in (("group_id", group), ("marked_by", by)) if value}
    if isinstance(found := mark(body, None), Unreadable):
        raise UserError(f"Nothing was sent: {found.detail}.")
    return body
