"""A network on this machine whose packets pass through this process, which delays, drops or blocks them."""

from __future__ import annotations

import fcntl
import os
import select
import struct
import subprocess
import threading
import time
from collections import deque
from collections.abc import Sequence
from ipaddress import IPv4Address
from pathlib import Path
from random import Random
from socket import inet_ntoa
from typing import Self

from jobs.processes.processes import Supervised
from testing.waiting import wait_until

DEVICE = Path("/dev/net/tun")
TUNSETIFF = 0x4004_54CA
TUN, NO_HEADER = 0x0001, 0x1000


class Wire:
    """A connection from this namespace's addresses to `hosts` separate namespaces, in which commands that begin with
    `inside` run.

    Not every kernel can delay packets itself (netem), but every kernel lets a process read packets at one end and write
    them to another. The namespaces have no names: they are gone with this process, however that ends.

    `addresses` are those of this namespace, `own` of them, then that of each other one. `delay_s` and `loss` (a share)
    hold for packets in either direction; `is_cut` loses all, `cut` those between two addresses. `lost` counts.
    """

    def __init__(self, folder: Path, *, hosts: int = 1, own: int = 1) -> None:
        number = os.getpid() & 0x1FFF
        first = int(IPv4Address("198.18.0.0")) + (number << 4)
        self.addresses = [str(IPv4Address(first + 1 + each)) for each in range(own + hosts)]
        self.here = self.addresses[0]
        self._own, self._hosts = own, hosts
        self._names = [f"rg{os.getpid()}n{each}" for each in range(hosts + 1)]
        self._folder = folder
        self._over = threading.Event()
        self._chance = Random(1)
        self.delay_s, self.loss, self.is_cut = 0.0, 0.0, False
        self.cut: set[frozenset[str]] = set()
        self.lost = 0

    def inside(self, host: int = 0) -> tuple[str, ...]:
        return ("nsenter", f"--net=/proc/{self._holders[host].pid}/ns/net")

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        output = self._folder / "namespace.log"
        command = ["unshare", "--net", "sleep", "infinity"]
        self._holders = [Supervised(command, output=output) for _ in range(self._hosts)]
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
        own = Path("/proc/self/ns/net").readlink()
        self._ends += [_device(name) for name in self._names]
        near, *far = self._names
        _up(near, self.addresses[: self._own])
        for host, (holder, name) in enumerate(zip(self._holders, far, strict=True)):
            its = Path(f"/proc/{holder.pid}/ns/net")
            wait_until(lambda its=its: its.readlink() != own)
            _ip("link", "set", name, "netns", str(holder.pid))
            _ip("link", "set", "lo", "up", within=self.inside(host))
            _up(name, [self.addresses[self._own + host]], self.inside(host))

    def _remove(self) -> None:
        for end in self._ends:
            os.close(end)
        for holder in self._holders:
            holder.kill()

    def _carry(self) -> None:
        ends = dict(zip(self.addresses, [self._ends[0]] * (self._own - 1) + self._ends, strict=True))
        under_way: deque[tuple[float, int, bytes]] = deque()
        while not self._over.is_set():
            next_in = under_way[0][0] - time.monotonic() if under_way else 0.05
            for end in select.select(self._ends, (), (), max(0.0, next_in))[0]:
                packet = os.read(end, 65_536)
                if packet[0] >> 4 != 4:  # messages of IPv6 itself
                    continue
                source, target = inet_ntoa(packet[12:16]), inet_ntoa(packet[16:20])
                if self.is_cut or {source, target} in self.cut or self._chance.random() < self.loss:
                    self.lost += 1
                elif target in ends:
                    under_way.append((time.monotonic() + self.delay_s, ends[target], packet))
            while under_way and under_way[0][0] <= time.monotonic():
                _, end, packet = under_way.popleft()
                os.write(end, packet)


def unavailable() -> str:
    """Return why this machine cannot have a `Wire`; empty if it can."""
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


def _up(name: str, addresses: Sequence[str], within: tuple[str, ...] = ()) -> None:
    for address in addresses:
        _ip("address", "add", f"{address}/28", "dev", name, within=within)
    _ip("link", "set", name, "mtu", "9000", "up", within=within)


def _ip(*arguments: str, within: tuple[str, ...] = ()) -> None:
    subprocess.run([*within, "ip", *arguments], check=True, capture_output=True, text=True)
