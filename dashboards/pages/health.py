"""Health: what Regroup has read, missed and failed to read. The page to open when the others look wrong."""

from __future__ import annotations

from dash import html
from dash.development.base_component import Component

from dashboards.freshness import is_stale
from dashboards.lake.lake import Row
from dashboards.pages.operations import Operations
from dashboards.queries.health_store import GAP_ROWS, HealthStore, newest_records
from dashboards.queries.store import Store
from dashboards.text import ABSENT, duration, future, instant, is_ahead, visible
from dashboards.urlstate import State
from dashboards.views.cluster_patterns import lasting_patterns
from dashboards.views.components import Cell, empty, table_panel, tile
from dashboards.views.health.reasons import LIMITS, REASONS, not_read
from schemas.bronze import BRONZE
from schemas.gold import GOLD
from schemas.operations import OPERATIONS
from schemas.silver import REASSIGNMENT_TABLES, SILVER
from schemas.unread_lines import REMEDIES
from schemas.written import count

SOURCE_HEAD = (
    "Cluster", "Source", "Newest record (UTC)", "Age", "First record (UTC)", "Partitions", "Read", "Skipped",
    "Quarantined", "Gaps",
)  # fmt: skip
LAYERS = (("bronze", BRONZE), ("silver", (*SILVER, *REASSIGNMENT_TABLES)), ("gold", GOLD), ("operations", OPERATIONS))
JOBS = {
    "bronze": "ingest, poll",
    "silver": "build",
    "gold": "analyze, notify",
    "operations": "every job, quality",
}


def render(store: Store, _: State, now: int) -> list[Component]:
    health = HealthStore(store.lake)
    sources = health.sources()
    operations = Operations.of(health, now)
    head = html.Div([html.H1("Health of Regroup")], className="head")
    if not sources:
        text = "Nothing has been read yet: run “regroup up”, “regroup ingest” or “regroup replay”."
        return [head, empty("missing", "Nothing here yet", text), *(operations.panels() if operations.runs else ())]
    quarantined = health.quarantine()
    unread = health.unread()
    gaps = health.gaps()
    missed = gaps.rows[0]["total"] if gaps.rows else 0
    refusals = health.refusals()
    return [
        head,
        html.P(_summary(sources, quarantined, unread, missed, refusals, operations), className="summary"),
        html.Div([*_tiles(sources, quarantined, missed, refusals, now), *operations.tiles()], className="tiles many"),
        *lasting_patterns(health.patterns()),
        table_panel(
            "Sources", "What was read, per topic, log file and poll.", SOURCE_HEAD, [_source(s, now) for s in sources]
        ),
        *(html.P(text, className="notice") for text in not_read(health, sources)),
        _gaps(gaps.rows, missed),
        _quarantine(quarantined),
        _unread(unread),
        _limits(health),
        _refusals(refusals),
        *operations.panels(),
        _tables(health, now),
    ]


def _summary(
    sources: list[Row],
    quarantined: list[Row],
    unread: list[Row],
    missed: int,
    refusals: list[Row],
    operations: Operations,
) -> str:
    newest, of = _furthest_from(sources, operations.now)
    fresh = f"the time of the newest record{of} is not known"
    if newest is not None and is_ahead(newest, operations.now):
        fresh = f"the newest record{of} is {future(newest - operations.now)}"
    elif newest is not None:
        fresh = f"the newest record{of} is {_age(newest, operations.now)} old"
        if is_stale(newest, operations.now):
            fresh += ": either nothing has been written since, or nothing was read"
    lost = sum(row["records"] for row in quarantined)
    lines = sum(row["lines"] for row in unread if row["position"] == 1)
    parts = [
        f"{count(len(sources), 'source')} read; {fresh}",
        f"{count(lost, 'record')} in quarantine" if lost else "nothing in quarantine",
        *([f"{count(lines, 'log line')} in an unknown layout or with an unknown text"] if lines else []),
        f"{count(missed, 'span')} not read" if missed else "no gap",
        f"{count(len(refusals), 'call')} to brokers failed or was refused"
        if refusals
        else "no call to a broker refused",
        *operations.summary(),
    ]
    return "; ".join(parts) + "."


def _furthest_from(sources: list[Row], now: int) -> tuple[int | None, str]:
    """Return the newest record that is furthest from now, of all clusters, and of which, if there are several."""
    found = newest_records(sources)
    name, newest = max(found.items(), key=lambda item: abs(now - (item[1] or 0)))
    return newest, f" of {visible(name, 40)}" if len(found) > 1 else ""


def _tiles(sources: list[Row], quarantined: list[Row], missed: int, refusals: list[Row], now: int) -> list[Component]:
    newest, of = _furthest_from(sources, now)
    ahead = newest is not None and is_ahead(newest, now)
    age = "unknown" if newest is None else _age(newest, now)
    lost = sum(row["records"] for row in quarantined)
    read = sum(s["records"] for s in sources)
    return [
        tile("Newest record", age if newest is None or ahead else f"{age} old", f"{instant(newest)[:19]}{of}",
             loud=newest is None or ahead or is_stale(newest, now)),
        tile("Read", f"{read:,}", "records and lines"),
        tile("In quarantine", f"{lost:,}", "kept raw, with a reason", loud=lost > 0),
        tile("Not read", f"{missed:,}", "spans of offsets or time", loud=missed > 0),
        tile("Refused or failed", f"{len(refusals):,}", "calls to brokers", loud=bool(refusals)),
    ]  # fmt: skip


