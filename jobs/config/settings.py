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
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from dashboards.lake.address import ObjectStore, as_written
from dashboards.lake.databricks_warehouse import Warehouse
from dashboards.teams import Teams
from jobs.config.clusters import Cluster, cluster_name, read_cluster, with_bootstrap
from jobs.config.databricks_section import databricks_section
from jobs.config.declared import REFERENCES, hints_of, refuse_unknown, secret, table, text, typed
from jobs.config.errors import UserError
from jobs.config.otlp_section import Otlp, otlp_section
from jobs.config.places import place_of
from jobs.config.receivers import Alertmanager, Webhook, alertmanagers, refuse_same_names, webhooks
from jobs.config.report_section import WeeklyReport, report_section
from jobs.config.value_checks import refuse_blank, refuse_impossible
from pipelines.limits import CAPTURE_MB, GROUPS, NAME_BYTES, RESOURCES, Limits
from pipelines.silver.client_hosts import ClientHosts, HostPolicy

LONGEST_FILE = 1_000_000
TABLES = ("clusters", "alertmanagers", "webhooks", "readers", "databricks", "teams", "report", "otlp")
"""Keys that are tables of the file. They have neither flags nor environment variables."""
SECRET = re.compile(r"password|secret|token|jaas|pem$")
"""Kafka options whose value is a secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of all jobs. If no cluster is configured, `clusters` is empty and `up` starts a lab."""

    warehouse: Path = Path(".regroup/warehouse")
    tables: str = ""
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
    ingest_tasks: int = 64
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
    teams: Teams = field(default_factory=Teams)
    report: WeeklyReport | None = None
    otlp: Otlp | None = None
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
    metrics_host: str = "127.0.0.1"
    metrics_token: str = field(default="", repr=False)
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
        flag_values = {key: value for key, value in (flags or {}).items() if value is not None}
        declared = _file(file) if file else {}
        named = table("clusters", declared.pop("clusters", {}))
        clusters = tuple(read_cluster(name, content, environment) for name, content in named.items())
        managers, hooks = alertmanagers(declared.pop("alertmanagers", [])), webhooks(declared.pop("webhooks", []))
        refuse_same_names((*managers, *hooks))
        readers, databricks = _readers(declared), databricks_section(declared.pop("databricks", None))
        teams = _teams(declared)
        report = report_section(declared.pop("report", None), teams)
        otlp = otlp_section(declared.pop("otlp", None))
        known = {f.name for f in fields(cls)} - set(TABLES)
        refuse_unknown(declared, known | set(TABLES), f"the settings file {file}")
        refuse_blank(declared, environment)
        values = declared | {
            key: environment[name] for key in known if (name := f"REGROUP_{key.upper()}") in environment
        }
        bootstrap = flag_values.pop("bootstrap_servers", None) or environment.get("REGROUP_BOOTSTRAP_SERVERS")
        values |= {key: value for key, value in flag_values.items() if key in known}
        if (wanted := flag_values.get("cluster")) is not None:
            cluster_name(wanted)
        if bootstrap:
            clusters = with_bootstrap(clusters, wanted, text("The bootstrap servers", bootstrap))
        hints = hints_of(cls)  # type: ignore[arg-type]
        valid = {key: typed(key, value, hints[key]) for key, value in values.items()}
        refuse_impossible(valid)
        warehouse = _place(valid.pop("warehouse", Path(".regroup/warehouse")))
        tables_of_file: dict[str, Any] = {
            "alertmanagers": managers,
            "webhooks": hooks,
            "readers": readers,
            "databricks": databricks,
            "teams": teams,
            "report": report,
            "otlp": otlp,
        }
        return cls(clusters=clusters, warehouse=warehouse, **tables_of_file, **valid)

    @property
    def address(self) -> ObjectStore | None:
        """Return the place in an object store where the warehouse is; None if it is a folder."""
        place = place_of(self.warehouse)
        return None if isinstance(place, Path) else place

    @property
    def warehouse_text(self) -> str:
        """Return the folder of the warehouse, or its address as the user wrote it."""
        return as_written(self.warehouse)

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
        secrets += [(key, getattr(self, key)) for key in ("pages_token", "metrics_token", "client_host_key")]
        secrets += [(hook.name, hook.secret) for hook in self.webhooks]
        if self.report:
            secrets += [(f"report.webhooks {hook.name}", hook.url) for hook in self.report.webhooks]
            secrets += [(f"report.mails {mail.name}", mail.password) for mail in self.report.mails]
        if self.otlp:
            secrets += [(f"otlp.headers {name}", value) for name, value in self.otlp.headers.items()]
        if self.databricks:
            secrets += [("token", self.databricks.token), ("client_secret", self.databricks.client_secret)]
        return secrets

    @property
    def stale_ms(self) -> int:
        """Return the age in ms from which on the newest record is old."""
        return round(self.stale_seconds * 1000)

    @property
    def base_url(self) -> str:
        """Return the address of the pages without a slash at its end, as readers of alerts and answers reach them."""
        return (self.dashboard_url or f"http://{self.host}:{self.port}").rstrip("/")

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


def _place(warehouse: Path) -> Path:
    """Return an absolute folder, because Spark and Delta treat a relative path as a table name, or an address as it is.

    Raises:
        UserError: Regroup cannot read the address.
    """
    return warehouse.absolute() if isinstance(place_of(warehouse), Path) else warehouse


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


def _teams(declared: dict[str, Any]) -> Teams:
    """Remove [teams] from the file's content and return the teams. Raises `UserError` if a pattern is not valid."""
    try:
        return Teams.of(declared.pop("teams", {}))
    except ValueError as error:
        raise UserError(str(error)) from None
