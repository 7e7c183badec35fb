"""The position of a stream in a topic: its form in Spark's checkpoint, and its progress."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pipelines.coverage import Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from jobs.kafka.kafka_client import TopicEnds

RECREATED = "the topic was recreated: records written after the last read are lost"
TRUNCATED = "the log was truncated below the read position: records written since then were not read"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionPosition:
    """The position in one partition: the next offset to read, and the offset at which this incarnation (`log_epoch`)
    began.
    """

    log_epoch: int
    begin: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPosition:
    """The position in a topic. A partition without an entry starts at offset 0 in the epoch `log_epoch`."""

    topic_id: str | None = None
    log_epoch: int = 0
    positions: Mapping[int, PartitionPosition] = field(default_factory=dict)

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> TopicPosition:
        positions = {int(p): PartitionPosition(**position) for p, position in stored.get("places", {}).items()}
        return cls(topic_id=stored.get("topic_id"), log_epoch=stored.get("log_epoch", 0), positions=positions)

    def stored(self) -> dict[str, Any]:
        """Return the position as JSON, with partitions in order, because Spark compares the text."""
        positions = {str(p): asdict(self.positions[p]) for p in sorted(self.positions)}
        return {"topic_id": self.topic_id, "log_epoch": self.log_epoch, "places": positions}

    def position(self, partition: int) -> PartitionPosition:
        return self.positions.get(partition, PartitionPosition(log_epoch=self.log_epoch, begin=0, offset=0))

    def seen(self, topic: TopicEnds) -> TopicPosition:
        """Return this position for the topic as it is now.

        A recreated topic, or a truncated log, starts a new incarnation. Kafka never removes a single partition, so one
        that is missing keeps its position: a broker that has just started may not know all of them yet.
        """
        if self._is_another(topic):
            epoch = 1 + max((position.log_epoch for position in self.positions.values()), default=self.log_epoch)
            fresh = TopicPosition(topic_id=topic.topic_id, log_epoch=epoch, positions={})
            return replace(fresh, positions={p: fresh.position(p) for p in topic.ends})
        positions = {p: self.position(p) for p in {*self.positions, *topic.ends}}
        for partition, (_, high) in topic.ends.items():
            position = positions[partition]
            if high < position.offset:
                positions[partition] = PartitionPosition(log_epoch=position.log_epoch + 1, begin=high, offset=high)
        return replace(self, topic_id=topic.topic_id, positions=positions)

    def _is_another(self, topic: TopicEnds) -> bool:
        if self.topic_id and topic.topic_id:
            return self.topic_id != topic.topic_id
        # Brokers before 2.8 have no topic ids. A smaller end offset can only mean a new topic or lost data.
        return any(p not in topic.ends or topic.ends[p][1] < position.offset for p, position in self.positions.items())

    def advanced(self, topic: TopicEnds, limit: int | None) -> TopicPosition:
        """Return the position at the end of every partition, or about `limit` records later.

        With a limit, every partition advances by the same share of its remaining records.
        """
        waiting = {p: max(0, high - max(self.position(p).offset, low)) for p, (low, high) in topic.ends.items()}
        total = sum(waiting.values())
        share = 1.0 if limit is None or total <= limit else limit / total
        positions = dict(self.positions)
        for partition, (low, high) in topic.ends.items():
            position = self.position(partition)
            start = max(position.offset, low) if waiting[partition] else position.offset
            # Rounded up, so that every partition with remaining records advances.
            end = high if share == 1.0 else start - int(-waiting[partition] * share // 1)
            positions[partition] = replace(position, offset=max(position.offset, min(high, end)))
        return replace(self, positions=positions)


def covered(rows: Iterable[tuple[int, int, int, bool]]) -> TopicPosition:
    """Return the position after what `coverage` has of a topic.

    `rows` are (partition, log epoch, end offset, whether the row says that the topic was recreated). A recreated topic
    begins in all its partitions in the epoch after all earlier ones. A partition that had no record in it since then
    has no other row of that epoch, and must not go on at the end of its log in the earlier topic.
    """
    epoch, positions = 0, dict[int, PartitionPosition]()
    for partition, log_epoch, end, is_recreated in sorted(rows):
        known = positions.get(partition)
        before = known.offset if known and known.log_epoch == log_epoch else 0
        positions[partition] = PartitionPosition(log_epoch=log_epoch, begin=0, offset=max(before, end))
        if is_recreated:
            epoch = max(epoch, log_epoch + 1)
    fresh = PartitionPosition(log_epoch=epoch, begin=0, offset=0)
    return TopicPosition(
        log_epoch=epoch, positions={p: at if at.log_epoch >= epoch else fresh for p, at in positions.items()}
    )


def lost(start: TopicPosition, end: TopicPosition) -> list[Span]:
    """Return the gaps between two positions that come from a recreated topic or a truncated log."""
    if not start.positions:
        return []
    if end.log_epoch != start.log_epoch:
        return [
            _gap(p, position.log_epoch, position.offset, position.offset, RECREATED)
            for p, position in sorted(start.positions.items())
        ]
    return [
        _gap(p, position.log_epoch, 0, position.begin, TRUNCATED)
        for p, position in sorted(end.positions.items())
        if position.log_epoch != start.position(p).log_epoch
    ]


def _gap(partition: int, log_epoch: int, start: int, end: int, reason: str) -> Span:
    return Span(partition=partition, log_epoch=log_epoch, from_offset=start, to_offset=end, gap_reason=reason)
