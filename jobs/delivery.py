"""Alerts to all receivers, side by side: one that is away delays no other and is told everything once it is back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from jobs import alertmanager, webhook
from jobs.alert_links import runbook_url
from jobs.receivers import Alertmanager, Webhook
from jobs.settings import Settings
from pipelines.gold.alerts.incidents import is_due, key_of, told
from pipelines.gold.alerts.messages import labels

Row = Mapping[str, Any]
Due = Mapping[str, Sequence[Row]]
"""Receiver's name → the rows that it has to be told."""


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """The receivers of the settings. `taken`, `failed` and `is_up` count since the process began."""

    settings: Settings
    say: Callable[[str], None]
    taken: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    is_up: dict[str, bool] = field(default_factory=dict)

    @property
    def resend_ms(self) -> int:
        return round(self.settings.resend_seconds * 1000)

    def due(self, rows: Sequence[Row], now_ms: int) -> Due:
        """What each receiver has to be told now."""
        holding = {_label(row) for row in rows if row["resolved_at"] is None}
        # The end of an earlier incident, told late, would end the one that holds: they have the same labels.
        current = [row for row in rows if row["resolved_at"] is None or _label(row) not in holding]
        found = {
            each.name: [row for row in current if is_due(row, each.name, now_ms, self.resend_ms)]
            for each in self.settings.alertmanagers
        }
        return found | {
            hook.name: [row for row in rows if is_due(row, hook.name, now_ms, None)] for hook in self.settings.webhooks
        }

    def send(self, rows: Sequence[Row], due: Due, now_ms: int) -> list[dict[str, Any]]:
        """The rows after everybody was told what is due."""
        outcomes: dict[Any, dict[str, str | None]] = {}
        every: list[Alertmanager | Webhook] = [*self.settings.alertmanagers, *self.settings.webhooks]
        receivers = [receiver for receiver in every if due[receiver.name]]
        with ThreadPoolExecutor(max(1, len(receivers))) as pool:
            answers = pool.map(lambda receiver: self._tell(receiver, due[receiver.name], now_ms), receivers)
            for receiver, errors in zip(receivers, answers, strict=True):
                self._hear(receiver.name, list(errors.values()))
                for position, row in enumerate(due[receiver.name]):
                    outcomes.setdefault(key_of(row), {})[receiver.name] = errors[position]
                error = next(filter(None, errors.values()), None)
                if error and isinstance(receiver, Alertmanager):
                    # It keeps alerts in memory: one that comes back may know of none.
                    for row in rows:
                        if row["resolved_at"] is None:
                            outcomes.setdefault(key_of(row), {})[receiver.name] = error
        return [told(row, outcomes.get(key_of(row), {}), now_ms) for row in rows]

    def _tell(self, receiver: Alertmanager | Webhook, rows: Sequence[Row], now_ms: int) -> dict[int, str | None]:
        runbook = partial(runbook_url, self.settings)
        if isinstance(receiver, Alertmanager):
            return alertmanager.send(receiver, rows, now_ms, self.resend_ms, runbook)
        return webhook.send(receiver, rows, now_ms, runbook)

    def _hear(self, name: str, errors: Sequence[str | None]) -> None:
        """One sentence when a receiver fails, and one when it is back."""
        was_up, failed = self.is_up.get(name, True), [error for error in errors if error]
        self.failed[name] += len(failed)
        self.taken[name] += len(errors) - len(failed)
        self.is_up[name] = not failed
        if failed and was_up:
            self.say(f"{name} did not take {len(failed)} alert(s) ({failed[0]}): they are sent again until it does.")
        elif not failed and not was_up:
            self.say(f"{name} takes alerts again.")


def _label(row: Row) -> tuple[str, ...]:
    return tuple(labels(row).values())
