"""The topics that Regroup reads in a cluster, each with the conversion of its records."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from jobs.kafka.kafka_source import TopicStream
from jobs.kafka.log_source import LogStream
from pipelines import event_batch
from pipelines.bronze_batch import bronze, count
from pipelines.limits import DEFAULT_LIMITS
from schemas.bronze import COORDINATOR_RECORDS, OFFSET_COMMITS, QUARANTINE
from schemas.records import OFFSETS_TOPIC

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from jobs.config.clusters import Cluster
    from pipelines.bronze_batch import Records
    from pipelines.coverage import Span
    from pipelines.limits import Limits


def offsets(cluster: Cluster, *, tasks: int, limits: Limits = DEFAULT_LIMITS) -> TopicStream:
    """Return the feed of `__consumer_offsets`: group records, folded commits, quarantine."""
    return TopicStream(
        cluster=cluster.name,
        topic=OFFSETS_TOPIC,
        options=cluster.client(),
        fold=partial(_offsets, cluster.name, limits),
        tables=(COORDINATOR_RECORDS, OFFSET_COMMITS, QUARANTINE),
        max_offsets_per_trigger=cluster.max_offsets_per_trigger,
        tasks=tasks,
        has_quarantine_limit=cluster.quarantine_fuse,
        is_flat=True,
    )


def events(cluster: Cluster, *, tasks: int, topic: str | None = None) -> TopicStream:
    """Return the feed of one events topic: log lines, marks and other messages from Regroup itself."""
    topic = topic or cluster.events_topic
    sources = tuple(source for source in cluster.event_sources if source.topic == topic)
    reading = event_batch.TopicReader(
        cluster=cluster.name,
        topic=topic,
        layout=cluster.events_layout,
        zone=cluster.events_zone,
        sources=sources,
        largest=cluster.events_max_message_bytes,
    )
    return TopicStream(
        cluster=cluster.name,
        topic=topic,
        options=cluster.client(),
        fold=reading,
        tables=event_batch.TABLES,
        max_offsets_per_trigger=cluster.max_offsets_per_trigger,
        tasks=tasks,
        has_headers=any(source.header for source in sources),
    )


def topics(cluster: Cluster, *, tasks: int, limits: Limits = DEFAULT_LIMITS) -> list[TopicStream]:
    """Return the feeds of all topics that are read in a cluster."""
    further = (events(cluster, tasks=tasks, topic=topic) for topic in cluster.event_topics())
    return [offsets(cluster, tasks=tasks, limits=limits), *further]


def logs(cluster: Cluster) -> LogStream:
    """Return the feed of the cluster's log files on this machine."""
    return LogStream(cluster=cluster.name, logs=cluster.logs)


def _offsets(cluster: str, limits: Limits, records: Records, spans: Mapping[int, Span]) -> dict[str, pa.StructArray]:
    rows = bronze(records, cluster=cluster, limits=limits)
    count(spans, records, rows[QUARANTINE.name].field("source_partition").to_pylist())
    return rows
