"""Three real brokers for the folder, and a function that moves a partition between them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from jobs.lab.broker import Broker

QUICK = {"replica.fetch.wait.max.ms": 100, "offsets.topic.num.partitions": 1}


@pytest.fixture(scope="session")
def brokers(tmp_path_factory):
    """The first is the controller too."""
    with ExitStack() as stack:
        folder = tmp_path_factory.mktemp("brokers")
        first = stack.enter_context(Broker(folder / "1", overrides=QUICK, heap="256m"))
        others = [Broker(folder / str(n), overrides=QUICK, heap="192m", node_id=n, joins=first) for n in (2, 3)]
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(stack.enter_context, others))
        yield [first, *others]
