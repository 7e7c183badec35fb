"""Log messages of coordinators and Connect workers to columns of `coordinator_events`."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from pipelines.line_matching import Template, listed
from schemas.coordinator_log import (
    NEW_WORDINGS,
    OLD_WORDINGS,
    WORKER_LOGGERS,
    WORKER_PREFIX,
    WORKER_WORDINGS,
    EventKind,
    Wording,
)
from schemas.coordinator_reasons import (
    CLIENT_REASON,
    FENCING_REASONS,
    LEAVE_REASONS,
    NOT_PROVIDED,
    REJOIN_REASONS,
    SERVER_REASONS,
)
from schemas.states import Trigger

if TYPE_CHECKING:
    from collections.abc import Iterable

NEW_PREFIX = re.compile(
    r"\[GroupCoordinator id=(?P<broker_id>\d{1,9})"
    r"(?: topic=__consumer_offsets partition=(?P<source_partition>\d{1,9}))?\] "
)
OLD_PREFIXES = {
    "GroupCoordinator": re.compile(r"\[GroupCoordinator (?P<broker_id>\d{1,9})\]: "),
    "GroupMetadataManager": re.compile(r"\[GroupMetadataManager brokerId=(?P<broker_id>\d{1,9})\] "),
}
"""Beginnings of the messages of the Java coordinator, and of the Scala coordinator by its logger."""

# A client id may contain the separator too. After this many separators, the text is not a known client reason.
_CLIENT_REASONS_TRIED = 8
_REFINED = {
    Trigger.MEMBER_LEFT: LEAVE_REASONS,
    Trigger.UNKNOWN: REJOIN_REASONS,
    Trigger.LEADER_REJOINED: REJOIN_REASONS,
}


class _Readers:
    """The wordings of one program, indexed by logger and first word. Every message begins with a fixed word."""

    def __init__(self, wordings: Iterable[Wording], prefix: str = "") -> None:
        self._readers: dict[tuple[str, str], list[tuple[str, Wording, Template]]] = defaultdict(list)
        for wording in wordings:
            template = Template(prefix + wording.text)
            self._readers[wording.logger, _first_word(template.text)].append((template.longest, wording, template))

    def read(self, logger: str, message: str) -> tuple[Wording, dict[str, Any]] | None:
        """Return the best match: longest fixed beginning, then longest group id, then most fixed text."""
        best, best_rank = None, (-1, -1, -1)
        for longest, wording, template in self._readers.get((logger, _first_word(message)), ()):
            # This check rules out most wordings without a function call.
            if longest in message and (values := template.read(message)) is not None:
                rank = (len(template.head), len(values.get("group_id", "")), template.fixed)
                if rank > best_rank:
                    best, best_rank = (wording, values), rank
        return best


_FIRST_WORD = re.compile(r"\[?\w*")


def _first_word(text: str) -> str:
    found = _FIRST_WORD.match(text)
    return found[0] if found else ""


_OLD = _Readers(OLD_WORDINGS)
_NEW = _Readers(NEW_WORDINGS)
_WORKER = _Readers(WORKER_WORDINGS, WORKER_PREFIX)
_WORKERS = frozenset(WORKER_LOGGERS.values())
_SERVER = [(Template(text).longest, Template(text), trigger) for text, trigger in SERVER_REASONS]
_FENCING = [(Template(text), trigger) for text, trigger in FENCING_REASONS]


def read_message(logger: str, printed: str, message: str) -> dict[str, Any] | None:
    """Return the columns that a message contains, or None unless prefix and message match one of Kafka's wordings.

    Args:
        logger: name of the class that printed the message.
        printed: logger as printed in the line. If it has no package, the prefix distinguishes the two coordinators.
        message: the message with its prefix.
    """
    prefix = NEW_PREFIX.match(message) if not printed.startswith("kafka.") else None
    if logger in _WORKERS:
        found = _WORKER.read(logger, message)
    elif prefix is not None:
        found = _NEW.read(logger, message[prefix.end() :])
    elif printed.startswith("org."):
        return None
    elif logger == "GroupMetadata":  # this logger prints no prefix
        found = _OLD.read(logger, message)
    else:
        prefix = OLD_PREFIXES[logger].match(message) if logger in OLD_PREFIXES else None
        found = _OLD.read(logger, message[prefix.end() :]) if prefix else None
    if found is None:
        return None
    wording, values = found
    if prefix is not None:
        values = {name: int(value) for name, value in prefix.groupdict().items() if value} | values
    return _columns(wording, values)


def _columns(wording: Wording, values: dict[str, Any]) -> dict[str, Any]:
    trigger = wording.trigger
    if wording.kind == EventKind.PREPARING:
        trigger, why = _why(values["reason"])
        values |= why
    elif wording.kind == EventKind.MEMBER_FENCED:
        # For streams members, 4.3 prints a reason that ends with a full stop.
        values["reason"] = values["reason"].removesuffix(".")
        for template, fencing in _FENCING:
            why_fenced = template.read(values["reason"])
            if why_fenced is not None:
                trigger = fencing
                values |= why_fenced
    elif wording.kind == EventKind.DELETED and ", " in values["group_id"]:
        values["group_id"] = None  # the line names several groups; each has its own tombstone
    if "client_reason" in values:
        values["client_reason"] = _provided(values["client_reason"])
        trigger = _refined(trigger, values["client_reason"])
    if "group_instance_id" in values:
        values["group_instance_id"] = _instance(values["group_instance_id"])
    if "member_ids" in values:
        values["member_ids"] = listed(values["member_ids"])
        if len(values["member_ids"]) == 1:
            values["member_id"] = values["member_ids"][0]
    return values | {"event_kind": wording.kind.value, "trigger": trigger.value if trigger else None}


def _why(reason: str) -> tuple[Trigger, dict[str, Any]]:
    """Return the trigger and the columns of a Preparing line's reason. An unknown wording has the trigger `unknown`."""
    end = reason.find(CLIENT_REASON)
    for _ in range(_CLIENT_REASONS_TRIED):
        body = reason if end < 0 else reason[:end]
        for longest, template, trigger in _SERVER:
            if longest in body and (values := template.read(body)) is not None:
                values["reason"] = body
                if end >= 0:
                    values["client_reason"] = reason[end + len(CLIENT_REASON) :]
                return trigger, values
        if end < 0:
            break
        end = reason.find(CLIENT_REASON, end + 1)
    body, has_client_reason, client_reason = reason.partition(CLIENT_REASON)
    return Trigger.UNKNOWN, {"reason": body} | ({"client_reason": client_reason} if has_client_reason else {})


def _provided(client_reason: str) -> str | None:
    return None if client_reason in ("", NOT_PROVIDED) else client_reason


def _refined(trigger: Trigger | None, client_reason: str | None) -> Trigger | None:
    for beginning, meaning in _REFINED.get(trigger, ()) if trigger and client_reason else ():
        if client_reason is not None and client_reason.startswith(beginning):
            return meaning
    return trigger


def _instance(text: str) -> str | None:
    """Return the instance id without Scala's Option or Java's null."""
    if text in ("None", "null", ""):
        return None
    return text[5:-1] if text.startswith("Some(") and text.endswith(")") else text
