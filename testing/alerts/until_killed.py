"""Runs `regroup notify` up to a point of its round, creates a file to signal that, and waits to be killed.

`python -m testing.alerts.until_killed POINT FILE [arguments of notify]`
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from jobs import cli
from jobs.alerting import alert_table
from jobs.alerting.delivery import Delivery, Due
from jobs.tables.tables import Tables
from schemas.rows import AlertRow

POINTS = ("between keeping and sending", "between sending and saving")


def halt(file: Path) -> None:
    file.touch()
    while True:
        time.sleep(1)


def main(point: str, file: Path, arguments: list[str]) -> int:
    save, send = alert_table.save, Delivery.send

    def halting_save(tables: Tables, before: Sequence[AlertRow], after: Sequence[AlertRow]) -> None:
        if any(row["sent_to"] for row in after if row not in before):
            halt(file)
        save(tables, before, after)

    def halting_send(self: Delivery, rows: Sequence[AlertRow], due: Due, now_ms: int) -> list[AlertRow]:
        if any(due.values()):
            halt(file)
        return send(self, rows, due, now_ms)

    if point == POINTS[0]:
        Delivery.send = halting_send  # type: ignore[method-assign]
    else:
        alert_table.save = halting_save
    return cli.main(["notify", *arguments])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:]))
