"""Three Alertmanagers in a cluster, cut off from each other and from `notify`: each alert comes, and its end as well.

An Alertmanager that cannot reach the others sends what it knows, because its documentation prefers a repeated message
to a missed one ("fail open", docs/high_availability.md). So a message may come once from each, and never more often.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import pytest

from jobs.config.receivers import Alertmanager as Receiver
from jobs.config.settings import Settings
from jobs.notify import Notifier
from schemas.bronze import COVERAGE
from schemas.gold import STORMS
from testing.alerts.receiving import Alertmanager, HttpReceiver
from testing.alerts.rows import coverage, now, storm, write
from testing.waiting import wait_until
from tests.faults.matrix import Trial
from tests.faults.network import Wire, unavailable
from tests.faults.tables import Difference

pytestmark = pytest.mark.faults

MEMBERS = 3
PEER_TIMEOUT_S, INTERVAL_S, RESEND_S = 1, 4, 4
"""A fifteenth of the defaults and of the example configuration, in seconds: how long each waits for the previous one to
send, its time between two messages about one cluster, and the time of `notify` between two messages about one alert.
"""
WAITS = {"group_wait: 10s": "group_wait: 700ms", "group_interval: 1m": f"group_interval: {INTERVAL_S}s"}
QUIET_S = 2 * INTERVAL_S + MEMBERS * PEER_TIMEOUT_S
"""After this time, each Alertmanager has sent all that it will send."""
GOSSIP = 9094
OPTIONS = (
    f"--cluster.peer-timeout={PEER_TIMEOUT_S}s",
    "--cluster.pushpull-interval=2s",
    "--cluster.reconnect-interval=1s",
    "--cluster.tcp-timeout=2s",
)

NOTIFY, A, B, C = range(1 + MEMBERS)
Cut = Sequence[tuple[int, int]]
PARTITIONS: dict[str, Cut] = {
    "none": (),
    "one apart from the others": ((A, B), (A, C)),
    "each apart from the others": ((A, B), (A, C), (B, C)),
    "one apart from notify": ((NOTIFY, A),),
    "two apart from notify": ((NOTIFY, A), (NOTIFY, B)),
    "all apart from notify": ((NOTIFY, A), (NOTIFY, B), (NOTIFY, C)),
    "one apart from notify and the others": ((NOTIFY, A), (A, B), (A, C)),
    "each apart from the others, two from notify": ((A, B), (A, C), (B, C), (NOTIFY, A), (NOTIFY, B)),
}


class Cluster:
    """Three members in separate networks, the receiver of their messages, and `notify`, which sends to all three."""

    def __init__(self, folder: Path, wire: Wire) -> None:
        self.wire = wire
        notify, heard, *members = wire.addresses
        self._addresses = [notify, *members]
        self.received = HttpReceiver(heard)
        self.members = []
        for host, address in enumerate(members):
            (folder / str(host)).mkdir()
            own = [f"--cluster.{kind}-address={address}:{GOSSIP}" for kind in ("listen", "advertise")]
            peers = [f"--cluster.peer={peer}:{GOSSIP}" for peer in members if peer != address]
            within, options = wire.inside(host), (*own, *peers, *OPTIONS)
            self.members.append(
                Alertmanager(
                    folder / str(host), self.received.url, waits=WAITS, host=address, within=within, cluster=options
                )
            )
        receivers = tuple(Receiver(name=f"am-{each}", url=member.url) for each, member in enumerate(self.members))
        self.warehouse = folder / "warehouse"
        settings = Settings(warehouse=self.warehouse, alertmanagers=receivers, resend_seconds=RESEND_S, metrics_port=0)
        self.notifier = Notifier(settings, say=lambda _: None)

    def start(self) -> None:
        for member in self.members:
            member.start()
        wait_until(self.is_whole)

    def stop(self) -> None:
        for member in self.members:
            member.stop()
        self.received.stop()

    def is_whole(self) -> bool:
        return all(self._peers(member) == MEMBERS for member in self.members)

    def _peers(self, member: Alertmanager) -> int:
        with suppress(OSError), urlopen(f"{member.url}/api/v2/status", timeout=5) as response:
            cluster = json.load(response)["cluster"]
            # Until then, it holds messages back.
            return len(cluster["peers"]) if cluster["status"] == "ready" else 0
        return 0

    def cut(self, pairs: Cut) -> None:
        self.wire.cut = {frozenset((self._addresses[a], self._addresses[b])) for a, b in pairs}

    def heal(self) -> None:
        self.wire.cut = set()
        wait_until(self.is_whole)

    def stored(self, group: str, *, is_open: bool) -> None:
        """The cluster of this name is read up to now, and this is its storm."""
        write(self.warehouse, COVERAGE, [coverage(at=now(), cluster=group)])
        write(self.warehouse, STORMS, [storm("orders", self.at, cluster=group, is_open=is_open)])

    def rounds(self, seconds: float) -> bool:
        """Run `notify` for this time; return whether all accepted the alerts of the last round."""
        until, accepted = time.monotonic() + seconds, False
        while time.monotonic() < until:
            accepted = self.notifier.round()
            time.sleep(0.2)
        return accepted

    def messages(self, of: str) -> list[str]:
        """Return the messages about the cluster of this name, in order."""
        bodies = self.received.bodies("/on-call")
        return [post["status"] for post in bodies if post["groupLabels"]["cluster"] == of]

    def is_over(self, of: str) -> bool:
        return not any(
            alert
            for member in self.members
            for alert in member.alerts("active=true")
            if alert["labels"]["cluster"] == of
        )

    def tell(self, name: str, pairs: Cut, *, is_cut_at: str) -> None:
        """Let an alert fire and end; cut the network while it does either."""
        self.at = now()
        for status in ("firing", "resolved"):
            self.cut(pairs if status == is_cut_at else ())
            self.stored(name, is_open=status == "firing")
            self.rounds(QUIET_S)
            self.heal()
            wait_until(lambda: self.rounds(1))
            wait_until(lambda status=status: status in self.messages(name))
        wait_until(lambda: self.is_over(name))
        time.sleep(QUIET_S)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[Cluster]:
    if why := unavailable():
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("alertmanagers")
    with Wire(folder / "wire", hosts=MEMBERS, own=2) as wire:
        running = Cluster(folder, wire)
        try:
            running.start()
            yield running
        finally:
            running.stop()


@pytest.mark.parametrize("is_cut_at", ["firing", "resolved"])
@pytest.mark.parametrize("partition", PARTITIONS)
def test_an_alert_and_its_end_come_however_the_network_is_cut(matrix, cluster, partition, is_cut_at, number) -> None:
    trial = matrix(f"Alertmanagers, cut while an alert is {is_cut_at}: {partition}", Trial())
    pairs, lost = PARTITIONS[partition], cluster.wire.lost
    name = f"{list(PARTITIONS).index(partition)}-{is_cut_at}-{number}"
    cluster.tell(name, pairs, is_cut_at=is_cut_at)
    trial.is_hit = not pairs or cluster.wire.lost > lost
    came = cluster.messages(name)
    more = len(came) - len({*came})
    trial.found = Difference(lost=2 - len({*came}), duplicated=more, is_identical=came == ["firing", "resolved"])
    assert {*came} == {"firing", "resolved"}, came
    assert came[-1] == "resolved", came
    assert more <= most(pairs, is_cut_at), came


def most(pairs: Cut, is_cut_at: str) -> int:
    """Messages that may be repeated.

    If all get the end, each of the separated ones sends each state once. One that does not get the end reports that the
    alert still fires, and the others contradict it with each message of `notify`.
    """
    if not pairs:
        return 0
    is_told = is_cut_at == "firing" or not any(NOTIFY in pair for pair in pairs)
    return 2 * (MEMBERS - 1) + (0 if is_told else 2 * (QUIET_S // RESEND_S + 1))
