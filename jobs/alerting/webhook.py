"""Sends alerts to a webhook: one signed POST per state of an alert.

The receiver computes HMAC-SHA256 over the timestamp header, a dot and the body, and compares it with the signature in
constant time. It must reject a timestamp that is some minutes old. This prevents forged and replayed messages. A
message that is sent twice, for example after a crash, has the same `id`.
"""

from __future__ import annotations

import hmac
import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from jobs.alerting.http_post import NotAcceptedError, post
from jobs.config.receivers import Webhook
from pipelines.gold.alerts.messages import identity, labels, stamp, texts
from schemas.rows import AlertRow

TIMESTAMP, SIGNATURE = "X-Regroup-Timestamp", "X-Regroup-Signature"
VERSION = 1
BATCH_S = 30.0
"""Time limit of a batch. If a webhook takes seconds per alert, a hundred alerts take several batches."""


def send(
    hook: Webhook, rows: Sequence[AlertRow], now_ms: int, runbook: Callable[[AlertRow], str]
) -> dict[int, str | None]:
    """Send each row. Return None or the reason for failure, by position.

    After a failure, the remaining rows are not tried and get the same reason. Rows beyond `BATCH_S` are left out of the
    result and remain due.
    """
    outcomes: dict[int, str | None] = {}
    error = None
    until = time.monotonic() + BATCH_S
    for position, row in enumerate(rows):
        if time.monotonic() > until:
            break
        if error is None:
            body = json.dumps(_message(row, runbook(row))).encode()
            try:
                post(hook.url, body, signature_headers(hook.key(), body, now_ms // 1000))
            except NotAcceptedError as refusal:
                error = str(refusal)
        outcomes[position] = error
    return outcomes


def signature_headers(key: bytes, body: bytes, at_s: int) -> dict[str, str]:
    """Return the headers that prove the sender and the time of the body."""
    digest = hmac.new(key, f"{at_s}.".encode() + body, "sha256").hexdigest()
    return {TIMESTAMP: str(at_s), SIGNATURE: f"sha256={digest}"}


def _message(row: AlertRow, runbook_url: str) -> dict[str, Any]:
    resolved = row["resolved_at"]
    return {
        "version": VERSION,
        "id": identity(row),
        "status": "firing" if resolved is None else "resolved",
        "labels": labels(row),
        "annotations": texts(row, runbook_url),
        "startsAt": stamp(row["started_at"]),
        "endsAt": None if resolved is None else stamp(resolved),
        "generatorURL": row["dashboard_url"],
    }
