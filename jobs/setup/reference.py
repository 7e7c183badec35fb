"""Documents from the source: `python -m jobs.setup.reference`.

It writes docs/tables.md, docs/states.md, docs/settings.md and schemas/rows.py.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

from dashboards.lake.databricks_warehouse import Warehouse
from jobs.config.receivers import Alertmanager, Webhook
from jobs.config.settings import TABLES as SECTIONS
from jobs.config.settings import Cluster, LogFile, Settings
from jobs.setup.row_types import rows_module
from pipelines.event_sources import EventSource
from schemas.bronze import BRONZE
from schemas.gold import GOLD
from schemas.operations import OPERATIONS
from schemas.silver import REASSIGNMENT_TABLES, SILVER
from schemas.states import Vocabulary
from schemas.tables import SCHEMA_VERSION, Table

DOCS = Path(__file__).resolve().parents[2] / "docs"
ROWS = DOCS.parent / "schemas" / "rows.py"
LAYERS: Mapping[str, tuple[Iterable[Table], str]] = {
    "Bronze": (BRONZE, "What was read, append only. Made by `ingest`, `poll` and `replay`."),
    "Silver": ((*SILVER, *REASSIGNMENT_TABLES), "Each group's history and each reassignment's. Made by `build`."),
    "Gold": (GOLD, "What to do about it. Made by `analyze` and `notify`."),
    "Operations": (OPERATIONS, "How Regroup itself fares. Made by every job and by `quality`."),
}
STATES = re.compile(r"schemas\.states\.(\w+)")
"""How a column's comment names the vocabulary of its values."""

TOP = {
    "warehouse": "folder of the Delta tables",
    "quiet_ms": "pause between two rebalances of a group that ends their episode, in milliseconds",
    "trigger_seconds": "time between two batches of `ingest`, `build` and `up`",
    "analyze_seconds": "time between two runs of `analyze`, alone or within `up`",
    "quality_seconds": "time between two runs of `quality`, alone or within `up`",
    "client_host": "what clients' addresses become: keep, truncate or hash ([security.md](security.md))",
    "client_host_key": "key for hash, by reference",
    "maintain_seconds": "time between two runs of `maintain`, alone or within `up`",
    "keep_commits_days": "days that `offset_commits` keeps its rows; 0 = for good",
    "keep_bronze_days": "days that log lines, observations and the quarantine are kept; 0 = for good",
    "keep_operations_days": "days that `job_runs` and `quality_results` keep their rows; 0 = for good",
    "vacuum_days": "days that files of old versions stay",
    "max_resources": "partitions or tasks that a generation may have; a larger one is not costed",
    "max_groups": "groups of a cluster that are built; records of further ones stay in bronze",
    "max_name_bytes": "bytes of a group id or another name; groups with longer ids are not built, other names are cut",
    "worth_resource_seconds": "resource-seconds of a window below which no advice is worth following",
    "worth_ratio": "part of what is lost that advice must save to be worth following",
    "cores": "threads of the local Spark",
    "driver_memory": "memory of the local Spark",
    "capture_mb": "memory that the content of a capture may take in `replay`, in MB; a larger capture is refused",
    "host": "address the pages listen on; other than loopback needs `pages_token` or `trusted_proxies`",
    "port": "port the pages listen on",
    "pages_token": "token that readers of the pages must know, by reference",
    "trusted_proxies": "networks of proxies that say who reads, with commas between them",
    "identity_header": "header in which a trusted proxy says who reads",
    "groups_header": "header in which it says of which groups of people",
    "pages_hosts": "host names by which it asks for the pages, besides `host` and that of `dashboard_url`, with commas",
    "notify_seconds": "time between two looks of `notify`",
    "resend_seconds": "time after which a standing alert is sent again",
    "stale_seconds": "age of the newest record at which Regroup calls itself blind",
    "stuck_seconds": "length of a rebalance at which a group counts as stuck",
    "availability_target": "part of its resource-time that a group should work, for the burn-rate alert",
    "dashboard_url": "address of the pages, for links in alerts; https:// makes the readers' cookie `Secure`",
    "runbook_url": "address of the runbooks, for links in alerts; empty: those of the pages",
    "metrics_port": "loopback port of the metrics for Prometheus; 0 for none",
    "metrics_groups": "groups with series of their own, those that lost most",
}
CLUSTER = {
    "bootstrap_servers": "brokers to begin with, `host:port,host:port`",
    "kafka": "table of librdkafka options, passed through; a value may be a reference",
    "events_topic": "topic with the brokers' log lines and Regroup's own events",
    "events_zone": "zone of the times in those lines",
    "events_layout": "layout of those lines: default, strimzi, or a pattern with named fields",
    "events_max_message_bytes": "bytes of a message on an events topic; a larger one is quarantined",
    "max_offsets_per_trigger": "records of a batch at most",
    "quarantine_fuse": "stop before more is written where over 1,000 records in a row or 5 % cannot be decoded",
    "logs": "log files on this machine, `[[clusters.NAME.logs]]`, below",
    "event_sources": "who may say what on which events topic, `[[clusters.NAME.event_sources]]`, below",
}
EVENT_SOURCE = {
    "topic": "topic that is read for this source, in place of `events_topic`; ACLs say who may write to it",
    "header": "record header that its messages have exactly once, `NAME=VALUE`; none: all messages of the topic",
    "brokers": "ids of the brokers and controllers whose lines it may send; none: of any",
    "kinds": "what it may send: coordinator, controller, connect (lines of these), mark, admin; none: any",
}
LOG = {
    "path": "file, followed across rotations",
    "layout": "layout of its lines",
    "zone": "zone of its times",
    "broker_id": "broker that writes it, where the lines do not say",
}
MANAGER = {
    "url": "address below which its API is",
    "name": "what it is called in logs and tables",
    "plain_http": "allow an address elsewhere without TLS",
}
HOOK = {
    "url": "address that takes a POST",
    "secret": "what bodies are signed with, by reference",
    "name": MANAGER["name"],
}
WAREHOUSE = {
    "server_hostname": "host of the workspace",
    "http_path": "path of the SQL warehouse",
    "tables": "`catalog.schema`, or the folder that the jobs write",
    "token": "personal access token, by reference",
    "client_id": "service principal, instead of a token",
    "client_secret": "its secret, by reference",
}
SECTION_TEXT: tuple[tuple[str, type, Mapping[str, str]], ...] = (
    ("`[clusters.NAME]`: a Kafka cluster", Cluster, CLUSTER),
    ("`[[clusters.NAME.logs]]`: a log file of it", LogFile, LOG),
    ("`[[clusters.NAME.event_sources]]`: who may write what ([security.md](security.md))", EventSource, EVENT_SOURCE),
    ("`[[alertmanagers]]`", Alertmanager, MANAGER),
    ("`[[webhooks]]`", Webhook, HOOK),
    ("`[databricks]`: tables that `serve` reads through a SQL warehouse", Warehouse, WAREHOUSE),
)


