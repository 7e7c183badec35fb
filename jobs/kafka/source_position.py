"""Where a stream stands in a topic: what Spark's checkpoint keeps, and how it moves on."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pipelines.coverage import Span

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jobs.kafka.kafka_client import TopicEnds

RECREATED = "the topic was recreated: what was written after our last read is gone"
TRUNCATED = "the log was truncated below our position: what was written between that and now was not read"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionPosition:
    """In one partition: the next offset to read, and at which offset its present life (`log_epoch`) began for us."""

    log_epoch: int
    begin: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPosition:
    """In a topic. A partition without a place begins at offset 0 in the epoch `log_epoch`."""

    topic_id: str | None = None
    log_epoch: int = 0
    places: Mapping[int, PartitionPosition] = field(default_factory=dict)

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> TopicPosition:
        places = {int(p): PartitionPosition(**place) for p, place in stored.get("places", {}).items()}
        return cls(topic_id=stored.get("topic_id"), log_epoch=stored.get("log_epoch", 0), places=places)

    def stored(self) -> dict[str, Any]:
        """As JSON, partitions in order: Spark compares the text."""
        places = {str(p): asdict(self.places[p]) for p in sorted(self.places)}
        return {"topic_id": self.topic_id, "log_epoch": self.log_epoch, "places": places}

    def place(self, partition: int) -> PartitionPosition:
        return self.places.get(partition, PartitionPosition(log_epoch=self.log_epoch, begin=0, offset=0))

    def seen(self, topic: TopicEnds) -> TopicPosition:
        """The same position in the topic as it is now: a new life where it was recreated or truncated, no lost ones."""
        if self._is_another(topic):
            epoch = 1 + max((place.log_epoch for place in self.places.values()), default=self.log_epoch)
            fresh = TopicPosition(topic_id=topic.topic_id, log_epoch=epoch, places={})
            return replace(fresh, places={p: fresh.place(p) for p in topic.ends})
        places = {p: self.place(p) for p in topic.ends}
        for partition, (_, high) in topic.ends.items():
            place = places[partition]
            if high < place.offset:
                places[partition] = PartitionPosition(log_epoch=place.log_epoch + 1, begin=high, offset=high)
        return replace(self, topic_id=topic.topic_id, places=places)

    def _is_another(self, topic: TopicEnds) -> bool:
        if self.topic_id and topic.topic_id:
            return self.topic_id != topic.topic_id
        # Brokers before 2.8 have no topic ids: fewer records than were read can only mean a new topic or lost data.
        return any(p not in topic.ends or topic.ends[p][1] < place.offset for p, place in self.places.items())

    def advanced(self, topic: TopicEnds, limit: int | None) -> TopicPosition:
        """To the end of every partition, or about `limit` records on, each partition by the same share of its rest."""
        waiting = {p: max(0, high - max(self.place(p).offset, low)) for p, (low, high) in topic.ends.items()}
        total = sum(waiting.values())
        share = 1.0 if limit is None or total <= limit else limit / total
        places = {}
        for partition, (low, high) in topic.ends.items():
            place = self.place(partition)
            start = max(place.offset, low) if waiting[partition] else place.offset
            # Rounded up: a partition with anything to read always moves.
            end = high if share == 1.0 else start - int(-waiting[partition] * share // 1)
            places[partition] = replace(place, offset=max(place.offset, min(high, end)))
        return replace(self, places=places)


def lost(start: TopicPosition, end: TopicPosition) -> list[Span]:
    """What was missed between the two because a life of the topic, or of one of its logs, ended."""
    if not start.places:
        return []
    if end.log_epoch != start.log_epoch:
        return [
            _gap(p, place.log_epoch, place.offset, place.offset, RECREATED) for p, place in sorted(start.places.items())
        ]
    return [
        _gap(p, place.log_epoch, 0, place.begin, TRUNCATED)
        for p, place in sorted(end.places.items())
        if place.log_epoch != start.place(p).log_epoch
    ]


def _gap(partition: int, log_epoch: int, start: int, end: int, reason: str) -> Span:
    return Span(partition=partition, log_epoch=log_epoch, from_offset=start, to_offset=end, gap_reason=reason)