def _age(at: int, now: int) -> str:
    return "in the future" if is_ahead(at, now) else duration(max(0, now - at))


def _source(row: Row, now: int) -> list[Cell]:
    last = row["last_at"]
    age = ABSENT if last is None else _age(last, now)
    return [
        visible(row["cluster"], 40),
        visible(row["source"], 60),
        instant(last)[:19],
        age,
        instant(row["first_at"])[:19],
        int(row["partitions"]),
        int(row["records"]),
        int(row["skipped"]),
        int(row["quarantined"]),
        int(row["gaps"]),
    ]


def _gaps(rows: list[Row], total: int) -> Component:
    more = f" The first {GAP_ROWS:,} of {total:,}." if total > GAP_ROWS else ""
    return table_panel(
        "Gaps",
        f"Spans that were not read. They are drawn as not observed.{more}",
        ("Cluster", "Source", "Partition", "From offset", "To offset", "Why"),
        [
            [
                visible(row["cluster"], 40),
                visible(row["source"], 60),
                ABSENT if row["source_partition"] < 0 else str(row["source_partition"]),
                # The spans of polls are times, not offsets.
                instant(row["from_offset"])[:19] if row["source"] == "poll" else f"{row['from_offset']:,}",
                instant(row["to_offset"])[:19] if row["source"] == "poll" else f"{row['to_offset']:,}",
                visible(row["gap_reason"], 200),
            ]
            for row in rows
        ],
        nothing="None: every offset since the first one read is in the tables.",
    )


def _quarantine(rows: list[Row]) -> Component:
    return table_panel(
        "Quarantine",
        "Records and lines that could not be read, kept raw in the table quarantine.",
        ("Cluster", "Source", "Reason", "Records", "Last (UTC)", "Detail of the last one"),
        [
            [
                visible(row["cluster"], 40),
                visible(row["source"], 60),
                visible(row["reason"]),
                int(row["records"]),
                instant(row["last_at"])[:19],
                visible(row["detail"], 200),
            ]
            for row in rows
        ],
        nothing="Nothing: every record that was read could be decoded.",
    )


def _unread(rows: list[Row]) -> Component:
    return table_panel(
        "Log lines not read",
        "Lines of coordinators, controllers and Connect workers that may describe a rebalance, in an unknown layout or "
        "with an unknown text. A few lines of each batch are kept in the table quarantine.",
        ("Cluster", "Source", "Reason", "Lines", "Line", "What helps"),
        [
            [
                visible(row["cluster"], 40),
                visible(row["source"], 60),
                visible(row["reason"]),
                int(row["lines"]) if row["position"] == 1 else ABSENT,
                visible(row["detail"], 300) if row["detail"] else ABSENT,
                REMEDIES[row["reason"], row["source_partition"] < 0] if row["position"] == 1 else ABSENT,
            ]
            for row in rows
        ],
        nothing="None: every line of a coordinator, a controller or a Connect worker has a known layout and text.",
    )


def _limits(health: HealthStore) -> Component:
    rows: list[list[Cell]] = [
        [
            visible(row["cluster"], 40),
            f"{count(row['groups'], 'group')} not built",
            LIMITS[row["limit_name"]].format(allowed=row["allowed"]),
            visible(row["example"], 60),
            instant(row["reached_at"])[:19],
        ]
        for row in health.limits()
        if row["limit_name"] in LIMITS
    ]
    rows += [
        [
            visible(row["cluster"], 40),
            f"{count(row['generations'], 'generation')} of {count(row['groups'], 'group')} not costed",
            REASONS.get(row["not_costed"], visible(row["not_costed"])),
            visible(row["example"], 60),
            instant(row["last_at"])[:19],
        ]
        for row in health.not_costed()
    ]
    return table_panel(
        "Beyond a limit",
        "Groups and generations that are too large to be built or costed. Bronze has all of their records.",
        ("Cluster", "What", "Why", "Such as", "Last (UTC)"),
        rows,
        nothing="Nothing: every group and every generation is built and costed.",
    )


def _refusals(rows: list[Row]) -> Component:
    return table_panel(
        "Calls to brokers that failed or were refused",
        "Recorded once, at the first failure. “regroup doctor” repeats the calls and names the missing permission.",
        ("Cluster", "Call", "About", "Broker's response", "Recorded (UTC)"),
        [
            [
                visible(row["cluster"], 40),
                visible(row["call"]),
                visible(row["subject"], 60) if row["subject"] else ABSENT,
                visible(row["text"], 200),
                instant(row["observed_at"])[:19],
            ]
            for row in rows
        ],
        nothing="None.",
    )


def _tables(health: HealthStore, now: int) -> Component:
    there = {name: (version, changed) for name, version, changed in health.tables()}
    rows: list[list[Cell]] = []
    for layer, made in LAYERS:
        for each in made:
            version, changed = there.get(each.name, (None, None))
            rows.append(
                [
                    layer,
                    each.name,
                    "not there yet" if version is None else int(version),
                    instant(changed)[:19],
                    ABSENT if changed is None else duration(max(0, now - changed)),
                    JOBS[layer],
                ]
            )
    return table_panel(
        "Tables",
        "When each table changed last. A job that finds nothing new writes nothing.",
        ("Layer", "Table", "Version", "Changed (UTC)", "Ago", "Made by"),
        rows,
    )