def tables_document() -> str:
    """docs/tables.md: every table with every column."""
    return "\n".join(_tables())


def _tables() -> Iterator[str]:
    yield "# Tables"
    yield ""
    yield f"Written by `python -m jobs.setup.reference` from `schemas/`; schema version {SCHEMA_VERSION}."
    yield "Types are Spark SQL's; instants are UTC, `_ms` milliseconds. Key columns are together unique and never NULL."
    for layer, (tables, about) in LAYERS.items():
        yield from ("", f"## {layer}", "", about)
        for table in tables:
            yield from ("", f"### {table.name}", "", table.comment, "")
            yield from ("| column | type | key | what |", "|---|---|---|---|")
            for column in table.columns:
                key = "yes" if column.name in table.key else ""
                told = STATES.sub(lambda found: f"[{found[1]}](states.md#{found[1].lower()})", _cell(column.comment))
                yield f"| `{column.name}` | {column.type} | {key} | {told} |"
    yield ""


def states_document() -> str:
    """docs/states.md: every value that an enumerated column may have."""
    return "\n".join(_states())


def _states() -> Iterator[str]:
    yield "# States"
    yield ""
    yield "Written by `python -m jobs.setup.reference` from `schemas/states.py`: every value of the columns that"
    yield "have few."
    for vocabulary in Vocabulary.__subclasses__():
        yield from ("", f"## {vocabulary.__name__}", "", inspect.getdoc(vocabulary) or "")
        if columns := _columns_of(vocabulary):
            yield from ("", f"In {', '.join(columns)}.")
        yield from ("", "| value | what it tells |", "|---|---|")
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
    """docs/settings.md: every key of the settings file with its default."""
    return "\n".join(_settings())


def _settings() -> Iterator[str]:
    yield "# Settings"
    yield ""
    yield "Written by `python -m jobs.setup.reference` from `jobs/config/settings.py`. A TOML file given with"
    yield "`--config`; a key at the top also as an environment variable, `REGROUP_` and its name in capitals, which"
    yield "wins over the file, as flags win over both. Unknown keys are refused with the nearest valid one."
    yield "*By reference*: `env:NAME` or `file:PATH`, never the secret itself."
    yield from ("", "## At the top", "")
    yield from _keys((f for f in fields(Settings) if f.name not in SECTIONS), TOP)
    for title, kind, about in SECTION_TEXT:
        yield from ("", f"## {title}", "")
        yield from _keys((f for f in fields(kind) if f.name != "name" or kind is not Cluster), about)
    yield from ("", "## `[readers]`: who sees which groups", "")
    yield "A name (or `@GROUP`) and the prefixes of group ids that it may see: see [serving.md](serving.md)."
    yield ""


def _keys(of: Iterable[Field[Any]], about: Mapping[str, str]) -> Iterator[str]:
    yield from ("| key | default | what |", "|---|---|---|")
    for each in of:
        yield f"| `{each.name}` | {_default(each)} | {_cell(about[each.name])} |"


def _default(of: Field[Any]) -> str:
    if of.default is MISSING:
        return "needed" if of.default_factory is MISSING else "none"
    empty = of.default in ("", None, ())
    return "none" if empty else f"`{str(of.default).lower() if isinstance(of.default, bool) else of.default}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> int:
    """Write them; returns the exit code."""
    (DOCS / "tables.md").write_text(tables_document(), encoding="utf-8")
    (DOCS / "states.md").write_text(states_document(), encoding="utf-8")
    (DOCS / "settings.md").write_text(settings_document(), encoding="utf-8")
    ROWS.write_text(rows_module(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
