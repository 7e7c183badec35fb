"""Log lines per second on one core: `python -m bench.log_lines [SERVER_LOG]`.

Without a file: the golden lines of the tests as lifecycle lines, and typical broker lines as all others.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from pipelines.coordinator_events import ParsedEvent
from pipelines.line_reading import read_line
from pipelines.log_layouts import layout, zone
from testing.recordings import WORDINGS

SECONDS = 2.0
OTHERS = [
    "[2026-11-21 06:41:02,803] INFO [LocalLog partition=payments-3, dir=/data] Rolled new segment (kafka.log.LocalLog)",
    "[2026-11-21 06:41:02,803] WARN [Broker id=1] Ignoring LeaderAndIsr request (state.change.logger)",
    "\tat org.apache.kafka.common.network.Selector.poll(Selector.java:482)",
    "[2026-11-21 06:41:02,803] INFO Startup. (kafka.coordinator.transaction.TransactionCoordinator)",
]


def lines_per_second(lines: list[str]) -> tuple[float, float]:
    """Return the lines per second of processor time, and the share of lines that are events."""
    like, utc = layout("default"), zone("UTC")
    done = events = 0
    begun = time.process_time()
    while time.process_time() - begun < SECONDS:
        events += sum(isinstance(read_line(line, like, utc), ParsedEvent) for line in lines)
        done += len(lines)
    return done / (time.process_time() - begun), events / done


def main() -> None:
    golden = [json.loads(line) for line in WORDINGS.read_text(encoding="utf-8").splitlines()]
    lifecycle = [f"[2026-11-21 06:41:02,803] INFO {g['message']} ({g['logger']})" for g in golden]
    classic = [
        text for text in lifecycle if "Preparing" in text or "Stabilized" in text or "Assignment received" in text
    ]
    sets = {"other lines": OTHERS, "lifecycle lines, every wording": lifecycle, "of a classic rebalance": classic}
    for file in sys.argv[1:]:
        sets[file] = Path(file).read_text(encoding="utf-8", errors="replace").splitlines()
    print(f"{'lines':40} {'lines/s':>12} {'events':>8}")
    for name, lines in sets.items():
        speed, share = lines_per_second(lines)
        print(f"{name[-40:]:40} {speed:12,.0f} {share:8.0%}")


if __name__ == "__main__":
    main()
