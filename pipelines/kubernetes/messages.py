"""Recognition of Kubernetes JSON in a message or a log line, in the envelope of any sender.

Supported: an object, several in a row, pretty-printed or not, and lists (`kubectl get -o json`, with or without
`--output-watch-events`); the events of kubernetes-event-exporter; eventrouter; the OpenTelemetry Collector's receivers
`k8sobjects` and `k8s_events`, as OTLP/JSON or as the body alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from pipelines.coordinator_events import Unreadable
from pipelines.kubernetes.events import facts_of_event, is_event
from pipelines.kubernetes.log_records import facts_of_record, is_event_record, records
from pipelines.kubernetes.pod_facts import PodFact, RefusedFactError
from pipelines.kubernetes.pods import facts_of_pod
from pipelines.log_envelopes import LARGEST_MESSAGE, unwrap
from pipelines.otlp.values import plain
from schemas.json_depth import is_too_deep

DEEPEST_OBJECT = 128
"""Levels of lists and objects. In OTLP/JSON, each level of an object takes four, and a pod's affinity has about ten."""

MOST_OBJECTS = 10_000
"""Objects in a row in one message. A list may contain more."""

HINTS = ("involvedObject", "regarding", '"Pod', "k8s.event.reason")
BYTE_HINTS = tuple(hint.encode() for hint in HINTS)
_ENVELOPES = ("object", "event", "body")
_TEXTS = ("log", "message", "body")
_DEPTH = 4
_SPACES = re.compile(r"[ \t\r\n]*")


class KubernetesContent(NamedTuple):
    """The Kubernetes content of a text.

    `refused`: why objects could not be read. `rest`: the JSON of an OTLP batch without its records of Kubernetes, or
    None if the text contains nothing else.
    """

    facts: list[PodFact]
    refused: list[Unreadable]
    rest: str | None = None


def may_be_kubernetes(value: bytes | None) -> bool:
    """Return whether bytes may contain an object of Kubernetes, by a cheap check that excludes almost all others."""
    return value is not None and any(hint in value for hint in BYTE_HINTS)


def kubernetes(text: str) -> KubernetesContent | None:
    """Return the Kubernetes content of a message or line; None if there is none.

    Objects that end no pod are recognized without facts.
    """
    if text[:64].lstrip()[:1] not in ("{", "[") or not any(hint in text for hint in HINTS):
        return None
    found = KubernetesContent([], [])
    try:
        contents = _contents(text)
    except ValueError:
        return None
    is_known, rest = False, []
    for content in contents:
        known, left = _read(content, found)
        is_known |= known
        rest += left
    if not is_known:
        return None
    return found._replace(rest="\n".join(json.dumps(each) for each in rest) or None)


def facts_of_message(value: bytes | None) -> list[PodFact]:
    """Return the facts in a message: its own, or those of the lines in a log shipper's envelope."""
    if value is None or len(value) > LARGEST_MESSAGE or not may_be_kubernetes(value):
        return []
    if (found := kubernetes(value.decode("utf-8", "replace"))) is not None:
        return found.facts
    lines = unwrap(value)
    inner = [kubernetes(each.line) for each in lines] if isinstance(lines, list) else []
    return [fact for each in inner if each is not None for fact in each.facts]


def _contents(text: str) -> list[Any]:
    """Return the JSON values that a text contains one after another.

    Raises:
        ValueError: the text is broken JSON, nested too deeply, or has too many values.
    """
    decoder, at = json.JSONDecoder(), 0
    out: list[Any] = []
    while (at := _after_spaces(text, at)) < len(text):
        if len(out) == MOST_OBJECTS:
            raise ValueError
        try:
            content, at = decoder.raw_decode(text, at)
        except RecursionError:
            raise ValueError from None
        if is_too_deep(content, DEEPEST_OBJECT):
            raise ValueError
        out.append(content)
    return out


def _after_spaces(text: str, at: int) -> int:
    spaces = _SPACES.match(text, at)
    return at if spaces is None else spaces.end()


def _read(content: Any, found: KubernetesContent) -> tuple[bool, list[Any]]:
    """Add what a value shows, and return whether it is of Kubernetes and what else it contains."""
    if isinstance(content, dict) and isinstance(content.get("resourceLogs"), list):
        return _read_batch(content, found)
    objects = list(_objects(content, _DEPTH))
    for each in objects:
        try:
            found.facts.extend(facts_of_event(each) if is_event(each) else facts_of_pod(each))
        except RefusedFactError as why:
            found.refused.append(Unreadable(why.reason, str(why)))
    return bool(objects), []


def _read_batch(content: dict[str, Any], found: KubernetesContent) -> tuple[bool, list[Any]]:
    is_known = is_mixed = False
    for resource, listed, index in list(records(content)):
        record = listed[index]
        if not isinstance(record, dict):
            continue
        if is_event_record(record):
            try:
                found.facts.extend(facts_of_record(record, resource))
            except RefusedFactError as why:
                found.refused.append(Unreadable(why.reason, str(why)))
            known = True
        else:
            known, _ = _read(_body(record), found)
        is_known |= known
        is_mixed |= not known
        listed[index] = {} if known else record
    return is_known, [content] if is_known and is_mixed else []


def _body(record: dict[str, Any]) -> Any:
    """Return the body of a record: an object, or JSON as text."""
    body = plain(record.get("body"))
    return _inner(body) if isinstance(body, str) else body


def _objects(content: Any, depth: int) -> Iterator[dict[str, Any]]:
    """Yield the events and pods in a value: the value itself, items of lists, and the content of envelopes."""
    if isinstance(content, list):
        for each in content if depth else ():
            yield from _objects(each, depth - 1)
    if not isinstance(content, dict):
        return
    if is_event(content) or (content.get("kind") == "Pod" and isinstance(content.get("metadata"), dict)):
        yield content
    elif isinstance(content.get("items"), list) and str(content.get("kind")).endswith("List"):
        yield from _objects(content["items"], depth - 1) if depth else ()
    elif depth:
        inner = [content[name] for name in _ENVELOPES if isinstance(content.get(name), dict)]
        inner += [found for name in _TEXTS if (found := _inner(content.get(name))) is not None]
        if inner:
            yield from _objects(inner[0], depth - 1)


def _inner(text: Any) -> Any:
    """Return the object in a text of a log shipper's envelope; None if it is none of Kubernetes."""
    if not isinstance(text, str) or not text.startswith("{") or not any(hint in text for hint in HINTS):
        return None
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return None if is_too_deep(found, DEEPEST_OBJECT) else found
