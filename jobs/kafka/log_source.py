"""The streaming data source of log files on this machine: each line once, across rotations and restarts.

The lines of a batch are fixed by file positions in the stream's checkpoint, so a repeated batch reads the same lines.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from jobs.kafka.bronze_source import read_stream
from jobs.kafka.logs.log_files import FilePosition, Follower
from jobs.tables.output import union
from pipelines.arrow_types import row_type
from pipelines.coverage import Span
from pipelines.kubernetes.observation_rows import rows_of_lines
from pipelines.log_layouts import layout, zone
from pipelines.log_lines import PlacedLine, line_rows
from schemas.bronze import ADMIN_OBSERVATIONS, COORDINATOR_EVENTS, COVERAGE, QUARANTINE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from jobs.config.clusters import LogFile

LINES_PER_TRIGGER = 200_000
LINES_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStream:
    """The log files of one cluster. `topic` is the name of the stream.

    A stream without a checkpoint starts at the positions `start`, by file, or else at the present start of each file.
    """

    cluster: str
    logs: tuple[LogFile, ...]
    topic: str = "log-files"
    start: Mapping[str, Any] | None = None
    tables = (COORDINATOR_EVENTS, ADMIN_OBSERVATIONS, QUARANTINE)

    def starting_at(self, position: Mapping[str, Any]) -> Self:
        """Return the stream with this `start`."""
        return replace(self, start=position)

    def frame(self, spark: SparkSession) -> DataFrame:
        """Return the files' rows as a stream, from `start` if there is no checkpoint."""
        return read_stream(spark, LogReader(self), (*self.tables, COVERAGE))


@dataclass(frozen=True)
class Stretch(InputPartition):
    """Lines of one file: from `before` (None: from its beginning) to `after`."""

    log: LogFile
    before: FilePosition | None
    after: FilePosition


class LogReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches in the driver by reading ahead, and reads the lines again in the task that decodes them.

    Raises:
        UserError: a file is missing or cannot be read.
    """

    def __init__(self, stream: LogStream) -> None:
        self._stream = stream
        self._followers: dict[str, Follower] = {}
        self._is_once = self._is_done = False

    # ruff: noqa: N802 - the names below are Spark's

    def initialOffset(self) -> dict[str, Any]:
        """Return the start of each existing file, so that a rotation before the first batch loses no lines."""
        found = dict(self._stream.start or {})
        for log in self._stream.logs:
            if log.path in found:
                continue
            follower = Follower(Path(log.path))
            found[log.path] = follower.position.to_json()
            follower.close()
        return found

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(LINES_PER_TRIGGER)

    def prepareForTriggerAvailableNow(self) -> None:
        self._is_once = True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: ARG002
        if self._is_done:
            return start
        ends = {log.path: self._ahead(log.path, _position(start, log.path)) for log in self._stream.logs}
        self._is_done = self._is_once and all(is_end for _, is_end in ends.values())
        return start | {path: position.to_json() for path, (position, _) in ends.items()}

    def _ahead(self, path: str, before: FilePosition | None) -> tuple[FilePosition, bool]:
        """Return the position after the next lines, and whether it is the end of the file."""
        follower = self._followers.get(path)
        if follower is not None and follower.position != before:
            self._followers.pop(path).close()
            follower = None
        follower = follower or self._followers.setdefault(path, Follower(Path(path), before))
        for _ in range(LINES_PER_TRIGGER // LINES_AT_ONCE):
            if len(follower.poll(LINES_AT_ONCE)) < LINES_AT_ONCE:
                return follower.position, True
        return follower.position, False

    def stop(self) -> None:
        for follower in self._followers.values():
            follower.close()
        self._followers.clear()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        found = []
        for log in self._stream.logs:
            before, after = _position(start, log.path), _position(end, log.path)
            if after is not None and after.line_no > (before.line_no if before else 0):
                found.append(Stretch(log=log, before=before, after=after))
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Stretch)
        log, after = partition.log, partition.after
        first = (partition.before.line_no if partition.before else 0) + 1
        tables = (*self._stream.tables, COVERAGE)
        span = Span(partition=-1, log_epoch=0, from_offset=first, to_offset=after.line_no + 1)
        lines = _lines(partition)
        if lines is None:
            span.gap_reason = "the file was replaced before its lines were stored"
        else:
            rows = line_rows(lines, cluster=self._stream.cluster, layout=layout(log.layout), zone=zone(log.zone))
            seen, unusable, used = rows_of_lines(lines, cluster=self._stream.cluster)
            events, refused = rows[0], [*rows[1], *unusable]
            times = [round(row["event_at"].timestamp() * 1000) for row in events]
            if times:
                span.first_ms, span.last_ms = times[0], times[-1]
            span.records, span.quarantined = len(lines), len(refused)
            span.skipped = max(0, len(lines) - len(events) - len(refused) - used)
            made = {COORDINATOR_EVENTS.name: events, ADMIN_OBSERVATIONS.name: seen, QUARANTINE.name: refused}
            yield from union({t.name: pa.array(made[t.name], row_type(t)) for t in self._stream.tables}, tables)
        covered = [span.row(self._stream.cluster, log.path)]
        yield from union({COVERAGE.name: pa.array(covered, row_type(COVERAGE))}, tables)


def _lines(stretch: Stretch) -> list[PlacedLine] | None:
    """Return the lines between two positions; None if the file no longer contains them."""
    log, wanted = stretch.log, stretch.after
    follower = Follower(Path(log.path), stretch.before)
    try:
        found: list[PlacedLine] = []
        number = stretch.before.line_no if stretch.before else 0
        while number < wanted.line_no:
            lines = follower.poll(min(LINES_AT_ONCE, wanted.line_no - number))
            if not lines:
                return None
            number = lines[-1].line_no
            found += (PlacedLine(log.path, n, text, log.broker_id, cut) for _, n, text, cut in lines)
        return found if follower.position == wanted else None
    finally:
        follower.close()


def _position(offset: Mapping[str, Any], path: str) -> FilePosition | None:
    return FilePosition(**offset[path]) if path in offset else None
