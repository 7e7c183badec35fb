"""Settings: defaults, then the file, the environment, flags. Unknown keys are rejected with the nearest valid key.

The file is TOML. The environment has `REGROUP_<KEY>` for top-level keys, and `REGROUP_BOOTSTRAP_SERVERS` for a start
with one cluster and no file. A Kafka client option may refer to a secret instead of containing it: `env:NAME` or
`file:PATH`.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from dashboards.lake.databricks_warehouse import Warehouse
from dashboards.lake.folder import not_a_folder
from jobs.config.code_options import refuse_code
from jobs.config.declared import all_typed, hints_of, quoted_value, refuse_unknown, secret, table, text, typed
from jobs.config.errors import UserError
from jobs.config.receivers import Alertmanager, Webhook, alertmanagers, refuse_same_names, webhooks
from pipelines.event_sources import Claim, EventSource
from pipelines.limits import CAPTURE_MB, GROUPS, NAME_BYTES, RESOURCES, Limits
from pipelines.log_envelopes import LARGEST_MESSAGE
from pipelines.log_layouts import layout, zone
from pipelines.silver.client_hosts import ClientHosts, HostPolicy

DEFAULT_CLUSTER = "kafka"
LONGEST_FILE, LONGEST_NAME = 1_000_000, 100
LONGEST_OPTION = 100_000
"""Highest number of characters of a Kafka option, which may contain certificates."""
TABLES = ("clusters", "alertmanagers", "webhooks", "readers", "databricks")
"""Keys that are tables of the file. They have neither flags nor environment variables."""
REFERENCES = ("env:", "file:")
SECRET = re.compile(r"password|secret|token|jaas|pem$")
"""Kafka options whose value is a secret."""
WANTED = {
    "server_hostname": "dbc-0123.cloud.databricks.com",
    "http_path": "/sql/1.0/warehouses/0123",
    "tables": "/Volumes/main/regroup/warehouse",
}
"""Required keys of [databricks], each with an example."""
WAYS_IN = ((True, False, False), (False, True, True))
"""Allowed combinations of `token`, `client_id` and `client_secret`."""


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
    events_topic: str = "regroup-events"
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
        return {"bootstrap.servers": self.bootstrap_servers} | resolved


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of all jobs. If no cluster is configured, `clusters` is empty and `up` starts a lab."""

    warehouse: Path = Path(".regroup/warehouse")
    clusters: tuple[Cluster, ...] = ()
    quiet_ms: int = 10_000
    trigger_seconds: float = 5.0
    analyze_seconds: float = 60.0
    quality_seconds: float = 600.0
    client_host: str = HostPolicy.KEEP.value
    client_host_key: str = field(default="", repr=False)
    maintain_seconds: float = 300.0
    keep_commits_days: int = 90
    keep_bronze_days: int = 400
    keep_operations_days: int = 90
    vacuum_days: float = 7.0
    max_resources: int = RESOURCES
    max_groups: int = GROUPS
    max_name_bytes: int = NAME_BYTES
    worth_resource_seconds: float = 10.0
    worth_ratio: float = 0.1
    cores: int = 2
    driver_memory: str = "2g"
    capture_mb: int = CAPTURE_MB
    host: str = "127.0.0.1"
    port: int = 8050
    pages_token: str = field(default="", repr=False)
    trusted_proxies: str = ""
    identity_header: str = "X-Forwarded-User"
    groups_header: str = "X-Forwarded-Groups"
    pages_hosts: str = ""
    readers: Mapping[str, Any] = field(default_factory=dict)
    databricks: Warehouse | None = None
    alertmanagers: tuple[Alertmanager, ...] = ()
    webhooks: tuple[Webhook, ...] = ()
    notify_seconds: float = 10.0
    resend_seconds: float = 60.0
    stale_seconds: float = 120.0
    stuck_seconds: float = 360.0
    availability_target: float = 0.999
    dashboard_url: str = ""
    runbook_url: str = ""
    metrics_port: int = 8060
    metrics_groups: int = 20

    @classmethod
    def load(
        cls,
        file: Path | None = None,
        environment: Mapping[str, str] | None = None,
        flags: Mapping[str, Any] | None = None,
    ) -> Settings:
        """Return the settings from `file`, `environment` and `flags`; later sources take precedence.

        Raises:
            UserError: the file is missing or broken, a key is unknown, or a value has the wrong type.
        """
        environment = os.environ if environment is None else environment
        given = {key: value for key, value in (flags or {}).items() if value is not None}
        declared = _file(file) if file else {}
        named = table("clusters", declared.pop("clusters", {}))
        clusters = tuple(_cluster(name, content, environment) for name, content in named.items())
        managers, hooks = alertmanagers(declared.pop("alertmanagers", [])), webhooks(declared.pop("webhooks", []))
        refuse_same_names((*managers, *hooks))
        readers, databricks = _readers(declared), _databricks(declared.pop("databricks", None))
        known = {f.name for f in fields(cls)} - set(TABLES)
        refuse_unknown(declared, known | set(TABLES), f"the settings file {file}")
        _refuse_blank(declared, environment)
        values = declared | {
            key: environment[name] for key in known if (name := f"REGROUP_{key.upper()}") in environment
        }
        bootstrap = given.pop("bootstrap_servers", None) or environment.get("REGROUP_BOOTSTRAP_SERVERS")
        values |= {key: value for key, value in given.items() if key in known}
        if (wanted := given.get("cluster")) is not None:
            cluster_name(wanted)
        if bootstrap:
            clusters = _one(clusters, wanted, text("The bootstrap servers", bootstrap))
        if (why := not_a_folder(values.get("warehouse", ""))) is not None:
            raise UserError(why)
        hints = hints_of(cls)  # type: ignore[arg-type]
        given = {key: typed(key, value, hints[key]) for key, value in values.items()}
        _refuse_impossible(given)
        # Absolute, because Spark and Delta treat a relative path as a table name.
        warehouse = given.pop("warehouse", Path(".regroup/warehouse")).absolute()
        tables_of_file: dict[str, Any] = {
            "alertmanagers": managers,
            "webhooks": hooks,
            "readers": readers,
            "databricks": databricks,
        }
        return cls(clusters=clusters, warehouse=warehouse, **tables_of_file, **given)

    def secrets(self) -> tuple[str, ...]:
        """Return the existing passwords, tokens and keys, so that they can be removed from messages."""
        found = []
        for key, value in self._declared_secrets():
            with suppress(UserError):
                found.append(secret(key, value))
        return tuple(value for value in found if value)

    def literal_secrets(self) -> tuple[str, ...]:
        """Return the keys whose settings contain the secret itself instead of a reference."""
        return tuple(
            dict.fromkeys(key for key, value in self._declared_secrets() if value and not value.startswith(REFERENCES))
        )

    def _declared_secrets(self) -> list[tuple[str, str]]:
        secrets = [(k, value) for cluster in self.clusters for k, value in cluster.kafka.items() if SECRET.search(k)]
        secrets += [("pages_token", self.pages_token), ("client_host_key", self.client_host_key)]
        secrets += [(hook.name, hook.secret) for hook in self.webhooks]
        if self.databricks:
            secrets += [("token", self.databricks.token), ("client_secret", self.databricks.client_secret)]
        return secrets

    @property
    def limits(self) -> Limits:
        """Return the limits on sizes that clients choose."""
        return Limits(resources=self.max_resources, groups=self.max_groups, name_bytes=self.max_name_bytes)

    def hosts(self) -> ClientHosts:
        """Return the policy for clients' addresses.

        Raises:
            UserError: the key for hashing is missing.
        """
        policy = HostPolicy(self.client_host)
        if policy != HostPolicy.HASH:
            return ClientHosts(policy=policy)
        key = secret("The setting client_host_key", self.client_host_key)
        return ClientHosts(policy=policy, key=key.encode())

    def only(self, name: str | None = None) -> Cluster:
        """Return the cluster called `name`, or the only cluster.

        Raises:
            UserError: no cluster has this name, or there is no name and not exactly one cluster.
        """
        chosen = [c for c in self.clusters if name in (None, c.name)]
        if len(chosen) == 1:
            return chosen[0]
        names = ", ".join(c.name for c in self.clusters) or "none"
        raise UserError(
            f"Which cluster? Name one with --cluster (known: {names}), or give --bootstrap-servers HOST:PORT."
        )


