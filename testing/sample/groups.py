"""Groups of the sample, each with a history of its own kind. Times are relative to `now`, in milliseconds."""

from __future__ import annotations

from collections.abc import Iterable

from testing.sample.cluster import pushes, setting_changes
from testing.sample.history import CLUSTER, History
from testing.sample.tables import Rows, merge


def churny(now: int, group: str = "billing-worker", topic: str = "orders", client: str = "billing") -> Rows:
    """Joins, a clean leave, a killed member for which all partitions wait, and a poll timeout; observed in the log."""
    h, minute = History(group, topic=topic), 60_000
    t = now - 52 * minute
    a, b, c = (h.member(f"{client}-{i}") for i in (1, 2, 3))
    h.rebalance(t, [a], "first_member", by=a)
    h.rebalance(t + 2 * minute, [a, b], "member_joined", by=b, wait=1800, slowest=a)
    h.rebalance(t + 4 * minute, [a, b, c], "member_joined", by=c, wait=2400, slowest=b)
    h.rebalance(t + 15 * minute, [a, c], "member_left", by=b, wait=900, reason="the member left with LeaveGroup")
    h.rebalance(
        t + 24 * minute, [a], "session_expired", by=c, wait=24_000, silent=45_000, slowest=a,
        reason="removing member on heartbeat expiration",
    )  # fmt: skip
    d, e = h.member(f"{client}-2"), h.member(f"{client}-3")
    h.rebalance(t + 26 * minute, [a, d, e], "member_joined", by=d, wait=2000, slowest=a)
    h.rebalance(t + 38 * minute, [a, e], "poll_timeout", by=d, wait=1500, silent=9000)
    f = h.member(f"{client}-2")
    h.rebalance(t + 38 * minute + 9000, [a, e, f], "member_joined", by=f, wait=700, slowest=e)
    return h.end(now, first_seen=t)


def guessed(now: int) -> Rows:
    """A similar history from the topic alone: starts are bounded, departures inferred."""
    h, minute = History("shipping-planner", topic="shipments", partitions=6), 60_000
    t = now - 40 * minute
    a, b = h.member("rdkafka"), h.member("rdkafka2")
    h.rebalance(t, [a], "first_member", by=a)
    h.rebalance(t + 8 * minute, [a, b], "member_joined", observed=False, wait=6000)
    h.rebalance(t + 21 * minute, [a], "member_left", observed=False, wait=11_000)
    return h.end(now, first_seen=t)


def cooperative(now: int) -> Rows:
    h, minute = History("search-indexer", topic="documents", partitions=24, mode="cooperative"), 60_000
    t = now - 33 * minute
    a, b, c = (h.member(f"indexer-{i}") for i in (1, 2, 3))
    h.rebalance(t, [a, b], "first_member", by=a)
    h.rebalance(t + 12 * minute, [a, b, c], "member_joined", by=c, wait=3100)
    h.rebalance(t + 12 * minute + 5000, [a, b, c], "cooperative_followup", by=a, wait=300)
    return h.end(now, first_seen=t)


def static(now: int) -> Rows:
    h, minute = History("pricing-static", topic="prices", partitions=6), 60_000
    t = now - 47 * minute
    members = [h.member("pricing", f"pricing-{i}") for i in range(3)]
    h.rebalance(t, members, "first_member", by=members[0])
    h.event(t + 20 * minute, "static_returned", members[1], detail="replaced an earlier process")
    return h.end(now, first_seen=t)


def nightly(now: int) -> Rows:
    h, minute = History("nightly-report", topic="orders", partitions=3), 60_000
    t = now - 45 * minute
    a = h.member("report")
    h.rebalance(t, [a], "first_member", by=a)
    h.rebalance(t + 9 * minute, [], "member_left", by=a, wait=5)
    return h.end(now, first_seen=t)


def stuck(now: int) -> Rows:
    h, minute = History("payments-loader", topic="payments", partitions=4), 60_000
    t = now - 30 * minute
    a, b = h.member("loader-1"), h.member("loader-2")
    h.rebalance(t, [a, b], "first_member", by=a)
    return h.end(now, first_seen=t, state="PreparingRebalance", open_since=now - 90_000)


def unknown(now: int) -> Rows:
    return History("stock-loader-next").end(now, first_seen=now - 20 * 60_000, state="Unknown")


def hostile(now: int, ids: Iterable[str]) -> Rows:
    """Each string as group, topic, client and member at once."""
    out: Rows = {}
    for i, text in enumerate(ids):
        h, t = History(text, topic=text or "empty", partitions=2), now - 25 * 60_000 - i * 1000
        h.key["cluster"] = CLUSTER
        a, b = h.member(text + "a"), h.member(text + "b")
        h.rebalance(t, [a], "first_member", by=a, reason=text)
        h.rebalance(t + 300_000, [a, b], "member_joined", by=b, slowest=a, reason=text)
        h.event(t + 400_000, "settings_changed", b, detail=text)
        history = h.end(now, first_seen=t)
        merge(out, history, pushes(history, text), operations(now, text), setting_changes(now, text, text))
    return out


def operations(now: int, text: str) -> Rows:
    """A job that failed for this reason, and a rule that its row broke."""
    run = {"job": text, "run_id": text, "told_at": now, "started_at": now, "ended_at": now, "outcome": "failed"}
    rule = {"table_name": text, "checked_at": now, "rule": text, "table_id": text, "version": 0, "severity": "error"}
    failed = {"sentence": text, "passed": False, "rows_checked": 2, "rows_failed": 1, "examples": [text]}
    return {"job_runs": [run | {"error": text, "host": text}], "quality_results": [rule | failed]}
