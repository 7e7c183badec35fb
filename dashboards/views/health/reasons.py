"""Why something is not known or not built, in words."""

from __future__ import annotations

from collections.abc import Sequence

from dashboards.lake.lake import Row
from dashboards.queries.health_store import HealthStore
from schemas.records import OFFSETS_TOPIC
from schemas.states import Limit, NotCosted

LIMITS = {
    Limit.MAX_GROUPS: "the cluster has more groups than max_groups, {allowed:,}",
    Limit.MAX_NAME_BYTES: "the group's id is longer than max_name_bytes, {allowed:,}",
}
REASONS = {
    NotCosted.TOO_LARGE: "the record lists more resources than max_resources",
    NotCosted.UNREADABLE: "an assignment could not be decoded",
    NotCosted.UNKNOWN_BEFORE: "the previous assignment is unknown",
    NotCosted.NO_SUCH_PARTITION: "the leader assigned partitions that do not exist according to polls",
}
OPTIONAL = {
    "log": (
        "No coordinator's log has been read: the start of a rebalance is only bounded, and its cause often unknown. "
        "“regroup ship-logs” or [[clusters.NAME.logs]] provide the log."
    ),
    "poll": (
        "The brokers are not polled: states between two records, topic names by id and bytes of reassignments are "
        "unknown. “regroup poll” or “up” poll them."
    ),
}


def not_read(health: HealthStore, sources: Sequence[Row]) -> list[str]:
    """Return notices on optional sources that are not read, and on what is therefore unknown."""
    named = {row["source"] for row in sources}
    read = {"log": bool(named - {OFFSETS_TOPIC, "poll"}), "poll": "poll" in named}
    return [text for kind, text in OPTIONAL.items() if not read[kind] and not health.has_read(kind)]
