"""Validation of the lines of a capture's `admin.jsonl`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pipelines.bounded_json import INT64, bounded_json
from pipelines.decoding.record_times import LAST_MS
from schemas.states import QuarantineReason

INT32 = range(-(2**31), 2**31)
NAME = range(32_768)
"""Valid lengths of a name: Kafka's strings have at most 32,767 bytes."""

BROKERS = [INT32]
MAYBE = "maybe"
"""Marks a field that may be absent or null."""

REPLICAS = {"topic": NAME, "partition": INT32, "replicas": BROKERS}
SHAPES: Mapping[str, Any] = {
    "reassignments": {"ongoing": [REPLICAS | {"adding": (MAYBE, BROKERS), "removing": (MAYBE, BROKERS)}]},
    "topic": {
        "topic": NAME,
        "topic_id": (MAYBE, NAME),
        "partitions": [
            {"partition": INT32, "replicas": BROKERS, "leader": (MAYBE, INT32), "isr": (MAYBE, BROKERS)},
        ],
    },
    "log_dirs": {
        "brokers": BROKERS,
        "replicas": [{"topic": NAME, "partition": INT32, "broker": INT32, "size": INT64, "future": (MAYBE, bool)}],
    },
    "end_offsets": {"topic": NAME, "ends": {int: INT64}},
    "topic_settings": {"topic": NAME, "settings": (MAYBE, {str: (MAYBE, str | int | float)})},
    "broker_settings": {"settings": (MAYBE, {str: (MAYBE, str | int | float)})},
}
"""The fields of each kind of observation that its readers use. A reader uses fields of one kind only.

A shape is a range of integers (`NAME`: a range of text lengths), a type, a list of one shape, an object with a shape
for each field, or an object with one shape for all fields. In the last case, the field names are text (`str`) or
numbers (`int`).
"""


class Refused(NamedTuple):
    """A line that goes to `quarantine`; `raw` is the text that is kept."""

    reason: QuarantineReason
    detail: str
    raw: str


def observation(text: str) -> dict[str, Any] | Refused:
    """Return the observation in one line of `admin.jsonl` with validated fields, or `Refused` with the reason."""
    try:
        body = bounded_json(text)
    except ValueError as error:
        return Refused(QuarantineReason.INVALID_ENVELOPE, f"broken JSON: {error}", text)
    if not isinstance(body, dict):
        return Refused(QuarantineReason.INVALID_ENVELOPE, "it is not a JSON object", text)
    at = body.get("observed_at_ms", 0)
    if isinstance(at, bool) or not isinstance(at, int | float) or not 0 <= at <= LAST_MS:
        return Refused(QuarantineReason.INVALID_TIMESTAMP, f"observed_at_ms is not a valid time: {str(at)[:60]}", text)
    for name in ("kind", "source", "group_id", "topic"):
        if body.get(name) is not None and not _fits(body[name], NAME):
            return Refused(QuarantineReason.INVALID_VALUE, f"{name} is not a valid name", text)
    if not _fits(body, SHAPES.get(str(body.get("kind")), {})):
        return Refused(QuarantineReason.INVALID_VALUE, f"a field of the kind {body['kind']} is missing or wrong", text)
    return body


def _fits(value: Any, shape: Any) -> bool:
    match shape:
        case range() if shape is NAME:
            return isinstance(value, str) and len(value) in shape
        case range():
            return isinstance(value, int) and not isinstance(value, bool) and value in shape
        case (_, inner):
            return value is None or _fits(value, inner)
        case [inner]:
            return isinstance(value, list) and all(_fits(each, inner) for each in value)
        case dict():
            return isinstance(value, dict) and _fields_fit(value, shape)
        case _:
            return isinstance(value, shape)


def _fields_fit(value: Mapping[str, Any], shape: Mapping[Any, Any]) -> bool:
    if str in shape:
        return all(_fits(each, shape[str]) for each in value.values())
    if int in shape:
        return all(_is_number(name) and _fits(each, shape[int]) for name, each in value.items())
    return all(_fits(value.get(name), inner) for name, inner in shape.items())


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 11 and int(text) in INT32
