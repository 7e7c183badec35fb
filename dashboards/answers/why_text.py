"""The answer to `why` as text for people, and as values for JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dashboards.answers.group_advice import recommended
from dashboards.answers.why import Why, began
from dashboards.answers.written import at, wrapped
from dashboards.lake.lake import Row
from dashboards.queries.generation_times import ended
from dashboards.text import duration, instant, span, visible
from dashboards.views import sentences
from dashboards.views.clients.measured import measured_sentences
from dashboards.views.verdict_words import blamed, cause_of, hosts_of, instances_of, lost_of, opening
from dashboards.zone import zone
from schemas.bronze import CLIENT_METRICS
from schemas.states import GroupProtocol, Verdict
from schemas.written import amount, count

LABEL = 10
"""Width of the labels' column."""

PROOFS = 6


def why_text(found: Why, url: str, *, now_ms: int, stale_ms: int) -> str:
    """Return the answer in lines of text: verdict, who, cost, what would have avoided it, proof and the page.

    Data older than `stale_ms` is reported, because nothing is known of what happened since.
    """
    return "\n".join(_lines(found, url, now_ms, stale_ms)) + "\n"


def is_answered(found: Why) -> bool:
    """Return whether the rebalance has a verdict that blames something."""
    return found.verdict is not None and bool(found.verdict["verdict"] != Verdict.UNKNOWN)


def _lines(found: Why, url: str, now_ms: int, stale_ms: int) -> Iterator[str]:
    g, verdict = found.found.generation, found.verdict
    when = span(instant(began(g))[:19], instant(ended(g))[11:19])
    where = f"{visible(found.group['group_id'], 120)} in {visible(found.cluster, 60)}"
    yield f"{where}: rebalance to {sentences.numbered(g)}, {when} {zone()}"
    if found.of_episode > 1:
        yield f"Of the {count(found.of_episode, sentences.term(g))} of the newest episode, it cost most."
    if found.away_ms:
        yield f"No rebalance at that time. This is the nearest one, {duration(found.away_ms)} away."
    if (age := now_ms - found.seen.until[found.cluster]) > stale_ms:
        yield f"The newest record is {duration(age)} old: what happened since is not known."
    if (since := found.group["open_rebalance_since_at"]) is not None:
        yield f"Another rebalance began at {instant(since)[:19]} {zone()} and is not complete."
    yield ""
    if verdict is None:
        yield "It has no verdict: it did not complete, or `analyze` has not seen it yet."
    else:
        reason = visible(verdict["reason"], 600)
        yield wrapped(f"{opening(verdict)}{blamed(verdict['verdict'])} ({verdict['evidence']}). {reason}")
        yield ""
        yield _labelled("Cause", cause_of(verdict))
        yield _labelled("Who", f"{instances_of(verdict)}, on {hosts_of(verdict)}")
        yield _labelled("Cost", _cost(g, verdict))
    yield _labelled("What", sentences.rebalance(found.found))
    for each in found.episode if g["group_protocol"] != GroupProtocol.SHARE else ():
        text = f"{blamed(each['verdict'])}, {count(each['rebalances'], 'rebalance')}, {amount(each['lost'])} lost"
        yield _labelled("Episode", text)
    yield _labelled("Avoid", _avoided(found.advice))
    if verdict is not None:
        for line in verdict["proof"][:PROOFS]:
            yield f"{'Proof':<{LABEL}}{visible(line, 300)}"
    for sentence in measured_sentences(found.measured, found.found.everybody):
        yield _labelled("Measured", sentence)
    yield f"{'Page':<{LABEL}}{url}"


def _cost(generation: Row, verdict: Row) -> str:
    if generation["group_protocol"] == GroupProtocol.SHARE:
        return "not observed"
    lost = lost_of(verdict)
    return f"{'no' if lost == 'none' else lost} {sentences.unit(generation['group_type'])}-seconds lost"


def _labelled(label: str, text: str) -> str:
    return wrapped(text, f"{label:<{LABEL}}", " " * LABEL)


def _avoided(advice: list[Row]) -> str:
    if not advice:
        return "not analyzed yet"
    best = next(iter(recommended(advice)), None)
    if best is None:
        none = "no other setting is recommended" if any(_is_replayed(row) for row in advice) else "not known"
        return f"{none}. {visible(advice[0]['explanation'], 600)}"
    return f"{sentences.action(best['action'])}. {visible(best['explanation'], 1_000)}"


def _is_replayed(row: Row) -> bool:
    return row["lost_predicted"] is not None


def why_values(found: Why, url: str, *, now_ms: int, stale_ms: int) -> dict[str, Any]:
    """Return the answer as values of JSON, with names as they are, times in ISO 8601 (UTC) and durations in ms."""
    g, verdict, until = found.found.generation, found.verdict, found.seen.until[found.cluster]
    best = next(iter(recommended(found.advice)), None)
    return {
        "cluster": found.cluster,
        "group_id": found.group["group_id"],
        "state": found.group["state"],
        "open_rebalance_since_at": at(found.group["open_rebalance_since_at"]),
        "newest_record_at": at(until),
        "is_stale": now_ms - until > stale_ms,
        "away_ms": found.away_ms,
        "rebalance": {
            **{name: g[name] for name in ("incarnation", "generation_id", "group_protocol", "assignor", "outcome")},
            **{name: g[name] for name in ("member_count", "trigger", "trigger_evidence", "trigger_member_id")},
            **{name: g[name] for name in ("rebalance_ms", "rebalance_ms_min", "rebalance_ms_max", "evidence")},
            **{
                name: at(g[name])
                for name in ("prepared_at", "prepared_at_earliest", "prepared_at_latest", "joined_at", "completed_at")
            },
            "sentence": sentences.rebalance(found.found),
        },
        "verdict": None if verdict is None else {name: verdict[name] for name in VERDICT},
        "episode": [{name: row[name] for name in ("verdict", "rebalances", "lost")} for row in found.episode],
        "advice": None
        if best is None
        else {name: best[name] for name in ADVISED} | {"settings": dict(best["settings"])},
        "measured": [_measured(row) for row in found.measured],
        "url": url,
    }


VERDICT = (
    "verdict", "cause", "set_off_by", "evidence", "reason", "instances", "hosts", "proof", "lost_resource_seconds",
    "lost_resource_seconds_min", "lost_resource_seconds_max",
)  # fmt: skip
"""Columns of `verdicts` in the answer."""

ADVISED = ("action", "status", "explanation", "lost_now", "saving", "saving_low", "saving_high", "preconditions")
"""Columns of `advice` in the answer."""

PLACE = ("cluster", "group_id", "source_id", "line_no", "source_binding")
"""Columns that say where a push was read, or that the answer has already."""


def _measured(row: Row) -> dict[str, Any]:
    """Return what a member pushed as values of JSON."""
    return {
        column.name: at(row[column.name]) if column.type == "TIMESTAMP" else row[column.name]
        for column in CLIENT_METRICS.columns
        if column.name not in PLACE
    }
