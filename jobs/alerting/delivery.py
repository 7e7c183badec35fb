"""Sends alerts to all receivers concurrently. An unavailable receiver delays no other and gets its alerts later."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from jobs.alerting import alertmanager, webhook
from jobs.alerting.alert_links import runbook_url
from jobs.alerting.courier import Courier
from jobs.alerting.http_post import TIMEOUT_S
from jobs.config.receivers import Alertmanager, Webhook
from jobs.config.settings import Settings
from pipelines.gold.alerts.incidents import after_sending, is_due
from pipelines.gold.alerts.messages import identity, labels
from schemas.rows import AlertRow

PATIENCE_S = 2.0
"""Maximum wait of an evaluation for the outcomes of all receivers. Evaluations run every 10 s."""
AT_LAST_S = webhook.BATCH_S + TIMEOUT_S + 1
"""Time after which every receiver has answered or failed, unless its name is still being resolved."""
Due = Mapping[str, Sequence[AlertRow]]
"""Receiver's name → the rows that are due to it."""


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """The receivers of the settings. `accepted`, `failed` and `is_up` count from the start of the process."""

    settings: Settings
    say: Callable[[str], None]
    accepted: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    is_up: dict[str, bool] = field(default_factory=dict)
    patience_s: float = PATIENCE_S
    _couriers: dict[str, Courier] = field(default_factory=dict)

    @property
    def resend_ms(self) -> int:
        return round(self.settings.resend_seconds * 1000)

    def due(self, rows: Sequence[AlertRow], now_ms: int) -> Due:
        """Return the rows due to each receiver; empty while its previous rows are still being sent."""
        holding = {_label(row) for row in rows if row["resolved_at"] is None}
        # A late resolution of an earlier incident would resolve the firing alert, because both have the same labels.
        current = [row for row in rows if row["resolved_at"] is None or _label(row) not in holding]
        found = {
            each.name: [row for row in current if is_due(row, each.name, now_ms, self.resend_ms)]
            for each in self.settings.alertmanagers
        }
        found |= {
            hook.name: [row for row in rows if is_due(row, hook.name, now_ms, None)] for hook in self.settings.webhooks
        }
        return {name: [] if name in self._couriers else rows for name, rows in found.items()}

    def send(self, rows: Sequence[AlertRow], due: Due, now_ms: int) -> list[AlertRow]:
        """Send the due rows to each receiver. Return the rows with the outcomes that arrive within `patience_s`.

        `with_outcomes` returns later outcomes.
        """
        for name, receiver in self._receivers.items():
            if due[name]:
                self._couriers[name] = Courier(partial(self._send, receiver, now_ms))
                self._couriers[name].give(due[name])
        return self.with_outcomes(rows, now_ms, self.patience_s)

    def with_outcomes(self, rows: Sequence[AlertRow], now_ms: int, within_s: float = 0.0) -> list[AlertRow]:
        """Return the rows with the outcomes so far; each outcome applies to the state of the row that was sent."""
        outcomes: dict[Any, dict[str, str | None]] = {}
        until = time.monotonic() + within_s
        for name, courier in list(self._couriers.items()):
            found = courier.collected(max(0.0, until - time.monotonic()))
            if found is None:
                self._record(name, ["no response yet"], counts=False)
                continue
            del self._couriers[name]
            sent, errors = found
            self._record(name, list(errors.values()))
            for position, error in errors.items():
                outcomes.setdefault(identity(sent[position]), {})[name] = error
            error = next(filter(None, errors.values()), None)
            if error and isinstance(self._receivers[name], Alertmanager):
                # It keeps alerts in memory only, so after a failure all firing alerts are due again.
                for row in rows:
                    if row["resolved_at"] is None:
                        outcomes.setdefault(identity(row), {})[name] = error
        return [after_sending(row, outcomes.get(identity(row), {}), now_ms) for row in rows]

    @property
    def _receivers(self) -> dict[str, Alertmanager | Webhook]:
        every: list[Alertmanager | Webhook] = [*self.settings.alertmanagers, *self.settings.webhooks]
        return {each.name: each for each in every}

    def _send(self, receiver: Alertmanager | Webhook, now_ms: int, rows: Sequence[AlertRow]) -> dict[int, str | None]:
        runbook = partial(runbook_url, self.settings)
        if isinstance(receiver, Alertmanager):
            return alertmanager.send(receiver, rows, now_ms, self.resend_ms, runbook)
        return webhook.send(receiver, rows, now_ms, runbook)

    def _record(self, name: str, errors: Sequence[str | None], *, counts: bool = True) -> None:
        """Report a receiver's first failure and its recovery; count its alerts if `counts`."""
        was_up, failed = self.is_up.get(name, True), [error for error in errors if error]
        if counts:
            self.failed[name] += len(failed)
            self.accepted[name] += len(errors) - len(failed)
        self.is_up[name] = not failed
        if failed and was_up:
            self.say(f"{name} did not accept {len(failed)} alert(s) ({failed[0]}): they are sent again until it does.")
        elif not failed and not was_up:
            self.say(f"{name} accepts alerts again.")


def _label(row: AlertRow) -> tuple[str, ...]:
    return tuple(labels(row).values())
