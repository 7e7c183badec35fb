"""Lines as brokers print them, for the tests of this folder."""

from __future__ import annotations

import json
import re
from pathlib import Path

from pipelines.coordinator_events import ParsedEvent, Unreadable, parse_line
from pipelines.log_layouts import layout, zone
from schemas.coordinator_log import NEW_LOGGERS, OLD_LOGGERS, WORKER_KINDS, WORKER_LOGGERS, WORKER_PREFIX, Wording

GOLDEN = Path(__file__).parent / "golden"
WORDINGS = [json.loads(line) for line in (GOLDEN / "wordings.jsonl").read_text(encoding="utf-8").splitlines()]

NEW = "[GroupCoordinator id=1 topic=__consumer_offsets partition=12] "
MANAGER = "org.apache.kafka.coordinator.group.GroupMetadataManager"
MEMBER = "orders-worker-6f1c0e1e-2f0a-4b7e-9d57-0c8b0d1f4a11"
OTHER = "orders-worker-0b9d5e52-7f53-4d0f-8b5e-52a7f5f3c0aa"

VALUES = {
    "group_id": "orders",
    "generation_id": "7", "source_partition": "12", "member_count": "3", "static_member_count": "1", "duration_ms": "42",
    "member_id": MEMBER, "replaced_member_id": OTHER, "leader_member_id": OTHER, "member_ids": f"[{MEMBER}, {OTHER}]",
    "client_id": "connect-1", "group_instance_id": "rack-a", "reason": "The request timed out.", "client_reason": "the consumer is being closed",
    "state": "Stable", "_n": "19", "_w": "classic", "_": "range",
}  # fmt: skip


def line(message: str, logger: str = MANAGER, at: str = "2026-11-21 06:41:02,803", level: str = "INFO") -> str:
    return f"[{at}] {level} {message} ({logger})"


def parse(text: str, like: str = "default", in_zone: str = "UTC") -> ParsedEvent | Unreadable | None:
    return parse_line(text, layout(like), zone(in_zone))


def says(event: ParsedEvent | Unreadable | None) -> dict[str, object]:
    """The columns that have a value, without time and line."""
    assert isinstance(event, ParsedEvent), event
    hidden = ("event_at", "event_precision_ms", "raw")
    return {name: value for name, value in event._asdict().items() if value is not None and name not in hidden}


def printed(wording: Wording, **values: str) -> str:
    """A wording's line in the default layout; arguments not given have plain values."""
    text = WORKER_PREFIX + wording.text if wording.kind in WORKER_KINDS else wording.text
    message = re.sub(r"\{(\w+)\}", lambda m: (VALUES | values)[m[1]], text)
    loggers = {name: logger for logger, name in (OLD_LOGGERS | NEW_LOGGERS | WORKER_LOGGERS).items()}
    if wording.kind in WORKER_KINDS:
        return line(message, loggers[wording.logger])
    if wording.since < "3.6" or "(__consumer_offsets-" in wording.text or wording.until == "3.9":
        logger = f"kafka.coordinator.group.{wording.logger}"
        prefixes = {
            "GroupCoordinator": "[GroupCoordinator 1]: ",
            "GroupMetadataManager": "[GroupMetadataManager brokerId=1] ",
        }
        return line(prefixes.get(wording.logger, "") + message, logger)
    return line(NEW + message, loggers[wording.logger])
