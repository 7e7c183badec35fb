"""Messages that a hostile writer to an events topic would send, with the reason for which each is quarantined."""

from __future__ import annotations

import json
from typing import Any

MANAGER = "org.apache.kafka.coordinator.group.GroupMetadataManager"
OF_ORDERS = (
    "[GroupCoordinator id=1 topic=__consumer_offsets partition=3] Stabilized group orders generation {} with 2 members."
)


def good(generation: int, broker: int = 1) -> str:
    message = OF_ORDERS.format(generation).replace("id=1", f"id={broker}")
    return f"[2026-11-21 10:00:00,123] INFO {message} ({MANAGER})"


def _own(**fields: Any) -> bytes:
    return json.dumps({"kind": "log", "source": "x", "at": 0, "line": good(1)} | fields).encode()


def _logged(**fields: Any) -> bytes:
    return json.dumps({"loggerName": MANAGER, "message": OF_ORDERS.format(1)} | fields).encode()


def _nested(before: str, levels: int, inner: str = "", after: str = "") -> bytes:
    return (before + "[" * levels + inner + "]" * levels + after).encode()


HOSTILE: dict[str, tuple[bytes, str]] = {
    "arrays in a list": (_nested("[{},", 600, after="]"), "invalid_envelope"),
    "arrays that the decoder gives up": (_nested("[{},", 200_000, after="]"), "invalid_envelope"),
    "65 arrays around an object": (_nested("[{},", 65, "{}", "]"), "invalid_envelope"),
    "objects in objects": (b'{"message":' * 500 + b'""' + b"}" * 500, "invalid_envelope"),
    "OTLP within OTLP": (
        b'{"resourceLogs":[{"scopeLogs":[{"logRecords":[' * 120 + b"{}" + b"]}]}]}" * 120,
        "invalid_envelope",
    ),
    "arrays in JSON within JSON": (
        json.dumps({"message": '{"message": ' + "[" * 600 + "]" * 600 + "}"}).encode(),
        "invalid_envelope",
    ),
    "a deep mark": (_nested('{"kind":"mark","text":"a","x":', 500, after="}"), "invalid_envelope"),
    "a deep observation": (_nested('{"kind":"admin","at":1,"source":', 500, after="}"), "invalid_envelope"),
    "a layout of nested parentheses": (_own(layout="(" * 5000 + "(?P<at>.)" + ")" * 5000), "invalid_envelope"),
    "a layout of a huge repetition": (_own(layout="(?P<at>.)(?P<logger>.)(?P<message>.){9999999999}"), "invalid_envelope"),
    "a layout that backtracks": (
        _own(layout="(?P<at>.)(?P<logger>.)(?P<message>.)(a+)+b", line="xyz" + "a" * 40 + "oordinator"),
        "invalid_envelope",
    ),
    "a layout that is a conversion pattern": (_own(layout="[%d] %p %m (%c)"), "invalid_envelope"),
    "a zone that is a path": (_own(zone="../../../../etc/passwd"), "invalid_envelope"),
    "a zone that is absolute": (_own(zone="/etc/localtime"), "invalid_envelope"),
    "a zone with a NUL": (_own(zone="Europe/Berlin\x00"), "invalid_envelope"),
    "a zone of 100 kB": (_own(zone="A/" * 50_000), "invalid_envelope"),
    "a zone that is a folder": (_own(zone="Europe"), "invalid_envelope"),
    "half a surrogate pair as zone": (b'{"kind":"log","source":"x","at":0,"line":"a","zone":"\\ud800"}', "invalid_envelope"),
    "a number of 5,000 digits": (b'{"message":"x","timestamp":' + b"9" * 5000 + b"}", "invalid_envelope"),
    "a year beyond all": (_logged(timestamp=10**30), "invalid_timestamp"),
    "no number": (_logged(timestamp=float("nan")), "invalid_timestamp"),
    "infinity": (_logged(timestamp=float("-inf")), "invalid_timestamp"),
    "before 1970": (_logged(timestamp=-(10**12)), "invalid_timestamp"),
    "nanoseconds beyond all": (_logged(instant={"epochSecond": 1_790_000_000, "nanoOfSecond": 10**40}), "invalid_timestamp"),
    "seconds of another type": (_logged(instant={"epochSecond": [1], "nanoOfSecond": 5}), "invalid_timestamp"),
    "a mark of no time": (b'{"kind":"mark","text":"a","at":1e400}', "invalid_timestamp"),
    "a mark of 4,000 digits": (b'{"kind":"mark","text":"a","at":' + b"1" * 4000 + b"}", "invalid_timestamp"),
    "a line of 200 kB": (good(1).replace("orders", "oordinator" * 20_000).encode(), "oversized"),
    "5 MB": (b'{"message":"' + b"x" * 5_000_000 + b'"}', "oversized"),
    "bytes that are no JSON": (b"{\xff\xfe\x00", "invalid_envelope"),
    "a list of nothing": (b"[{}]", "invalid_envelope"),
}  # fmt: skip

HARMLESS: dict[str, bytes] = {
    "spaces that made matching quadratic": b"[2026-11-21 10:00:00,123] INFO" + b" " * 100_000 + b"oordinator",
    "100,000 empty lines": b"[2026-11-21 10:00:00,123] \n" * 100_000,
    "a hundred thousand lines in a list": b'[{"message":"x"}' + b',{"message":"x"}' * 100_000 + b"]",
    "half a surrogate pair": b'{"message":"\\ud800 oordinator"}',
    "one key a thousand times": b'{"message":"x"' + b',"message":"y"' * 1000 + b"}",
}
"""These messages contain no known line, and are skipped."""
