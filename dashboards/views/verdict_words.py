"""The parts of a verdict as text, for the pages and for answers without a page."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dashboards.lake.lake import Row, Rows
from dashboards.text import amount, bounded, visible
from dashboards.views import sentences
from schemas.states import DiagnosisCause, Evidence, GroupProtocol, Verdict
from schemas.written import count

BLAMED = {
    Verdict.BROKER: "the broker",
    Verdict.CLIENT_APPLICATION: "the client application",
    Verdict.DEPLOY_OR_SCALING: "a deploy or scaling",
    Verdict.CONFIGURATION: "the configuration",
    Verdict.UNKNOWN: "not known",
}
NAMED = 5
CLIENT_HOST = re.compile(r"(client_?host\s*[=:]\s*)[^,)\]}\s]+", re.IGNORECASE)


def blamed(name: str | None) -> str:
    """Return what a verdict blames, as a noun."""
    return next((text for kind, text in BLAMED.items() if kind == name), visible(name, 40))


def opening(row: Row) -> str:
    """Return the words before what a row with `verdict` and `evidence` blames: `It was probably `."""
    if row["verdict"] == Verdict.UNKNOWN:
        return "Broker or application: "
    return "It was probably " if row["evidence"] == Evidence.INFERRED else "It was "


def cause_of(row: Row) -> str:
    """Return the cause of a row of `verdicts`, and what set it off if that is another cause."""
    cause = sentences.cause(row["cause"])
    if row["set_off_by"] in (row["cause"], DiagnosisCause.UNKNOWN):
        return cause
    return f"{cause}; set off by {sentences.cause(row['set_off_by'])}"


def instances_of(row: Row) -> str:
    """Return the first instances that a row of `verdicts` names."""
    return _names(row["instances"], "nobody in particular")


def hosts_of(row: Row) -> str:
    """Return the first hosts that a row of `verdicts` names."""
    return _names([name.removeprefix("/") for name in row["hosts"] or ()], "host not known")


NOT_OBSERVED = "not observed"
"""The loss of a share group: brokers keep the progress of share groups in another topic."""


def lost_of(row: Row, protocol: str | None = None) -> str:
    """Return the loss with its bounds. The columns are `lost…` or `lost_resource_seconds…`.

    `protocol` is that of the rebalance, if the row is about one.
    """
    if protocol == GroupProtocol.SHARE:
        return NOT_OBSERVED
    estimate, low, high = (
        row[f"lost{end}"] if f"lost{end}" in row else row[f"lost_resource_seconds{end}"] for end in ("", "_min", "_max")
    )
    return bounded(estimate, low, high, "bounds") if high else "none"


def without_hosts(line: str) -> str:
    """Return a log line without client addresses, because the setting client_host may keep them from the pages."""
    return CLIENT_HOST.sub(r"\1…", line)


def sums_sentence(rows: Sequence[Row]) -> str:
    """Return `the broker: 81.0 lost in 2 rebalances; a deploy or scaling: 2.0 lost in 1 rebalance`.

    Rows have `verdict`, `rebalances` and the loss in resource-seconds as `lost` or `lost_resource_seconds`.
    """
    return "; ".join(
        f"{blamed(row['verdict'])}: {amount(row['lost'] if 'lost' in row else row['lost_resource_seconds'])} lost in "
        f"{count(row['rebalances'], 'rebalance')}"
        for row in rows
    )


def lines_sentence(lines: Rows) -> str:
    """Return how many log lines are about a group, and how many of them are of sources that anyone could write to."""
    number = len(lines.rows)
    unbound = sum(not line.get("source_binding") for line in lines.rows)
    text = f"The newest {number} lines" if lines.is_capped else count(number, "line")
    text += " about this group in this range."
    if unbound:
        text += f" No setting binds the source of {unbound} of them: anyone who can write there could forge them."
    return text


def _names(names: Sequence[str] | None, nobody: str) -> str:
    shown = [visible(name, 80) for name in (names or ())[:NAMED]]
    more = len(names or ()) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "") or nobody
