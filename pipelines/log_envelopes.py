"""The content of a message on the events topic: log lines in any shipper's envelope, or a message of Regroup's own.

Supported envelopes: none; Filebeat, Fluent Bit, Vector and container runtimes (`message`, `log`); OpenTelemetry
(`body`, also OTLP/JSON batches); the systemd journal (`MESSAGE`); the unchanged original (`event.original`); log4j2's
JsonLayout and JsonTemplateLayout (ECS, Logstash, GELF, Google Cloud and its own). The parts of a log4j2 event are
joined to a line in Kafka's default layout, in UTC.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any, NamedTuple

from pipelines.coordinator_events import Unreadable
from schemas.json_depth import DEEPEST_JSON, is_too_deep
from schemas.states import QuarantineReason

OWN_KINDS = frozenset({"log", "admin", "mark"})
_LINE = ("event.original", "message", "log", "body", "body.stringValue", "short_message", "MESSAGE", "body.MESSAGE")
_LOGGER = ("log.logger", "loggerName", "logger_name", "logger", "_logger")
_LEVEL = ("log.level", "level", "severity")
_TIME = ("@timestamp", "timestamp", "timeMillis", "time")
# Microseconds, which journalctl prints as text: when the program sent the line, and when the journal received it.
_JOURNAL_TIME = ("_SOURCE_REALTIME_TIMESTAMP", "__REALTIME_TIMESTAMP")
_MICROS = re.compile(r"[1-9]\d{15}", re.ASCII)
_BROKER = tuple(
    place + name
    for place in ("", "fields.", "labels.", "attributes.")
    for name in ("broker_id", "broker.id", "brokerId")
)
_LOG4J_LEVEL = re.compile(r"[A-Z]{4,5}")
# GcpLayout.json of log4j2 renames levels so.
_RENAMED_LEVELS = {"WARNING": "WARN", "EMERGENCY": "FATAL"}
_OWN_TIME = re.compile(r"\[?\d{4}-\d\d-\d\d[ T]")
# Numbers below the first limit count seconds, below the second one milliseconds, and so on; each limit is in 5138.
# Larger numbers are not a time. JSON can also contain NaN and Infinity.
_UNITS_PER_SECOND = ((10**11, 1), (10**14, 10**3), (10**17, 10**6), (10**20, 10**9))
# A shipper may wrap a message that a JSON layout or a container runtime has wrapped.
_DEPTH = 4

LARGEST_MESSAGE = 4_194_304
"""Default limit in bytes of a message: four times Kafka's default maximum, because shippers send batches."""


class LogLine(NamedTuple):
    """One log line. If `layout` or `zone` is None, the setting of its source applies."""

    line: str
    broker_id: int | None = None
    layout: str | None = None
    zone: str | None = None


class Observation(NamedTuple):
    """A message of Regroup's own that is not a log line: `kind` is admin or mark, `body` is the whole envelope."""

    kind: str
    body: dict[str, Any]


def unwrap(
    value: bytes | None, broker_id: int | None = None, *, largest: int = LARGEST_MESSAGE
) -> list[LogLine] | Observation | Unreadable:
    """Return the content of one message. A broker id in its envelope takes precedence over `broker_id`.

    Text that does not look like JSON is a line. JSON is `Unreadable` if it is broken, nested too deeply or contains no
    line. A message of more than `largest` bytes is `Unreadable` too.
    """
    if value is None:
        return Unreadable(QuarantineReason.INVALID_ENVELOPE, "the message has no value")
    if len(value) > largest:
        return Unreadable(QuarantineReason.OVERSIZED, f"the message has {len(value):,} bytes; the limit is {largest:,}")
    text = value.decode("utf-8-sig", "replace")
    try:
        return _content(text, broker_id) if _is_json(text) else _split(text, broker_id)
    except _TooDeepError:
        why = f"lists and objects are nested more than {DEEPEST_JSON} levels deep"
        return Unreadable(QuarantineReason.INVALID_ENVELOPE, why)
    except ValueError as error:
        return Unreadable(QuarantineReason.INVALID_ENVELOPE, f"broken JSON: {error}"[:200])


def _content(text: str, broker_id: int | None) -> list[LogLine] | Observation | Unreadable:
    content = _loaded(text)
    if isinstance(content, dict) and _is_own(content):
        return _own(content, broker_id)
    lines = _lines(content, broker_id, _DEPTH)
    why = "no log line in event.original, message, log, body or MESSAGE"
    return lines or Unreadable(QuarantineReason.INVALID_ENVELOPE, why)


