"""A network on this machine alone, whose packets pass through this process: delayed, lost, or none at all."""

from __future__ import annotations

import fcntl
import os
import select
import struct
import subprocess
import threading
import time
from collections import deque
from pathlib import Path
from random import Random
from typing import Self

from jobs.processes.processes import Supervised
from testing.waiting import wait_until

DEVICE = Path("/dev/net/tun")
TUNSETIFF = 0x4004_54CA
TUN, NO_HEADER = 0x0001, 0x1000


class Wire:
    """From this machine's address `here` to a namespace of its own, in which what `inside` begins with runs.

    The kernel's own delays (netem) are not in every kernel; what is read from one end and written to the other is. The
    namespace has no name: it is gone with this process, however that ends.

    `delay_s` and `loss` (a share) hold for packets in either direction; `is_cut` loses all. `lost` counts.
    """

    def __init__(self, folder: Path) -> None:
        number = os.getpid() & 0x3FFF
        self.here = f"198.18.{number >> 6}.{4 * (number & 0x3F) + 1}"
        self._there = f"198.18.{number >> 6}.{4 * (number & 0x3F) + 2}"
        self._names = (f"rg{os.getpid()}a", f"rg{os.getpid()}b")
        self._folder = folder
        self._over = threading.Event()
        self._chance = Random(1)
        self.delay_s, self.loss, self.is_cut = 0.0, 0.0, False
        self.lost = 0

    @property
    def inside(self) -> tuple[str, ...]:
        return ("nsenter", f"--net=/proc/{self._holder.pid}/ns/net")

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._holder = Supervised(["unshare", "--net", "sleep", "infinity"], output=self._folder / "namespace.log")
        self._ends: list[int] = []
        try:
            self._lay()
        except BaseException:
            self._remove()
            raise
        self._carrier = threading.Thread(target=self._carry)
        self._carrier.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._carrier.join()
        self._remove()

    def _lay(self) -> None:
        own, its = Path("/proc/self/ns/net").readlink(), Path(f"/proc/{self._holder.pid}/ns/net")
        wait_until(lambda: its.readlink() != own)
        self._ends += [_device(name) for name in self._names]
        near, far = self._names
        _ip("link", "set", far, "netns", str(self._holder.pid))
        _ip("link", "set", "lo", "up", within=self.inside)
        for name, address, within in ((near, self.here, ()), (far, self._there, self.inside)):
            _ip("address", "add", f"{address}/30", "dev", name, within=within)
            _ip("link", "set", name, "mtu", "9000", "up", within=within)

    def _remove(self) -> None:
        for end in self._ends:
            os.close(end)
        self._holder.kill()

    def _carry(self) -> None:
        other = dict(zip(self._ends, reversed(self._ends), strict=True))
        under_way: deque[tuple[float, int, bytes]] = deque()
        while not self._over.is_set():
            next_in = under_way[0][0] - time.monotonic() if under_way else 0.05
            for end in select.select(self._ends, (), (), max(0.0, next_in))[0]:
                packet = os.read(end, 65_536)
                if packet[0] >> 4 != 4:  # what IPv6 says of itself
                    continue
                if self.is_cut or self._chance.random() < self.loss:
                    self.lost += 1
                else:
                    under_way.append((time.monotonic() + self.delay_s, other[end], packet))
            while under_way and under_way[0][0] <= time.monotonic():
                _, end, packet = under_way.popleft()
                os.write(end, packet)


def unavailable() -> str:
    """Why there can be no `Wire` here; empty where there can."""
    if os.geteuid() != 0:
        return "a network of one's own takes root"
    if not DEVICE.exists():
        return f"a network of one's own takes {DEVICE}"
    command = ["unshare", "--net", "ip", "link", "set", "lo", "up"]
    may = subprocess.run(command, check=False, capture_output=True, text=True)
    return f"no network namespaces here: {may.stderr.strip()}" if may.returncode else ""


def _device(name: str) -> int:
    end = os.open(DEVICE, os.O_RDWR)
    fcntl.ioctl(end, TUNSETIFF, struct.pack("16sH22x", name.encode(), TUN | NO_HEADER))
    return end


def _ip(*arguments: str, within: tuple[str, ...] = ()) -> None:
    subprocess.run([*within, "ip", *arguments], check=True, capture_output=True, text=True)
