"""The program of one lab member: a consumer with auto-commit that reads orders from standard input.

`leave` closes the consumer cleanly and exits. `block SECONDS` stops polling for that long. When standard input ends,
the parent process has ended, and the program exits at once. It is run by file name and imports nothing of Regroup.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time

from confluent_kafka import Consumer


def main(topic: str, config: dict[str, object]) -> None:
    """Consume `topic` until the order to leave."""
    orders: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_listen, args=[orders], daemon=True).start()
    consumer = Consumer(config)
    consumer.subscribe([topic])
    while True:
        consumer.consume(num_messages=500, timeout=0.25)
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
    main(sys.argv[1], json.loads(sys.argv[2]))