def _file(path: Path) -> dict[str, Any]:
    try:
        with path.open(encoding="utf-8") as file:
            content = file.read(LONGEST_FILE + 1)
        if len(content) > LONGEST_FILE:
            raise UserError(f"The settings file {path} has more than {LONGEST_FILE:,} characters: give the right file.")
        return tomllib.loads(content)
    except FileNotFoundError:
        raise UserError(f"There is no settings file {path}: give an existing one with --config.") from None
    except ValueError as error:
        raise UserError(f"The settings file {path} is not valid TOML: {error}.") from None
    except RecursionError:
        raise UserError(f"The settings file {path} is nested too deeply: write flat tables.") from None
    except OSError as error:
        raise UserError(f"The settings file {path} cannot be read: {error.strerror}.") from None


def _readers(declared: dict[str, Any]) -> Any:
    """Remove [readers] from the file's content and return it.

    Raises:
        UserError: [readers] is empty. An empty list would let everybody see everything, which is never the intention.
    """
    readers = declared.pop("readers", None)
    if readers is not None and not readers:
        raise UserError('[readers] names nobody: write name = ["prefix"] in lines below it, or remove it.')
    return readers or {}


def _refuse_blank(declared: Mapping[str, Any], environment: Mapping[str, str]) -> None:
    """Raise `UserError` for an empty secret or access rule. Most often, a variable was not set."""
    for key in ("pages_token", "client_host_key"):
        if key in declared and not str(declared[key]).strip():
            raise UserError(f"The setting {key} is empty: write env:NAME or file:PATH, or remove it.")
    for key in ("pages_token", "client_host_key", "trusted_proxies", "identity_header"):
        name = f"REGROUP_{key.upper()}"
        if name in environment and not environment[name].strip():
            raise UserError(f"The environment variable {name} is empty: give it a value, or unset it.")


