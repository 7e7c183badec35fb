"""The Kafka clusters of the settings: [clusters.NAME] with its options, log files and event sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from jobs.config.code_options import refuse_code
from jobs.config.declared import all_typed, refuse_unknown, secret, table, text
from jobs.config.errors import UserError
from pipelines.event_sources import Claim, EventSource
from pipelines.log_envelopes import LARGEST_MESSAGE
from pipelines.log_layouts import layout, zone

DEFAULT_CLUSTER = "kafka"
EVENTS_TOPIC = "regroup-events"
LONGEST_NAME = 100
LONGEST_OPTION = 100_000
"""Highest number of characters of a Kafka option, which may contain certificates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile:
    """A log file of a broker, controller or Connect worker on this machine. It is followed across rotations."""

    path: str
    layout: str = "default"
    zone: str = "UTC"
    broker_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """One Kafka cluster. `kafka` are librdkafka options, passed on unchanged.

    With `quarantine_fuse` false, reading continues even if most of `__consumer_offsets` cannot be decoded.
    """

    name: str
    bootstrap_servers: str
    kafka: Mapping[str, str] = field(default_factory=dict, repr=False)
    events_topic: str = EVENTS_TOPIC
    events_zone: str = "UTC"
    events_layout: str = "default"
    events_max_message_bytes: int = LARGEST_MESSAGE
    max_offsets_per_trigger: int = 5_000_000
    quarantine_fuse: bool = True
    logs: tuple[LogFile, ...] = ()
    event_sources: tuple[EventSource, ...] = ()

    def event_topics(self) -> list[str]:
        """Return the topics with log lines: those of `event_sources`, or the one events topic if there are none."""
        return list(dict.fromkeys(source.topic for source in self.event_sources)) or [self.events_topic]

    def client(self) -> dict[str, str]:
        """Return the options for librdkafka with every secret resolved. Never print or store them."""
        resolved = {key: secret(f"The Kafka option {key}", value) for key, value in self.kafka.items()}
        # Regroup's own clients push no metrics to the brokers (KIP-714): they belong to no group.
        return {"bootstrap.servers": self.bootstrap_servers, "enable.metrics.push": "false"} | resolved


def read_cluster(name: str, declared: Any, environment: Mapping[str, str]) -> Cluster:
    """Return the cluster that the table [clusters.NAME] describes.

    Raises:
        UserError: a key is unknown or missing, a value is not valid, or an option would run code.
    """
    section = f"[clusters.{name}]"
    cluster_name(name)
    declared = dict(table(f"clusters.{name}", declared))
    options = table(f"clusters.{name}.kafka", declared.pop("kafka", {}))
    kafka = {key: _option(f"The Kafka option {key} in {section}", value) for key, value in options.items()}
    refuse_code(f"[clusters.{name}.kafka]", kafka, environment)
    refuse_unknown(declared, {f.name for f in fields(Cluster)} - {"name"}, section)
    if "bootstrap_servers" not in declared:
        raise UserError(f'{section} has no bootstrap_servers: add bootstrap_servers = "host:9092".')
    logs = tuple(_log(f"[[clusters.{name}.logs]]", each) for each in _tables(f"clusters.{name}.logs", declared))
    bound = _tables(f"clusters.{name}.event_sources", declared)
    sources = tuple(_event_source(f"[[clusters.{name}.event_sources]]", each) for each in bound)
    cluster = Cluster(name=name, kafka=kafka, logs=logs, event_sources=sources, **all_typed(Cluster, declared, section))
    _readable(section, cluster.events_layout, cluster.events_zone)
    if cluster.events_max_message_bytes < 1:
        raise UserError(f"In {section}, events_max_message_bytes must be at least 1 byte.")
    return cluster


def cluster_name(name: str) -> str:
    """Return the name of a cluster if it is also a valid file name in the warehouse.

    Raises:
        UserError: the name is not valid.
    """
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable() or set("/\\") & set(name) or name in (".", ".."):
        raise UserError(
            f"The cluster name {name[:LONGEST_NAME]!r} cannot be used: choose 1 to {LONGEST_NAME} printable characters "
            "other than slashes."
        )
    return name


def _option(subject: str, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return text(subject, str(value) if isinstance(value, int | float) else value, LONGEST_OPTION)


def _tables(key: str, declared: dict[str, Any]) -> list[Any]:
    found = declared.pop(key.rpartition(".")[2], [])
    if not isinstance(found, list):
        raise UserError(f"{key} must be a list of tables: write [[{key}]] on a line of its own.")
    return found


def _log(section: str, declared: Any) -> LogFile:
    if not isinstance(declared, dict) or "path" not in declared:
        raise UserError(f'{section} has no path: add path = "/path/to/server.log".')
    refuse_unknown(declared, {f.name for f in fields(LogFile)}, section)
    log = LogFile(**all_typed(LogFile, declared, section))
    _readable(section, log.layout, log.zone)
    return log


def _event_source(section: str, declared: Any) -> EventSource:
    if not isinstance(declared, dict) or not isinstance(declared.get("topic"), str) or not declared["topic"]:
        raise UserError(f'{section} has no topic: add topic = "NAME", the topic that this source writes to.')
    refuse_unknown(declared, {f.name for f in fields(EventSource)}, section)
    header, brokers, kinds = declared.get("header", ""), declared.get("brokers", []), declared.get("kinds", [])
    if not isinstance(header, str) or (header and not all(header.partition("=")[::2])):
        raise UserError(f'In {section}, header must be "NAME=VALUE", but is {header!r}.')
    if not isinstance(brokers, list) or not all(type(each) is int and each >= 0 for each in brokers):
        raise UserError(f"In {section}, brokers must be a list of broker ids such as [1, 2], but is {brokers!r}.")
    if not isinstance(kinds, list) or not all(each in list(Claim) for each in kinds):
        raise UserError(f"In {section}, kinds must be a list of {', '.join(Claim)}, but is {kinds!r}.")
    return EventSource(
        topic=declared["topic"], header=header, brokers=tuple(brokers), kinds=tuple(Claim(each) for each in kinds)
    )


def _readable(section: str, wanted: str, zone_name: str) -> None:
    try:
        layout(wanted)
        zone(zone_name)
    except ValueError as error:
        raise UserError(f"In {section}: {error}") from None
    except (OverflowError, RecursionError):
        raise UserError(f"In {section}, the log layout is too large or nested too deeply: shorten it.") from None


def with_bootstrap(clusters: tuple[Cluster, ...], name: str | None, bootstrap: str) -> tuple[Cluster, ...]:
    """Return the one cluster that a flag names, with the settings that the file has for it."""
    for cluster in clusters:
        if cluster.name == name or (name is None and len(clusters) == 1):
            return (replace(cluster, bootstrap_servers=bootstrap),)
    return (Cluster(name=name or DEFAULT_CLUSTER, bootstrap_servers=bootstrap),)
