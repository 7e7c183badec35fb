"""What the members of a group measured themselves, as cells and sentences.

Rows are those of `client_metrics`. Their times are by the clients' own clocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dashboards.lake.lake import Row
from dashboards.text import ABSENT, clock, duration, instant, member_label, span, visible
from schemas.written import count

HEAD = (
    "Member", "Measured (UTC)", "Software", "In rebalances", "Longest rebalance", "Last poll", "Longest between polls",
    "Longest callback", "Longest commit",
)  # fmt: skip
CALLBACKS = {
    "assigned_callback_ms_max": "onPartitionsAssigned",
    "revoked_callback_ms_max": "onPartitionsRevoked",
    "lost_callback_ms_max": "onPartitionsLost",
}
LONG_CALLBACK_MS = 1_000
"""Length from which a callback is worth a sentence: the others wait for it in a rebalance."""

SENTENCES = 6


def measured_cells(row: Row) -> tuple[str, ...]:
    """Return the cells of one push, under `HEAD`."""
    longest, _ = _longest_callback(row)
    return (
        _label(row),
        instant(row["measured_at"]),
        software(row),
        _in_rebalances(row),
        duration(row["rebalance_ms_max"]),
        _between(row["last_poll_at_earliest"], row["last_poll_at_latest"]),
        duration(row["poll_gap_ms_max"]),
        duration(longest),
        duration(row["commit_ms_max"]),
    )


def measured_text(rows: Sequence[Row], members: Sequence[Row]) -> str:
    """Return how many members pushed, what the rows of the table are, and what is remarkable in them."""
    pushed = count(len({row["member_id"] for row in rows}), "member")
    return " ".join(
        [
            f"{pushed} pushed metrics to the brokers (KIP-714). Of each, the last push before the end of the rebalance",
            "and the first one after it, by the clients' own clocks.",
            *measured_sentences(rows, members),
        ]
    )


def software(row: Row) -> str:
    """Return `apache-kafka-java 4.4.0`; a dash if the push does not say it."""
    if row["software_name"] is None:
        return ABSENT
    return " ".join(visible(text, 40) for text in (row["software_name"], row["software_version"]) if text)


def software_sentence(rows: Sequence[Row]) -> str:
    """Return which software a group's clients have, with a leading space; empty if no client said it.

    `rows` have software_name, software_version and clients (their number).
    """
    parts = [f"{software(row)} ({count(row['clients'], 'client')})" for row in rows]
    return f" Software, as the clients told the brokers: {'; '.join(parts)}." if parts else ""


def measured_sentences(rows: Sequence[Row], members: Sequence[Row]) -> list[str]:
    """Return what is remarkable in the members' own measurements: calls of poll too far apart, and long callbacks.

    `members` have member_id and rebalance_timeout_ms, which is max.poll.interval.ms for a consumer. At most six.
    """
    limits = {member["member_id"]: member["rebalance_timeout_ms"] for member in members}
    found = dict.fromkeys(sentence for row in rows for sentence in _remarkable(row, limits))
    return list(found)[:SENTENCES]


def _remarkable(row: Row, limits: Mapping[str, int | None]) -> Iterator[str]:
    who, when = _label(row), clock(row["measured_at"])
    gap, limit = row["poll_gap_ms_max"], limits.get(row["member_id"])
    if gap is not None and limit is not None and gap > limit:
        yield (
            f"{who} measured {duration(gap)} between two calls of poll (at {when}, by its clock); its "
            f"max.poll.interval.ms is {duration(limit)}."
        )
    longest, name = _longest_callback(row)
    if longest is not None and longest >= LONG_CALLBACK_MS:
        yield f"{who} measured {duration(longest)} in its {name} (at {when}, by its clock)."


def _label(row: Row) -> str:
    return visible(member_label(row["member_id"], row["group_instance_id"], row["client_id"]), 80)


def _longest_callback(row: Row) -> tuple[float | None, str]:
    known = [(row[column], name) for column, name in CALLBACKS.items() if row[column] is not None]
    return max(known, default=(None, ""))


def _in_rebalances(row: Row) -> str:
    """Return `2.4 s in 1 rebalance since 12:03:07`. Only Java counts the rebalances."""
    if row["rebalance_ms"] is None:
        return ABSENT
    since = "" if row["counted_from_at"] is None else f" since {clock(row['counted_from_at'])}"
    if not row["rebalance_ms"] and not row["rebalances"]:
        return f"none{since}"
    number = "" if row["rebalances"] is None else f" in {count(row['rebalances'], 'rebalance')}"
    return f"{duration(row['rebalance_ms'])}{number}{since}"


def _between(earliest: int | None, latest: int | None) -> str:
    return ABSENT if earliest is None or latest is None else span(clock(earliest), clock(latest))
