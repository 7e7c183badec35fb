"""`regroup decode`: print the records of a topic, a log segment file or a capture folder as JSON lines."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from jobs.captures.recording import Capture
from jobs.config.errors import UserError
from jobs.config.terminal import flush_lines, lines_for_a_pipe, warn, write_line
from jobs.kafka.segment_files import UnreadBatch, partition_of, segment_files, segment_records
from jobs.kafka.topic_records import Selection, TopicRecords
from pipelines.decoding.json_lines import batch_line, json_line
from pipelines.decoding.record_decoding import Decoded, decode_record
from pipelines.marks import moment
from schemas.records import OFFSETS_TOPIC

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator

    from jobs.config.settings import Settings
    from pipelines.decoding.source_record import SourceRecord

Item: TypeAlias = "SourceRecord | UnreadBatch | None"
"""A record, an unreadable batch, or None for a pause in the input."""

UNKNOWN_PARTITION = -1


def run(settings: Settings, args: argparse.Namespace) -> int:
    """Print one line for each record. If the reader of the pipe closes it, end without a message.

    Raises:
        UserError: an option is wrong, or the source is missing or cannot be read.
    """
    selection = _selection(args)
    with lines_for_a_pipe():
        _print(*_source(settings, args, selection), args)
    return 0


def _source(settings: Settings, args: argparse.Namespace, selection: Selection) -> tuple[Iterable[Item], str | None]:
    """Return the selected records and the name of their topic."""
    if args.source is None:
        return _of_topic(settings, args, selection), args.topic
    if args.follow or args.from_end:
        raise UserError("--follow and --from-end are for topics: a file or folder is read from its beginning.")
    files = segment_files(args.source)
    if args.source.is_dir() and not files:
        capture = Capture(args.source, settings.capture_mb, is_probed=True)
        return _chosen(capture.records(), selection), OFFSETS_TOPIC
    topic, partition = partition_of(files[0])
    if partition is None:
        partition = UNKNOWN_PARTITION if args.partition is None else args.partition
    return _chosen(chain.from_iterable(segment_records(file, partition) for file in files), selection), topic


def _selection(args: argparse.Namespace) -> Selection:
    for name in ("partition", "from_offset", "to_offset", "max_records"):
        value = getattr(args, name)
        if value is not None and value < 0:
            raise UserError(f"--{name.replace('_', '-')} must be at least 0, but is {value}.")
    if args.partition is not None and args.group is not None and args.source is None:
        raise UserError("A group has only one partition: give --group or --partition, not both.")
    try:
        since = None if args.since is None else round(moment(args.since).timestamp() * 1000)
    except ValueError as error:
        raise UserError(f"--since {error}.") from None
    return Selection(
        partition=args.partition,
        group=args.group,
        start=args.from_offset,
        end=args.to_offset,
        since_ms=since,
        is_from_end=args.from_end,
    )


def _of_topic(settings: Settings, args: argparse.Namespace, selection: Selection) -> Iterator[Item]:
    cluster = settings.only(args.cluster)
    source = TopicRecords(
        cluster.client(), args.topic, selection, lambda text: warn(f"regroup decode: {args.topic}: {text}")
    )
    return source.follow() if args.follow else source.records()


def _chosen(items: Iterable[SourceRecord | UnreadBatch], selection: Selection) -> Iterator[Item]:
    """Yield the items that brokers would have selected.

    As on a broker, `since_ms` selects each partition's first record at or after that time, and all records after it.
    """
    begun: set[int] = set()
    for item in items:
        if selection.partition not in (None, item.partition):
            continue
        if isinstance(item, UnreadBatch):
            offset = item.base if item.last is None else item.last
        else:
            offset = item.offset
            if selection.since_ms is not None and item.partition not in begun:
                if item.timestamp_ms < selection.since_ms:
                    continue
                begun.add(item.partition)
        if (selection.start or 0) <= offset and (selection.end is None or offset < selection.end):
            yield item


def _print(items: Iterable[Item], topic: str | None, args: argparse.Namespace) -> None:
    left: int | None = args.max_records
    unnamed = 0
    for item in items if left != 0 else ():
        if item is None:
            flush_lines()
            continue
        if isinstance(item, UnreadBatch):
            write_line(batch_line(topic, *item))
        else:
            if args.group is not None and (group := _group_of(item)) != args.group:
                unnamed += group is None
                continue
            write_line(json_line(item, topic, is_raw=args.raw))
        if left is not None and (left := left - 1) == 0:
            break
    if unnamed:
        warn(f"regroup decode: skipped records whose key cannot be decoded, so their group is unknown: {unnamed:,}")


def _group_of(record: SourceRecord) -> str | None:
    key = decode_record(record.key, None)
    return key.group_id if isinstance(key, Decoded) else None
