"""`regroup mark`: announce a deploy or another event, so that every time axis shows it."""

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
    """Send one mark and return once the broker has it. Needs WRITE on the events topic and nothing else.

    Raises:
        UserError: the text or the time cannot be used, or the broker, the topic or the permission is missing.
    """
    cluster = settings.only(args.cluster)
    said = envelope(args.text, kind=args.kind, at=args.at, group=args.group, by=args.by)
    topic = EventsTopic(cluster, args.topic or cluster.events_topic)
    topic.send(said)
    topic.flush()
    return 0


def envelope(text: str, *, kind: str, at: str | None, group: str | None, by: str | None) -> dict[str, Any]:
    """What a mark looks like on the topic; `pipelines.marks` reads it. It states its time, so that a repeat is none.

    Raises:
        UserError: it would not be understood.
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