def _refuse_impossible(given: Mapping[str, Any]) -> None:
    if not 0 < given.get("availability_target", 0.5) < 1:
        raise UserError("The setting availability_target must lie between 0 and 1, such as 0.999 for 99.9 %.")
    policy, key = given.get("client_host", HostPolicy.KEEP), given.get("client_host_key", "")
    if policy not in set(HostPolicy):
        raise UserError(f"The setting client_host must be {', '.join(HostPolicy)}, but is {policy!r}.")
    if (key or policy == HostPolicy.HASH) and not key.startswith(("env:", "file:")):
        raise UserError(
            'The setting client_host_key must refer to the key for client_host = "hash": write env:NAME or file:PATH.'
        )
    for key in ("keep_commits_days", "keep_bronze_days", "keep_operations_days", "vacuum_days"):
        if given.get(key, 0) < 0:
            raise UserError(f"The setting {key} must be at least 0 days, but is {given[key]}.")
    for key in ("max_resources", "max_groups", "max_name_bytes"):
        if given.get(key, 1) < 1:
            raise UserError(f"The setting {key} must be a whole number of at least 1, but is {given[key]}.")
    for key in ("dashboard_url", "runbook_url"):
        if given.get(key) and not given[key].startswith(("http://", "https://")):
            raise UserError(f"The setting {key} must be an address with http:// or https://, but is {given[key]!r}.")


