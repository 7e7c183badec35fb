"""Sends alerts to an Alertmanager with POST /api/v2/alerts (prometheus/alertmanager, docs/alerts_api.md)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from jobs.alerting.http_post import NotAcceptedError, post
from jobs.config.receivers import Alertmanager
from pipelines.gold.alerts.messages import labels, stamp, texts
from schemas.rows import AlertRow

RESENDS_MISSED = 4
SHORTEST_MS = 5 * 60_000


def send(
    receiver: Alertmanager, rows: Sequence[AlertRow], now_ms: int, resend_ms: int, runbook: Callable[[AlertRow], str]
) -> dict[int, str | None]:
    """Send the rows in one request. Return None or the reason for failure, by position.

    Alertmanager resolves a firing alert if `RESENDS_MISSED` resends are missing, but not within 5 minutes.
    """
    ends = now_ms + max(RESENDS_MISSED * resend_ms, SHORTEST_MS)
    body = json.dumps([_message(row, ends, runbook(row)) for row in rows]).encode()
    error = None
    try:
        post(f"{receiver.url.rstrip('/')}/api/v2/alerts", body, {})
    except NotAcceptedError as refusal:
        error = str(refusal)
    return dict.fromkeys(range(len(rows)), error)


def _message(row: AlertRow, ends_ms: int, runbook_url: str) -> dict[str, Any]:
    ends = ends_ms if row["resolved_at"] is None else row["resolved_at"]
    return {
        "labels": labels(row),
        "annotations": texts(row, runbook_url),
        # The time of firing, as Prometheus sends it. With an earlier start, Alertmanager would skip group_wait and send
        # the first alert of a group alone.
        "startsAt": stamp(row["raised_at"]),
        "endsAt": stamp(ends),
        "generatorURL": row["dashboard_url"],
    }
