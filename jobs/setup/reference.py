"""Generates reference documents from the source: `python -m jobs.setup.reference`.

Writes docs/tables.md, docs/states.md, docs/settings.md, docs/clients.md, docs/api.md and schemas/rows.py.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, fields
from pathlib import Path
from textwrap import wrap
from typing import Any

from dashboards.lake.databricks_warehouse import Warehouse
from jobs.config.clusters import Cluster, LogFile
from jobs.config.otlp_section import Otlp
from jobs.config.receivers import Alertmanager, Webhook
from jobs.config.report_section import ReportMail, ReportWebhook, WeeklyReport
from jobs.config.settings import TABLES as SECTIONS
from jobs.config.settings import Settings
from jobs.setup.api_document import api_document
from jobs.setup.clients_document import clients_document
from jobs.setup.row_types import rows_module
from pipelines.event_sources import EventSource
from schemas.bronze import BRONZE
from schemas.gold import GOLD
from schemas.operations import OPERATIONS
from schemas.silver import REASSIGNMENT_TABLES, SILVER
from schemas.states import Vocabulary
from schemas.tables import SCHEMA_VERSION, Column, Table
from schemas.views import VIEWS

DOCS = Path(__file__).resolve().parents[2] / "docs"
ROWS = DOCS.parent / "schemas" / "rows.py"
LAYERS: Mapping[str, tuple[Iterable[Table], str]] = {
    "Bronze": (BRONZE, "The data as read, append only. Written by `ingest`, `poll` and `replay`."),
    "Silver": (
        (*SILVER, *REASSIGNMENT_TABLES),
        "The history of each group and of each reassignment. Written by `build`.",
    ),
    "Gold": (GOLD, "Health, diagnoses, patterns, advice, storms, marks and alerts. Written by `analyze` and `notify`."),
    "Operations": (OPERATIONS, "The state of Regroup itself. Written by every job and by `quality`."),
}
STATES = re.compile(r"schemas\.states\.(\w+)")
"""The reference to a vocabulary in a column's comment."""

