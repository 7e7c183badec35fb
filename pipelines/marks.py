"""Marks: events that people or CI announce (deploys, maintenance, incidents), from JSON to rows of `marks`.

Changes of pods that Kubernetes reported become rows of the same table.
"""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from pipelines.coordinator_events import Unreadable
from pipelines.decoding.record_times import EPOCH, LAST_MS, utc_datetime
from pipelines.kubernetes.mark_rows import pod_mark_rows
from pipelines.kubernetes.pod_facts import KIND
from schemas.gold import MARKS
from schemas.states import MarkKind, QuarantineReason

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ANNOUNCED = tuple(kind for kind in MarkKind if kind != MarkKind.KUBERNETES)
"""The kinds that people and CI may announce."""

LONGEST = 1_000
"""Maximum length of a text or a name, in characters."""

SECONDS, MILLISECONDS = (10**9, 10**11), (10**12, LAST_MS)
"""Ranges of numbers that are seconds or milliseconds since the epoch, from September 2001 on. Other numbers are
mistakes, for example 20261121.
"""


class Mark(NamedTuple):
    """One mark. If `group_id` is None, the mark applies to the whole cluster."""

    marked_at: datetime
    kind: MarkKind
    text: str
    group_id: str | None
    marked_by: str | None


def mark(body: Mapping[str, Any], received_at: datetime | None) -> Mark | Unreadable:
    """Return the mark in a JSON object, at `received_at` if the object has no time.

    A kind outside `ANNOUNCED` becomes `other`, and the text begins with that kind. One invalid field makes the whole
    mark unreadable, because an incomplete mark could point to the wrong cause.
    """
    try:
        kind, text = _kind(_word(body, "mark_kind") or MarkKind.OTHER, _word(body, "text"))
        at = moment(body["at"]) if body.get("at") is not None else received_at
        return Mark(at or EPOCH, kind, text, _word(body, "group_id") or None, _word(body, "marked_by") or None)
    except _RefusedError as why:
        return Unreadable(why.reason, str(why))


def moment(at: Any) -> datetime:
    """Return a time that a person wrote: ISO 8601 with a zone, or seconds or milliseconds since the epoch.

    Raises:
        ValueError: the value is no valid time; the message describes the accepted forms.
    """
    found = _written(at.strip()) if isinstance(at, str) else _counted(at)
    if found is None or found < EPOCH:
        raise _RefusedError(
            f"{str(at)[:60]!r} is not a valid time: write it with its zone (2026-11-21T12:01:40Z) "
            "or as milliseconds since 1970",
            QuarantineReason.INVALID_TIMESTAMP,
        )
    return found


def mark_rows(observations: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows of `marks` from rows of `admin_observations` (cluster, observed_at, kind, body), in any order.

    A mark that was announced more than once becomes one row, about all groups that were named. If one announcement
    named no group, the mark is about the whole cluster. So does a change of a pod that was reported more than once; its
    groups are not known here.
    """
    observations = list(observations)
    announced = [row for row in observations if row["kind"] != KIND]
    return _announced_rows(announced) + pod_mark_rows(row for row in observations if row["kind"] == KIND)


def _announced_rows(observations: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    by_mark: dict[tuple[Any, ...], list[Mark]] = defaultdict(list)
    for row in observations:
        found = mark(json.loads(row["body"]), row["observed_at"])
        if isinstance(found, Mark):
            by_mark[row["cluster"], found.marked_at, found.kind, found.text].append(found)
    return [
        dict.fromkeys(MARKS.names)
        | {
            "cluster": cluster,
            "marked_at": at,
            "kind": str(kind),
            "text": text,
            "group_id": groups[0] if len(groups := _groups(marks)) == 1 else None,
            "group_ids": groups,
            "marked_by": min((m.marked_by for m in marks if m.marked_by), default=None),
        }
        for (cluster, at, kind, text), marks in sorted(by_mark.items(), key=lambda item: item[0])
    ]


def _groups(marks: Iterable[Mark]) -> list[str]:
    """Return the groups that equal marks name; an empty list if one of them is about the whole cluster."""
    named = {m.group_id for m in marks}
    return sorted(group for group in named if group is not None) if None not in named else []


class _RefusedError(ValueError):
    def __init__(self, text: str, reason: QuarantineReason = QuarantineReason.INVALID_ENVELOPE) -> None:
        super().__init__(text)
        self.reason = reason


def _kind(kind: str, text: str | None) -> tuple[MarkKind, str]:
    if not text:
        raise _RefusedError("the mark has no text")
    known = next((k for k in ANNOUNCED if k == kind.lower()), None)
    return (known, text) if known else (MarkKind.OTHER, f"{kind}: {text}")


def _word(body: Mapping[str, Any], name: str) -> str | None:
    """Return a text field of a mark, or None if the field is absent.

    Raises:
        _RefusedError: the value is not text, or is too long.
    """
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise _RefusedError(f"{name} of the mark is not text")
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
        return utc_datetime(round(at * 1000))
    return utc_datetime(round(at)) if MILLISECONDS[0] <= at <= MILLISECONDS[1] else None
