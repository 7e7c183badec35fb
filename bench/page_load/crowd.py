"""Many readers of the pages at once."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from bench.page_load.addresses import Asking, Known
from bench.page_load.client import Client, client


def crowd(host: str, there: Known, readers: int, seconds: float) -> list[float]:
    """Run `readers` readers at once, each with a page open for 5 to 15 s that ticks; return the ms of every request.

    Relative ranges end at the same time for all readers at about the same time, also here. Groups, rebalances and
    storms differ between readers.
    """
    took: list[float] = []
    until, pause = time.monotonic() + seconds, min(5.0, seconds)

    def read(number: int) -> None:
        # The readers share the machine with the pages: measuring the size of a page would take as long as building it.
        with closing(client(host, weighs=False)) as asking:
            style(asking, Asking(there, number + 1, ends=3))

    def style(asking: Client, pages: Asking) -> None:
        choices = [*pages.pages().items()]
        weights = [2 if name.startswith(("fleet", "group", "zoom")) else 1 for name, _ in choices]
        time.sleep(pages.rng.uniform(0, pause))
        while time.monotonic() < until:
            address = pages.rng.choices(choices, weights)[0][1]()
            took.append(asking.open(address))
            for _ in range(pages.rng.randint(1, 3)):
                time.sleep(pause)
                took.append(asking.open(address, is_tick=True))

    with ThreadPoolExecutor(readers) as pool:
        list(pool.map(read, range(readers)))
    return took