TOP = {
    "warehouse": "place of the Delta tables, and of checkpoints, locks and states: a folder, or an address in an "
    "object store, such as `s3a://bucket/regroup` (docs/storage.md)",
    "tables": "where Spark keeps the tables if they are not in the folder: `catalog.schema`, or an address such as "
    "`s3a://bucket/regroup`; permanent once a job has run (docs/storage.md)",
    "quiet_ms": "pause without a rebalance that ends an episode of a group, in milliseconds",
    "trigger_seconds": "seconds between two batches of `ingest`, `build` and `up`",
    "analyze_seconds": "seconds between two runs of `analyze`, alone or within `up`",
    "quality_seconds": "seconds between two runs of `quality`, alone or within `up`",
    "client_host": "how to store client addresses: keep, truncate or hash ([security.md](security.md))",
    "client_host_key": 'key for `client_host = "hash"`, by reference',
    "maintain_seconds": "seconds between two runs of `maintain`, alone or within `up`",
    "keep_commits_days": "days to keep rows of `offset_commits`; 0 = forever",
    "keep_bronze_days": "days to keep log lines, observations and the quarantine; 0 = forever",
    "keep_operations_days": "days to keep rows of `job_runs` and `quality_results`; 0 = forever",
    "vacuum_days": "days to keep files of old table versions",
    "max_resources": "maximum number of partitions or tasks of a generation; losses of a larger one are not computed",
    "max_groups": "maximum number of groups of a cluster that are built; records of further groups stay in bronze",
    "max_name_bytes": "maximum size of a name in bytes; groups with longer ids are not built, other names are cut",
    "worth_resource_seconds": "resource-seconds in a window that advice must save to be recommended",
    "worth_ratio": "part of the loss in a window that advice must save to be recommended",
    "cores": "number of threads of the local Spark",
    "ingest_tasks": "maximum number of tasks that read one batch of a topic in a session that is provided, one for "
    "each partition with new records; a local Spark has as many as `cores` ([clusters](clusters.md))",
    "driver_memory": "memory of the local Spark",
    "capture_mb": "memory for the content of a capture, in MB; larger captures are rejected",
    "host": "address on which the pages listen; if it is not loopback, `pages_token` or `trusted_proxies` is required",
    "port": "port on which the pages listen",
    "pages_token": "token that readers of the pages must enter, by reference",
    "trusted_proxies": "networks of the proxies that authenticate readers, comma-separated",
    "identity_header": "request header in which a trusted proxy names the reader",
    "groups_header": "request header in which a trusted proxy lists the reader's user groups",
    "pages_hosts": "host names allowed in requests from a trusted proxy, besides `host` and that of `dashboard_url`; "
    "comma-separated",
    "notify_seconds": "seconds between two checks of `notify`",
    "resend_seconds": "seconds after which a firing alert is sent again",
    "stale_seconds": "age of the newest record, in seconds, at which Regroup's data of a cluster counts as stale",
    "stuck_seconds": "length of a rebalance, in seconds, at which a group counts as stuck",
    "availability_target": "part of its resource-time during which a group should work, for the burn-rate alert",
    "dashboard_url": "address of the pages, for links in alerts; with https://, the readers' cookie is `Secure`",
    "runbook_url": "address of the runbooks, for links in alerts; if empty, the runbooks of the pages",
    "metrics_port": "port of the Prometheus metrics; 0 = no metrics",
    "metrics_host": "address on which the metrics listen; if it is not loopback, `metrics_token` is required",
    "metrics_token": "token that scrapers must send as `Authorization: Bearer`, by reference",
    "metrics_groups": "number of groups with time series of their own; the groups that lost most are chosen",
}
CLUSTER = {
    "bootstrap_servers": "brokers for the first connection, `host:port,host:port`",
    "kafka": "table of librdkafka options, passed through unchanged; a value may be a reference",
    "events_topic": "topic with the brokers' log lines and Regroup's own events",
    "events_zone": "time zone of these log lines",
    "events_layout": "layout of these log lines, if it is not detected: a known name, a log4j pattern, or a regular "
    "expression; see [logs.md](logs.md)",
    "events_max_message_bytes": "maximum size of a message on an events topic in bytes; larger ones are quarantined",
    "max_offsets_per_trigger": "maximum number of records in a batch",
    "quarantine_fuse": "stop without writing more if over 1,000 records in a row or 5 % of them cannot be decoded",
    "logs": "log files on this machine, `[[clusters.NAME.logs]]`, below",
    "event_sources": "which source may send which events on which topic, `[[clusters.NAME.event_sources]]`, below",
}
EVENT_SOURCE = {
    "topic": "topic to read for this source, in place of `events_topic`; ACLs restrict who may write to the topic",
    "header": "record header that its messages have exactly once, `NAME=VALUE`; none: all messages of the topic",
    "brokers": "ids of the brokers and controllers whose log lines the source may send; none: any",
    "kinds": "permitted content: coordinator, controller or connect (log lines), mark, kubernetes, client_metrics, "
    "admin; none: any",
}
LOG = {
    "path": "path of the file; rotations are followed",
    "layout": "layout of its lines, if it is not detected; see [logs.md](logs.md)",
    "zone": "time zone of its timestamps",
    "broker_id": "id of the broker that writes the file, if the lines do not contain it",
}
MANAGER = {
    "url": "base address of its API",
    "name": "its name in logs and tables",
    "plain_http": "allow an address on another machine without TLS",
}
HOOK = {
    "url": "address that accepts a POST",
    "secret": "key that signs the request bodies, by reference",
    "name": MANAGER["name"],
}
WAREHOUSE = {
    "server_hostname": "host name of the workspace",
    "http_path": "HTTP path of the SQL warehouse",
    "tables": "`catalog.schema`, or the folder to which the jobs write",
    "token": "personal access token, by reference",
    "client_id": "client id of a service principal, instead of a token",
    "client_secret": "OAuth secret of the service principal, by reference",
}
REPORT = {
    "day": "day of the week on which the report of the week before is sent",
    "time": "time of that day, `HH:MM`; a report is sent up to two days late",
    "zone": "zone of `day` and `time`, and of the week, which begins on Monday at 00:00",
    "webhooks": "chats that get it, `[[report.webhooks]]`, below",
    "mails": "mail servers and addresses that get it, `[[report.mails]]`, below",
}
REPORT_HOOK = {
    "name": "its name in logs, tables and metrics",
    "url": "address of an incoming webhook that takes Slack's messages, by reference: it is a secret",
    "team": "send only what concerns the groups of this team of `[teams]`; `none`: of groups without a team",
}
REPORT_MAIL = {
    "name": REPORT_HOOK["name"],
    "team": REPORT_HOOK["team"],
    "server": "host name of the mail server",
    "port": "its port",
    "security": "`starttls`, `tls`, or `none`, which only a server on this machine may have",
    "user": "user of the mail server; none: no login",
    "password": "password of that user, by reference",
    "sender": "address from which the mail comes",
    "to": "list of the addresses that get it",
}
OTLP = {
    "endpoint": "base address of the collector, such as `https://otel.example.com:4318`; `/v1/traces` is added",
    "headers": "headers of each request, such as the login; each value by reference",
    "resource": "further attributes of the resource, such as `deployment.environment.name`",
    "traces": "send a trace for each completed rebalance, deploy and storm",
    "metrics": "send the numbers of the metrics page each minute",
    "logs": "send a log record when an alert is raised or resolved",
    "max_hours": "what ended longer ago than this is not sent any more, but counted",
    "plain_http": "allow HTTP without TLS to another machine, in a network that you trust",
}
SECTION_TEXT: tuple[tuple[str, type, Mapping[str, str]], ...] = (
    ("`[clusters.NAME]`: a Kafka cluster", Cluster, CLUSTER),
    ("`[[clusters.NAME.logs]]`: a log file of the cluster", LogFile, LOG),
    ("`[[clusters.NAME.event_sources]]`: permitted events ([security.md](security.md))", EventSource, EVENT_SOURCE),
    ("`[[alertmanagers]]`", Alertmanager, MANAGER),
    ("`[[webhooks]]`", Webhook, HOOK),
    ("`[report]`: the weekly report ([weekly-report.md](weekly-report.md))", WeeklyReport, REPORT),
    ("`[[report.webhooks]]`", ReportWebhook, REPORT_HOOK),
    ("`[[report.mails]]`", ReportMail, REPORT_MAIL),
    ("`[otlp]`: OpenTelemetry ([see-rebalances-as-traces.md](how-to/see-rebalances-as-traces.md))", Otlp, OTLP),
    ("`[databricks]`: tables that `serve` reads through a SQL warehouse", Warehouse, WAREHOUSE),
)


