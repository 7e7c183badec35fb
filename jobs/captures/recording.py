"""A capture folder, format 1, read as the sources of a cluster. Its content is untrusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jobs.captures.capture_files import CaptureFiles
from jobs.captures.offsets_parquet import read_records
from jobs.config.errors import UserError
from jobs.kafka.logs.joined_lines import MAX_LINE_BYTES, RawLine, joined
from pipelines.bounded_json import bounded_json, cost
from pipelines.coordinator_events import WORDS
from pipelines.decoding.record_times import LAST_MS
from pipelines.limits import CAPTURE_MB
from pipelines.log_layouts import zone
from pipelines.observations import Refused, observation
from schemas.log_layouts import LAYOUTS
from schemas.states import QuarantineReason

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from pipelines.decoding.source_record import SourceRecord

META, OBSERVATIONS = "meta.json", ("admin.jsonl", "admin.jsonl.gz")
LOGS = ("broker", "controller", "connect-worker", "kubernetes")
MAX_OBSERVATION_BYTES = 8_000_000
"""Maximum size of a line. A poll of 50,000 groups is shorter."""

LONGEST_ID = 9
"""Digits of a broker's id, so that the id fits into 32 bits."""

LONGEST_NAME = 200
EVENT_COST = 2_000
"""Bytes charged for a line as a row of bronze, in addition to its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a broker's, controller's or Connect worker's log, or of objects of Kubernetes."""

    file: str
    number: int
    text: str
    broker_id: int | None
    is_oversized: bool = False


class Capture:
    """An untrusted capture folder.

    Args:
        folder: the folder itself, not a symbolic link to it.
        limit_mb: maximum memory for the content.
        layouts: log layouts that `meta.json` may name, in addition to the built-in ones.
        is_probed: read the records in a separate process first, because they may crash it.

    Raises:
        UserError: the folder or a file is missing, broken, not a regular file, larger than the limit, or there both
            compressed and uncompressed.
    """

    def __init__(
        self, folder: Path, limit_mb: int = CAPTURE_MB, layouts: Collection[str] = (), *, is_probed: bool = False
    ) -> None:
        self.folder, self._is_probed = folder, is_probed
        self._files = CaptureFiles(folder, limit_mb)
        self.meta = self._meta({*LAYOUTS, *LAYOUTS.values(), *layouts})

    def _meta(self, layouts: Collection[str]) -> dict[str, Any]:
        path = self.folder / META
        try:
            text = self._files.read(META, META).decode("utf-8-sig")
            self._files.budget.spend(META, cost(text), META)
            meta = bounded_json(text)
        except FileNotFoundError:
            raise UserError(f"{self.folder} is not a capture folder: it has no meta.json.") from None
        except UnicodeDecodeError:
            raise UserError(f"The file {path} is not JSON (it is not UTF-8): record the capture again.") from None
        except ValueError as error:
            raise UserError(f"The file {path} is not JSON ({error}): record the capture again.") from None
        if not isinstance(meta, dict):
            raise UserError(f"The file {path} is not a JSON object: record the capture again.")
        if type(meta.get("format")) is not int or meta["format"] != 1:
            there = str(meta.get("format"))[:LONGEST_NAME]
            raise UserError(f"{self.folder} has capture format {there}; this Regroup reads format 1.")
        if (wrong := _wrong(meta, layouts)) is not None:
            raise UserError(f"In the file {path}, {wrong}.")
        return meta

    def records(self) -> list[SourceRecord]:
        """Return every record, ordered by partition and offset."""
        return read_records(self._files, is_probed=self._is_probed)

    def lines(self) -> Iterator[Line]:
        """Yield the lines of the brokers', controllers' and Connect workers' logs, and of objects of Kubernetes."""
        self._files.budget.reset("log")
        for kind in LOGS:
            for name in self._files.names(f"{kind}-", ".log"):
                number = name.removeprefix(f"{kind}-").split(".", 1)[0]
                is_id = kind in ("broker", "controller") and number.isascii() and number.isdigit()
                broker_id = int(number) if is_id and len(number) <= LONGEST_ID else None
                read = self._files.lines(name, "log", MAX_LINE_BYTES)
                lines = joined(RawLine(raw, len(raw) + 1, is_cut=is_cut) for raw, is_cut in read)
                for at, line in enumerate(lines, 1):
                    text = line.text[:MAX_LINE_BYTES].decode("utf-8", "replace")
                    if any(word in text for word in WORDS):
                        self._files.budget.spend("log", EVENT_COST, name)
                    yield Line(file=name, number=at, text=text, broker_id=broker_id, is_oversized=line.is_cut)

    def observations(self) -> Iterator[tuple[int, dict[str, Any] | Refused]]:
        """Yield line number and object of each line of admin.jsonl; `Refused` for lines that cannot be used."""
        self._files.budget.reset("admin")
        for name in [each for each in self._files.names("admin.jsonl", "") if each in OBSERVATIONS]:
            for number, (raw, is_cut) in enumerate(self._files.lines(name, "admin", MAX_OBSERVATION_BYTES), 1):
                if not raw.strip():
                    continue
                text = raw.decode("utf-8", "replace")
                if is_cut:
                    why = f"a line of more than {MAX_OBSERVATION_BYTES:,} bytes"
                    yield number, Refused(QuarantineReason.OVERSIZED, why, text[:MAX_LINE_BYTES])
                    continue
                self._files.budget.spend("admin", cost(text), name)
                yield number, observation(text)


def _wrong(meta: dict[str, Any], layouts: Collection[str]) -> str | None:
    """Return an invalid field of `meta.json` and the next step; None if all fields are valid."""
    for name in ("scenario", "log_time_zone", "log_pattern"):
        if not isinstance(meta.get(name), str | None) or len(meta.get(name) or "") > LONGEST_NAME:
            return f"{name} must be a text of at most {LONGEST_NAME} characters: correct it"
    started = meta.get("started_ms")
    if started is not None and not (type(started) is int and 0 <= started <= LAST_MS):
        return f"started_ms is not a time ({str(started)[:40]}): write milliseconds since 1970"
    settings = meta.get("broker_overrides") or {}
    values = settings.values() if isinstance(settings, dict) else [settings]
    if not all(isinstance(value, str | int | float | None) for value in values) or not isinstance(settings, dict):
        return "broker_overrides must be an object of broker settings: correct it or remove it"
    try:
        zone(meta.get("log_time_zone") or "UTC")
    except ValueError as error:
        return f"log_time_zone is wrong: {str(error).removesuffix('.')}"
    pattern = meta.get("log_pattern") or "default"
    if pattern not in layouts:
        return (
            f"log_pattern is {pattern!r}, but a capture may only name a known layout ({', '.join(LAYOUTS)}): "
            "correct it or, if you trust the pattern, write it as events_layout of a cluster in the settings"
        )
    return None