def lines_of_json(text: str, at: str | None = None) -> list[LogLine]:
    """Return the log lines in one line of a log file that may be JSON, or an empty list.

    The JSON is an event of a JSON layout or an entry of Docker's json-file. Messages of Regroup's own have no meaning
    here. `at` is the time of an event without a time of its own.
    """
    try:
        content = _loaded(text) if _is_json(text) else None
    except (_TooDeepError, ValueError):
        return []
    return _lines(_timed(content, at), None, _DEPTH)


class _TooDeepError(Exception):
    pass


def _loaded(text: str) -> Any:
    """Return decoded JSON that later steps can traverse and encode again.

    Raises:
        ValueError: the JSON is broken.
        _TooDeepError: it is nested too deeply.
    """
    try:
        content = json.loads(text)
    except RecursionError:
        raise _TooDeepError from None
    if text.count("{") + text.count("[") > DEEPEST_JSON and is_too_deep(content):
        raise _TooDeepError
    if "\\ud" in text.lower():
        # JSON can contain half of a surrogate pair, which a table cannot store.
        content = json.loads(json.dumps(content, ensure_ascii=False).encode("utf-8", "replace"))
    return content


def _is_own(content: dict[str, Any]) -> bool:
    """Return whether this is a message of Regroup.

    People write marks by hand, so `kind` and `text` are enough for one.
    """
    kind = _text(content.get("kind"))
    return (kind in OWN_KINDS and {"source", "at"} <= content.keys()) or (kind == "mark" and "text" in content)


def _is_json(text: str) -> bool:
    """Return whether the text looks like a JSON object or a list of objects.

    Kafka's default layout begins with a bracket.
    """
    start = text.lstrip()[:32]
    return start.startswith("{") or start.replace(" ", "").startswith("[{")


def _split(text: str, broker_id: int | None) -> list[LogLine]:
    return [LogLine(line.removesuffix("\r"), broker_id) for line in text.split("\n") if line.strip()]


def _own(content: dict[str, Any], broker_id: int | None) -> list[LogLine] | Observation | Unreadable:
    if content["kind"] != "log":
        return Observation(content["kind"], content)
    if content.get("is_oversized"):
        return Unreadable(QuarantineReason.OVERSIZED, f"line {content.get('line_no')} of {content.get('file')}"[:200])
    line = content.get("line")
    if not isinstance(line, str):
        return Unreadable(QuarantineReason.INVALID_ENVELOPE, "kind is log, but line is missing or not text")
    return [LogLine(line, _broker(content, broker_id), _text(content.get("layout")), _text(content.get("zone")))]


def _lines(content: Any, broker_id: int | None, depth: int) -> list[LogLine]:
    """Return every log line in a shipper's JSON, or an empty list."""
    if isinstance(content, list):
        return [line for item in content for line in _lines(item, broker_id, depth)]
    if not isinstance(content, dict):
        return []
    if isinstance(content.get("resourceLogs"), list):
        return _lines(_otlp(content), broker_id, depth)
    text = _first_text(content, _LINE) or _of_bytes(content.get("MESSAGE"))
    if text is None:
        return []
    broker_id = _broker(content, broker_id)
    logger = _first_text(content, _LOGGER)
    if logger is not None:
        return [LogLine(_line(content, logger, text), broker_id, "default", "UTC")]
    return _inner_lines(text, broker_id, _runtime_time(content), depth)


def _inner_lines(text: str, broker_id: int | None, at: str | None, depth: int) -> list[LogLine]:
    """Return the log lines in the text that an envelope contains; `at` is the time of its entry."""
    inner = _parsed(text) if depth else None
    if inner is None:
        return [line._replace(line=_stamped(line.line, at)) for line in _split(text, broker_id)]
    return _lines(_timed(inner, at), broker_id, depth - 1)


def _of_bytes(message: Any) -> str | None:
    """Return the text of a list of bytes, as journalctl prints a message with control characters, otherwise None."""
    try:
        return bytes(message).decode("utf-8", "replace") if isinstance(message, list) else None
    except (TypeError, ValueError):
        return None