def tables_document() -> str:
    """Return the text of docs/tables.md: every table with every column."""
    return "\n".join(_tables())


def _tables() -> Iterator[str]:
    yield "# Tables"
    yield ""
    yield f"Generated by `python -m jobs.setup.reference` from `schemas/`; schema version {SCHEMA_VERSION}."
    yield "Types are Spark SQL types. Timestamps are in UTC; columns ending in `_ms` are milliseconds. The key columns"
    yield "of a table are unique together and never NULL."
    for layer, (tables, about) in LAYERS.items():
        yield from ("", f"## {layer}", "", about)
        for table in tables:
            yield from ("", f"### {table.name}", "", *wrap(table.comment, 120), "")
            yield from ("| column | type | key | description |", "|---|---|---|---|")
            for column in table.columns:
                key = "yes" if column.name in table.key else ""
                yield f"| `{column.name}` | {column.type} | {key} | {_described(column)} |"
    yield from ("", "## Views", "")
    yield "Where tables have names (`--tables catalog.schema`), `analyze` also creates these views, with these comments"
    yield "([Regroup on Databricks](databricks.md#views))."
    for view in VIEWS:
        yield from ("", f"### {view.name}", "", *wrap(view.comment, 120), "")
        yield from ("| column | type | description |", "|---|---|---|")
        yield from (f"| `{column.name}` | {column.type} | {_described(column)} |" for column in view.columns)
    yield ""


