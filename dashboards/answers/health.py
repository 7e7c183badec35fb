"""Whether the tables can be trusted: how current they are, what was not read, and what failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dashboards.answers.written import at, old_record, wrapped
from dashboards.lake.lake import Lake, Row
from dashboards.queries.health_store import HealthStore, newest_records
from dashboards.text import duration, future, instant, is_ahead, visible
from dashboards.views.health.jobs_and_rules import JobsAndRules
from dashboards.views.health.reasons import LIMITS, REASONS, not_read
from dashboards.zone import zone
from schemas.unread_lines import REMEDIES
from schemas.written import count


class Problem(NamedTuple):
    """One problem with the tables. `cluster` is empty if the problem concerns Regroup itself."""

    kind: str
    cluster: str
    sentence: str


KINDS: Mapping[str, str] = {
    "stale": "the newest record is old, so what happened since is not known, or its age is not known",
    "gap": "records were not read",
    "quarantine": "records or messages could not be read",
    "unread_lines": "log lines that may describe a rebalance are in no known layout or wording",
    "limit": "groups or generations are beyond a limit",
    "refused_call": "a broker refused a call, or it failed",
    "job": "the last run of a job failed, or did not report its end",
    "rule": "rows break a rule of their table",
}
"""The kinds of problems, as the answer of programs names them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthAnswer:
    """The problems with the tables, and what is not known because an optional source is not read.

    `sources` are rows of `HealthStore.sources`; `newest` has the newest record of each cluster, None if it has no time.
    """

    sources: list[Row]
    newest: Mapping[str, int | None]
    problems: list[Problem]
    unknown: list[str]
    checks: list[str]

    @property
    def is_sound(self) -> bool:
        """Return whether something was read, and there is no problem with the tables."""
        return bool(self.sources) and not self.problems


def health(lake: Lake, *, now_ms: int, stale_ms: int) -> HealthAnswer:
    """Return the present problems with the tables. Raises `LakeError` if they cannot be read."""
    store = HealthStore(lake)
    sources, jobs = store.sources(), JobsAndRules.of(store, now_ms)
    newest = newest_records(sources)
    problems = [
        *_stale(newest, now_ms, stale_ms),
        *_gaps(sources),
        *_quarantined(store.quarantine()),
        *_unread(store.unread()),
        *_limits(store),
        *_refusals(store.refusals()),
        *_jobs(jobs),
        *_rules(jobs),
    ]
    return HealthAnswer(
        sources=sources,
        newest=newest,
        problems=problems,
        unknown=not_read(store, sources) if sources else [],
        checks=jobs.summary(),
    )


def _stale(newest: Mapping[str, int | None], now_ms: int, stale_ms: int) -> Iterator[Problem]:
    for name, last in newest.items():
        if last is None:
            yield Problem("stale", name, f"No record of {visible(name, 60)} has a time, so its age is not known.")
        elif now_ms - last > stale_ms:
            yield Problem("stale", name, old_record(name, now_ms - last))
        elif is_ahead(last, now_ms):
            sentence = f"The newest record of {visible(name, 60)} is {future(last - now_ms)}."
            yield Problem("stale", name, sentence)


def _gaps(sources: Sequence[Row]) -> Iterator[Problem]:
    for row in sources:
        if row["gaps"]:
            where = f"{visible(row['source'], 60)} in {visible(row['cluster'], 60)}"
            yield Problem("gap", row["cluster"], f"{count(row['gaps'], 'span')} of {where} not read.")


def _quarantined(rows: Sequence[Row]) -> Iterator[Problem]:
    for row in rows:
        where = f"{visible(row['source'], 60)} in {visible(row['cluster'], 60)}"
        what = f"{count(row['records'], 'record')} of {where} in quarantine ({visible(row['reason'], 40)})"
        yield Problem("quarantine", row["cluster"], f"{what}: {visible(row['detail'], 200)}.")


def _unread(rows: Sequence[Row]) -> Iterator[Problem]:
    for row in rows:
        if row["position"] == 1:
            where = f"{visible(row['source'], 60)} in {visible(row['cluster'], 60)}"
            what = f"{count(row['lines'], 'log line')} of {where} not read ({visible(row['reason'], 40)})."
            remedy = REMEDIES[row["reason"], row["source_partition"] < 0]
            yield Problem("unread_lines", row["cluster"], f"{what} {remedy}")


