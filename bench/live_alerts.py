"""Time from Kafka to Alertmanager: from the records of a storm to the alert that `up` sends.

`python -m bench.live_alerts [--groups 5]`. Starts a broker, real consumers, `./regroup up` and a real Alertmanager on
this machine. In each group one consumer crashes in a loop. The groups start one after the other, because together they
would be a storm of the cluster. Takes four minutes, and one more for each group.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from random import Random

from deltalake import DeltaTable

from jobs.lab import churn
from jobs.lab.lab import Lab
from jobs.lab.members import ConsumerPlan, RunningGroup
from jobs.lab.scenario import Scenario
from jobs.tables.paths import table_path
from schemas.gold import STORMS
from testing.alerts.receiving import Alertmanager, HttpReceiver

BATCH = re.compile(r"^ *([0-9.]+) s  Batch \d+ is in silver", re.MULTILINE)
WARM_S, APART_S, AFTER_S = 75.0, 75.0, 100.0


def later(seconds: float) -> churn.Script:
    def script(group: RunningGroup, rng: Random) -> Iterator[float]:
        yield seconds
        yield from churn.crash_loop(group, rng)

    return script


def scenario(groups: int) -> Scenario:
    return Scenario(
        groups=[
            (
                ConsumerPlan(group_id=f"loops-{n}", topic=f"loops-{n}", partitions=4, members=2),
                later(WARM_S + n * APART_S),
            )
            for n in range(groups)
        ]
    )


def first_seen(alertmanager: Alertmanager, until: float) -> dict[str, float]:
    """Return for each group when Alertmanager got its storm."""
    seen: dict[str, float] = {}
    while time.time() < until:
        for alert in alertmanager.alerts("filter=alertname%3DKafkaRebalanceStorm"):
            seen.setdefault(alert["labels"].get("group", "(fleet)"), time.time())
        time.sleep(0.25)
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=5)
    groups = parser.parse_args().groups
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        lab = stack.enter_context(Lab(folder / "lab", scenario(groups)))
        lab.create_topic("regroup-events")
        receiver = HttpReceiver()
        stack.callback(receiver.stop)
        alertmanager = Alertmanager(folder, receiver.url)
        alertmanager.start()
        stack.callback(alertmanager.stop)
        settings = folder / "regroup.toml"
        settings.write_text(
            f'[[alertmanagers]]\nurl = "{alertmanager.url}"\n[clusters.lab]\n'
            f'bootstrap_servers = "{lab.bootstrap_servers}"\n'
            + "".join(
                f'[[clusters.lab.logs]]\npath = "{path}"\nbroker_id = {number}\n'
                for number, path in lab.broker_logs.items()
            )
        )
        warehouse = folder / "warehouse"
        command = [sys.executable, "-m", "jobs.cli", "up", "--config", str(settings), "--warehouse", str(warehouse)]
        began = time.time()
        with (folder / "up.log").open("wb") as log:
            up = subprocess.Popen([*command, "--port", "0"], stdout=log, stderr=log)
        stack.callback(up.wait)
        stack.callback(up.terminate)
        seen = first_seen(alertmanager, time.time() + WARM_S + groups * APART_S + AFTER_S)
        storms = DeltaTable(table_path(warehouse, STORMS)).to_pyarrow_table().to_pylist()
        log_text = (folder / "up.log").read_text()
    detected = {
        row["group_ids"][0] if row["groups"] == 1 else "(fleet)": row["detected_at"].timestamp() for row in storms
    }
    batches = [began + float(at) for at in BATCH.findall(log_text)]
    lasted = [b - a for a, b in pairwise(batches[len(batches) // 2 :])]
    print(f"batches: {len(batches)}; in the second half one every {statistics.mean(lasted):.1f} s")
    for group, at in sorted(detected.items(), key=lambda item: item[1]):
        ends = [f"{end - at:.1f}" for end in batches if at < end < seen.get(group, at)]
        print(
            f"{group}: batches ended {', '.join(ends)} s after the record; told {seen.get(group, at) - at:.1f} s after"
        )
    delays = sorted(seen[group] - at for group, at in detected.items() if group in seen)
    print(f"storms in the table: {len(detected)} of {groups}; received: {len(delays)}")
    print("delays, s: " + ", ".join(f"{delay:.1f}" for delay in delays))
    if len(delays) > 1:
        print(f"median {statistics.median(delays):.1f}, longest {delays[-1]:.1f}")


if __name__ == "__main__":
    main()
