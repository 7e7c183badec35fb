"""Which traces or log records a collector has: a file beside other states of a warehouse, replaced after each request.

A crash between a request and the file repeats at most one request, with the same ids.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jobs.tables.delta_io import checkpoint_path
from jobs.tables.disk.durability import write_whole

COUNTS = ("accepted", "expired", "refused")


@dataclass(slots=True)
class SentTraces:
    """The position of each cluster and what was sent after it. Times are in milliseconds.

    `positions`: rebalances that completed earlier are not read again. `rebalances`: by cluster, the ids of those sent
    after the position, with the times of completion. `others`: ids of deploys, storms and states of alerts. `counts`:
    traces since the first start that the collector accepted, that became too old before it could, and that it refused
    for good.
    """

    path: Path
    positions: dict[str, int] = field(default_factory=dict)
    rebalances: dict[str, dict[str, int]] = field(default_factory=dict)
    others: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTS, 0))

    @classmethod
    def of(cls, warehouse: Path, name: str = "otlp_traces") -> SentTraces:
        """Read the file. A missing or broken file is one without entries: the traces of `max_hours` are sent again."""
        path = checkpoint_path(warehouse, "notify") / f"{name}.json"
        found = cls(path)
        try:
            stored: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            found.positions = {str(name): int(at) for name, at in stored["positions"].items()}
            found.rebalances = {
                str(name): {str(key): int(at) for key, at in sent.items()}
                for name, sent in stored["rebalances"].items()
            }
            found.others = {str(key): int(at) for key, at in stored["others"].items()}
            found.counts |= {name: int(stored["counts"][name]) for name in COUNTS}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return cls(path)
        return found

    def advance(self, cluster: str, position: int) -> None:
        """Move the position of the cluster forward, and forget what was sent before it."""
        self.positions[cluster] = max(position, self.positions.get(cluster, position))
        sent = self.rebalances.get(cluster, {})
        self.rebalances[cluster] = {key: at for key, at in sent.items() if at >= self.positions[cluster]}

    def forget_others(self, before_ms: int) -> None:
        self.others = {key: at for key, at in self.others.items() if at >= before_ms}

    def save(self) -> None:
        """Replace the file. Raises `OSError` if it cannot be written."""
        stored = {
            "positions": self.positions,
            "rebalances": self.rebalances,
            "others": self.others,
            "counts": self.counts,
        }
        write_whole(self.path, json.dumps(stored))
