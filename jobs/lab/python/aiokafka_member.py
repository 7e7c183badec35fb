"""One aiokafka member of the lab. Arguments: the topic, and the settings as JSON.

Orders are lines on standard input: `leave` closes the member, `block SECONDS` makes its handler wait, without blocking
the event loop. When standard input ends, the parent process has ended, and the program exits at once.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading

from aiokafka import AIOKafkaConsumer


async def main(topic: str, config: dict[str, object]) -> None:
    """Consume `topic` until the order to leave."""
    orders: asyncio.Queue[str] = asyncio.Queue()
    threading.Thread(target=_listen, args=[orders, asyncio.get_running_loop()], daemon=True).start()
    consumer = AIOKafkaConsumer(topic, auto_offset_reset="earliest", **config)
    await consumer.start()
    while True:
        await consumer.getmany(timeout_ms=250)
        if orders.empty():
            continue
        order, *arguments = orders.get_nowait().split()
        if order == "leave":
            await consumer.stop()
            return
        await asyncio.sleep(float(arguments[0]))


def _listen(orders: asyncio.Queue[str], loop: asyncio.AbstractEventLoop) -> None:
    for line in sys.stdin:
        loop.call_soon_threadsafe(orders.put_nowait, line)
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], json.loads(sys.argv[2])))
