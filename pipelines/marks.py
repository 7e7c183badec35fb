"""Marks: what people or their CI announce (deploys, maintenance, incidents), from JSON to rows of `marks`."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from pipelines.coordinator_events import Unreadable
from pipelines.decoding.record_times import EPOCH, LAST_MS, instant
from schemas.states import MarkKind, QuarantineReason

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LONGEST = 1_000
"""Characters of a text, and of a name."""

SECONDS, MILLISECONDS = (10**9, 10**11), (10**12, LAST_MS)
"""Numbers that are seconds, and milliseconds, since the epoch, from September 2001 on; others are slips (20261121)."""


class Mark(NamedTuple):
    """`group_id` None: the whole cluster."""

    marked_at: datetime
    kind: MarkKind
    text: str
    group_id: str | None
    marked_by: str | None


def mark(body: Mapping[str, Any], received_at: datetime | None) -> Mark | Unreadable:
    """The mark that an object announces, `received_at` if it does not say when.

    A kind that is none of `MarkKind` becomes `other`, and the text begins with it. A field that is not understood
    makes the whole unreadable: half a mark would accuse the wrong thing.
    """
    try:
        kind, text = _kind(_word(body, "mark_kind") or MarkKind.OTHER, _word(body, "text"))
        at = moment(body["at"]) if body.get("at") is not None else received_at
        return Mark(at or EPOCH, kind, text, _word(body, "group_id") or None, _word(body, "marked_by") or None)
    except _RefusedError as why:
        return Unreadable(why.reason, str(why))


def moment(at: Any) -> datetime:
    """An instant as people write it: ISO 8601 with its zone, or seconds or milliseconds since the epoch.

    Raises:
        ValueError: it is none; the message says so.
    """
    found = _written(at.strip()) if isinstance(at, str) else _counted(at)
    if found is None or found < EPOCH:
        raise _RefusedError(
            f"{str(at)[:60]!r} is no time: write it with its zone (2026-11-21T12:01:40Z) or as milliseconds since 1970",
            QuarantineReason.INVALID_TIMESTAMP,
        )
    return found


def mark_rows(observations: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of `marks` out of rows of `admin_observations` (cluster, observed_at, kind, body); order does not matter.

    What was announced more than once is one row. Named for several groups, it is about no single one.
    """
    said: dict[tuple[Any, ...], list[Mark]] = defaultdict(list)
    for row in observations:
        found = mark(json.loads(row["body"]), row["observed_at"])
        if isinstance(found, Mark):
            said[row["cluster"], found.marked_at, found.kind, found.text].append(found)
    return [
        {
            "cluster": cluster,
            "marked_at": at,
            "kind": str(kind),
            "text": text,
            "group_id": marks[0].group_id if len({m.group_id for m in marks}) == 1 else None,
            "marked_by": min((m.marked_by for m in marks if m.marked_by), default=None),
        }
        for (cluster, at, kind, text), marks in sorted(said.items(), key=lambda item: item[0])
    ]


class _RefusedError(ValueError):
    def __init__(self, text: str, reason: QuarantineReason = QuarantineReason.INVALID_ENVELOPE) -> None:
        super().__init__(text)
        self.reason = reason


def _kind(kind: str, text: str | None) -> tuple[MarkKind, str]:
    if not text:
        raise _RefusedError("the mark has no text")
    known = next((k for k in MarkKind if k == kind.lower()), None)
    return (known, text) if known else (MarkKind.OTHER, f"{kind}: {text}")


def _word(body: Mapping[str, Any], name: str) -> str | None:
    """None where it is not said."""
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise _RefusedError(f"{name} of the mark is no text")
    if len(value) > LONGEST:
        raise _RefusedError(f"{name} of the mark has more than {LONGEST:,} characters", QuarantineReason.OVERSIZED)
    return value if name == "group_id" else value.strip()


def _written(at: str) -> datetime | None:
    if at.isascii() and at.isdigit():
        return _counted(int(at[:20]))
    try:
        found = datetime.fromisoformat(at)
        return found.astimezone(UTC).replace(microsecond=found.microsecond // 1000 * 1000) if found.tzinfo else None
    except (ValueError, OverflowError):
        return None


def _counted(at: Any) -> datetime | None:
    if not isinstance(at, int | float) or isinstance(at, bool):
        return None
    if SECONDS[0] <= at < SECONDS[1]:
        return instant(round(at * 1000))
    return instant(round(at)) if MILLISECONDS[0] <= at <= MILLISECONDS[1] else None