def _limits(store: HealthStore) -> Iterator[Problem]:
    for row in store.limits():
        if row["limit_name"] in LIMITS:
            why = LIMITS[row["limit_name"]].format(allowed=row["allowed"])
            sentence = f"{count(row['groups'], 'group')} of {visible(row['cluster'], 60)} not built: {why}."
            yield Problem("limit", row["cluster"], sentence)
    for row in store.not_costed():
        why = REASONS.get(row["not_costed"], visible(row["not_costed"], 40))
        which = f"{count(row['generations'], 'generation')} of {count(row['groups'], 'group')}"
        sentence = f"{which} in {visible(row['cluster'], 60)} not costed: {why}."
        yield Problem("limit", row["cluster"], sentence)


def _refusals(rows: Sequence[Row]) -> Iterator[Problem]:
    for row in rows:
        about = f" about {visible(row['subject'], 60)}" if row["subject"] else ""
        call = f"The call {visible(row['call'], 60)}{about} to {visible(row['cluster'], 60)} failed or was refused"
        sentence = f"{call}: {visible(row['text'], 200)}. “regroup doctor” names a missing permission."
        yield Problem("refused_call", row["cluster"], sentence)


def _jobs(jobs: JobsAndRules) -> Iterator[Problem]:
    for run in jobs.wrong:
        began = f"{instant(run['started_at'])[:19]} {zone()}"
        why = f": {visible(run['error'], 300)}" if run["error"] else ""
        sentence = f"The job {visible(run['job'], 40)} that began at {began}: {jobs.outcome(run)}{why}."
        yield Problem("job", "", sentence)


def _rules(jobs: JobsAndRules) -> Iterator[Problem]:
    for row in jobs.broken:
        rows = count(row["rows_failed"], "row") if row["rows_failed"] is not None else "rows"
        sentence = f"{visible(row['sentence'], 200)} ({rows} of {visible(row['table_name'], 60)})"
        yield Problem("rule", "", sentence)


def health_text(found: HealthAnswer, *, now_ms: int) -> str:
    """Return the answer as lines of text: what was read, the problems, and what is not known."""
    return "\n".join(_lines(found, now_ms)) + "\n"


def _lines(found: HealthAnswer, now_ms: int) -> Iterator[str]:
    if not found.sources:
        yield "Nothing has been read yet: run “regroup up”, “regroup ingest” or “regroup replay”."
    else:
        read = f"{sum(row['records'] for row in found.sources):,} records and lines"
        yield f"{read} of {count(len(found.sources), 'source')} read."
        for name, last in found.newest.items():
            is_known = last is not None and not is_ahead(last, now_ms)
            age = f"{duration(max(0, now_ms - (last or 0)))} old" if is_known else "of unknown age"
            yield f"The newest record of {visible(name, 60)} is {age}."
    yield wrapped(f"Jobs and rules: {'; '.join(found.checks)}.")
    yield ""
    if found.problems:
        yield f"{count(len(found.problems), 'problem')}:"
        for problem in found.problems:
            yield wrapped(problem.sentence, "- ", "  ")
    elif found.sources:
        yield "No problem with the tables was found."
    for text in found.unknown:
        yield wrapped(text)


def health_values(found: HealthAnswer) -> dict[str, Any]:
    """Return the answer as values of JSON, with times in ISO 8601 (UTC)."""
    return {
        "is_sound": found.is_sound,
        "newest_records": {name: at(last) for name, last in found.newest.items()},
        "sources": [
            {
                **{name: row[name] for name in ("cluster", "source", "partitions", "records", "skipped")},
                **{name: row[name] for name in ("quarantined", "gaps")},
                "first_at": at(row["first_at"]),
                "last_at": at(row["last_at"]),
            }
            for row in found.sources
        ],
        "problems": [problem._asdict() for problem in found.problems],
        "unknown": found.unknown,
        "jobs_and_rules": found.checks,
    }