def _cluster(name: str, declared: Any, environment: Mapping[str, str]) -> Cluster:
    place = f"[clusters.{name}]"
    cluster_name(name)
    declared = dict(table(f"clusters.{name}", declared))
    options = table(f"clusters.{name}.kafka", declared.pop("kafka", {}))
    kafka = {key: _option(f"The Kafka option {key} in {place}", value) for key, value in options.items()}
    refuse_code(f"[clusters.{name}.kafka]", kafka, environment)
    refuse_unknown(declared, {f.name for f in fields(Cluster)} - {"name"}, place)
    if "bootstrap_servers" not in declared:
        raise UserError(f'{place} has no bootstrap_servers: add bootstrap_servers = "host:9092".')
    logs = tuple(_log(f"[[clusters.{name}.logs]]", each) for each in _tables(f"clusters.{name}.logs", declared))
    bound = _tables(f"clusters.{name}.event_sources", declared)
    sources = tuple(_event_source(f"[[clusters.{name}.event_sources]]", each) for each in bound)
    cluster = Cluster(name=name, kafka=kafka, logs=logs, event_sources=sources, **all_typed(Cluster, declared, place))
    _readable(place, cluster.events_layout, cluster.events_zone)
    if cluster.events_max_message_bytes < 1:
        raise UserError(f"In {place}, events_max_message_bytes must be at least 1 byte.")
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


def _databricks(declared: Any) -> Warehouse | None:
    if declared is None:
        return None
    place = "[databricks]"
    if not isinstance(declared, dict):
        raise UserError(f"databricks must be a table: write {place} on a line of its own.")
    refuse_unknown(declared, {f.name for f in fields(Warehouse)}, place)
    for key, such_as in WANTED.items():
        if not declared.get(key):
            raise UserError(f'{place} has no {key}: add {key} = "{such_as}".')
    if "/" not in str(declared["tables"]) and str(declared["tables"]).count(".") != 1:
        raise UserError(
            f"In {place}, tables must be catalog.schema or a folder, but is {quoted_value(declared['tables'])}."
        )
    if tuple(bool(declared.get(key)) for key in ("token", "client_id", "client_secret")) not in WAYS_IN:
        raise UserError(f'{place} needs token = "env:NAME", or client_id and client_secret of a service principal.')
    return Warehouse(**all_typed(Warehouse, declared, place))


def _log(place: str, declared: Any) -> LogFile:
    if not isinstance(declared, dict) or "path" not in declared:
        raise UserError(f'{place} has no path: add path = "/path/to/server.log".')
    refuse_unknown(declared, {f.name for f in fields(LogFile)}, place)
    log = LogFile(**all_typed(LogFile, declared, place))
    _readable(place, log.layout, log.zone)
    return log


def _event_source(place: str, declared: Any) -> EventSource:
    if not isinstance(declared, dict) or not isinstance(declared.get("topic"), str) or not declared["topic"]:
        raise UserError(f'{place} has no topic: add topic = "NAME", the topic that this source writes to.')
    refuse_unknown(declared, {f.name for f in fields(EventSource)}, place)
    header, brokers, kinds = declared.get("header", ""), declared.get("brokers", []), declared.get("kinds", [])
    if not isinstance(header, str) or (header and not all(header.partition("=")[::2])):
        raise UserError(f'In {place}, header must be "NAME=VALUE", but is {header!r}.')
    if not isinstance(brokers, list) or not all(type(each) is int and each >= 0 for each in brokers):
        raise UserError(f"In {place}, brokers must be a list of broker ids such as [1, 2], but is {brokers!r}.")
    if not isinstance(kinds, list) or not all(each in list(Claim) for each in kinds):
        raise UserError(f"In {place}, kinds must be a list of {', '.join(Claim)}, but is {kinds!r}.")
    return EventSource(
        topic=declared["topic"], header=header, brokers=tuple(brokers), kinds=tuple(Claim(each) for each in kinds)
    )


def _readable(place: str, wanted: str, zone_name: str) -> None:
    try:
        layout(wanted)
        zone(zone_name)
    except ValueError as error:
        raise UserError(f"In {place}: {error}") from None
    except (OverflowError, RecursionError):
        raise UserError(f"In {place}, the log layout is too large or nested too deeply: shorten it.") from None


def _one(clusters: tuple[Cluster, ...], name: str | None, bootstrap: str) -> tuple[Cluster, ...]:
    """Return the one cluster that a flag names, with the settings that the file has for it."""
    for cluster in clusters:
        if cluster.name == name or (name is None and len(clusters) == 1):
            return (replace(cluster, bootstrap_servers=bootstrap),)
    return (Cluster(name=name or DEFAULT_CLUSTER, bootstrap_servers=bootstrap),)
