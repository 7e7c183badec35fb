"""One kafka-python member of the lab. Arguments: the topic, and the settings as JSON.

Orders are lines on standard input: `leave` closes the member, `block SECONDS` stops polling for that long. When
standard input ends, the parent process has ended, and the program exits at once.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import sys
import threading
import time

from kafka import KafkaConsumer
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor


def main(topic: str, config: dict[str, object]) -> None:
    """Consume `topic` until the order to leave."""
    orders: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_listen, args=[orders], daemon=True).start()
    consumer = KafkaConsumer(
        topic,
        auto_offset_reset="earliest",
        partition_assignment_strategy=[CooperativeStickyAssignor],
        **config,
    )
    while True:
        consumer.poll(timeout_ms=250)
        try:
            order, *arguments = orders.get_nowait().split()
        except queue.Empty:
            continue
        if order == "leave":
            consumer.close()
            return
        time.sleep(float(arguments[0]))


def _listen(orders: queue.Queue[str]) -> None:
    for line in sys.stdin:
        orders.put(line)
    os._exit(0)


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(message)s")
    main(sys.argv[1], json.loads(sys.argv[2]))