def _runtime_time(content: dict[str, Any]) -> str | None:
    """Return the time of an entry of Docker's json-file or of the journal, or None for all other JSON."""
    if content.get("stream") in ("stdout", "stderr"):
        return _text(content.get("time"))
    micros = next((text for name in _JOURNAL_TIME if _MICROS.fullmatch(text := str(content.get(name)))), None)
    if micros is None:
        return None
    return f"{datetime.fromtimestamp(int(micros[:10]), UTC):%Y-%m-%dT%H:%M:%S}.{micros[10:]}Z"


def _timed(content: Any, at: str | None) -> Any:
    """Return the event with the time `at` if it has no time of its own."""
    if at is None or not isinstance(content, dict) or "instant" in content:
        return content
    has_time = any(_field(content, name) is not None for name in _TIME)
    return content if has_time else content | {"time": at}


def _stamped(line: str, at: str | None) -> str:
    """Return a line without a time of its own behind `at`, as Kubernetes prints it; other lines stay unchanged."""
    return line if at is None or _OWN_TIME.match(line) else f"{at} {line}"


def _parsed(text: str) -> Any:
    """Return JSON within JSON, or None if the text is not JSON."""
    try:
        return _loaded(text) if _is_json(text) else None
    except ValueError:
        return None


def _otlp(content: dict[str, Any]) -> list[Any]:
    """Return the log records of an ExportLogsServiceRequest."""
    return [
        record
        for resource in content["resourceLogs"]
        for scope in _listed(resource, "scopeLogs")
        for record in _listed(scope, "logRecords")
    ]


def _listed(content: Any, name: str) -> list[Any]:
    found = content.get(name) if isinstance(content, dict) else None
    return found if isinstance(found, list) else []


def _field(content: dict[str, Any], name: str) -> Any:
    """Return a field by its dotted name, which may be written flat or nested."""
    if name in content:
        return content[name]
    head, _, rest = name.partition(".")
    inner = content.get(head)
    return _field(inner, rest) if rest and isinstance(inner, dict) else None


def _broker(content: dict[str, Any], otherwise: int | None) -> int | None:
    for name in _BROKER:
        found = _field(content, name)
        if str(found).isascii() and str(found).isdigit() and len(str(found)) < 10:
            return int(found)
    return otherwise


def _first_text(content: dict[str, Any], names: tuple[str, ...]) -> str | None:
    return next((found for name in names if isinstance(found := _field(content, name), str)), None)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _line(content: dict[str, Any], logger: str, message: str) -> str:
    return f"[{_time(content)}] {_level(content)} {message} ({logger})"


def _level(content: dict[str, Any]) -> str:
    """Return the level as log4j names it, or INFO, because the line's layout accepts no other names."""
    level = (_first_text(content, _LEVEL) or "").upper()
    level = _RENAMED_LEVELS.get(level, level)
    return level if _LOG4J_LEVEL.fullmatch(level) else "INFO"


def _time(content: dict[str, Any]) -> str:
    """Return the time of the event in the form of `%d`, in UTC.

    A time that is text stays unchanged for the line parser.
    """
    instant = content.get("instant")
    if isinstance(instant, dict):
        seconds, nanos = instant.get("epochSecond"), instant.get("nanoOfSecond", 0)
        return _printed(seconds, nanos // 1_000_000 if isinstance(nanos, int) else 0)
    found = next((value for name in _TIME if (value := _field(content, name)) is not None), None)
    millis = _millis(found) if isinstance(found, (int, float)) and not isinstance(found, bool) else None
    return _judged(found) if millis is None else _printed(millis // 1000, millis % 1000)


def _millis(time: float) -> int | None:
    """Return milliseconds since 1970: GELF counts seconds, most formats milliseconds, some micro- or nanoseconds."""
    units = next((units for limit, units in _UNITS_PER_SECOND if abs(time) < limit), None)
    if units is None:
        return None
    return round(time * 1000) if units == 1 else int(time // (units // 1000))


def _printed(seconds: Any, millis: int) -> str:
    try:
        at = datetime.fromtimestamp(seconds, UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return _judged(seconds)
    if not 0 <= millis < 1000:
        return _judged(f"{millis} milliseconds")
    return f"{at:%Y-%m-%d %H:%M:%S},{millis:03}"


def _judged(value: Any) -> str:
    """Return an invalid time padded to a length that a layout accepts, so that the line parser reports it."""
    return f"{value!s:20.30}"