def _described(column: Column) -> str:
    return STATES.sub(lambda found: f"[{found[1]}](states.md#{found[1].lower()})", _cell(column.comment))


def states_document() -> str:
    """Return the text of docs/states.md: every value that an enumerated column may have."""
    return "\n".join(_states())


def _states() -> Iterator[str]:
    yield "# States"
    yield ""
    yield "Generated by `python -m jobs.setup.reference` from `schemas/states.py`: the values of enumerated columns."
    for vocabulary in Vocabulary.__subclasses__():
        yield from ("", f"## {vocabulary.__name__}", "", inspect.getdoc(vocabulary) or "")
        if columns := _columns_of(vocabulary):
            yield from ("", f"In {', '.join(columns)}.")
        yield from ("", "| value | meaning |", "|---|---|")
        for value in vocabulary:
            yield f"| `{value}` | {_cell(value.says)} |"
    yield ""


def _columns_of(vocabulary: type[Vocabulary]) -> list[str]:
    return [
        f"`{table.name}.{column.name}`"
        for tables, _ in LAYERS.values()
        for table in tables
        for column in table.columns
        if vocabulary.__name__ in STATES.findall(column.comment)
    ]


def settings_document() -> str:
    """Return the text of docs/settings.md: every key of the settings file with its default."""
    return "\n".join(_settings())


def _settings() -> Iterator[str]:
    yield "# Settings"
    yield ""
    yield "Generated by `python -m jobs.setup.reference` from `jobs/config/settings.py`."
    yield ""
    yield "Settings are read from the TOML file given with `--config`. A top-level key can also be set with an"
    yield "environment variable, `REGROUP_` and the key's name in capitals. Environment variables take precedence over"
    yield "the file, and flags over both. An unknown key is an error, which suggests the nearest valid key."
    yield "*By reference* means `env:NAME` or `file:PATH` instead of the secret itself."
    yield from ("", "## At the top", "")
    yield from _keys((f for f in fields(Settings) if f.name not in SECTIONS), TOP)
    for title, kind, about in SECTION_TEXT:
        yield from ("", f"## {title}", "")
        yield from _keys((f for f in fields(kind) if f.name != "name" or kind is not Cluster), about)
    yield from ("", "## `[readers]`: who sees which groups", "")
    yield "Key: a reader's name, or `@GROUP` for a group of users. Value: prefixes of the group ids that they may see"
    yield "([serving.md](serving.md))."
    yield from ("", "## `[teams]`: which team a group belongs to", "")
    yield "Key: the team's name. Value: shell patterns of group ids (`*`, `?`, `[abc]`, `[a-z]`, `[!abc]`), or tables"
    yield 'such as `{ groups = "search-*", clusters = "prod-*" }` for some clusters only. The first match in the order'
    yield "of the file counts. Groups without a match have no team ([pages.md](pages.md#causes))."
    yield ""


def _keys(of: Iterable[Field[Any]], about: Mapping[str, str]) -> Iterator[str]:
    yield from ("| key | default | description |", "|---|---|---|")
    for each in of:
        yield f"| `{each.name}` | {_default(each)} | {_cell(about[each.name])} |"


def _default(of: Field[Any]) -> str:
    if of.default is MISSING:
        return "required" if of.default_factory is MISSING else "none"
    empty = of.default in ("", None, ())
    return "none" if empty else f"`{str(of.default).lower() if isinstance(of.default, bool) else of.default}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> int:
    """Write the documents and schemas/rows.py. Return the exit code."""
    (DOCS / "tables.md").write_text(tables_document(), encoding="utf-8")
    (DOCS / "states.md").write_text(states_document(), encoding="utf-8")
    (DOCS / "settings.md").write_text(settings_document(), encoding="utf-8")
    (DOCS / "clients.md").write_text(clients_document(), encoding="utf-8")
    (DOCS / "api.md").write_text(api_document(), encoding="utf-8")
    ROWS.write_text(rows_module(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
