"""Creates an archive of the loaded classes of Kafka's broker, which later brokers map into memory (Java's AppCDS).

The first start of a broker takes 2.3 s of processor time instead of 3.9 s.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from jobs.config.errors import one_line
from jobs.setup.class_archive_file import SILENT, create


def make() -> None:
    """Create the archive, unless it exists, from a broker with one topic and one group.

    Raises:
        OSError: the environment cannot be written.
        UserError: the broker did not start.
    """
    create("kafka", "creating an archive of the broker's classes, once; later brokers start faster", _exercised)


def _exercised(part: Path, folder: Path) -> None:
    from confluent_kafka import Consumer, Producer  # noqa: PLC0415 - longer than finding an existing archive
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415
    from confluent_kafka.cimpl import NewTopic  # noqa: PLC0415

    from jobs.lab.broker import Broker  # noqa: PLC0415

    # Each JVM that ends writes the file anew: the broker is the last one.
    os.environ["JDK_JAVA_OPTIONS"] = " ".join((f'"-XX:ArchiveClassesAtExit={part}"', *SILENT))
    with Broker(folder / "broker") as broker:
        # Clients that outlive the broker would log it.
        known: dict[str, str | int | float | bool] = {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0}
        admin = AdminClient(known)
        admin.create_topics([NewTopic("topic", 1, 1)])["topic"].result(60)
        producer = Producer(known)
        producer.produce("topic", b"value")
        producer.flush(60)
        consumer = Consumer(known | {"group.id": "group", "auto.offset.reset": "earliest"})
        consumer.subscribe(["topic"])
        consumer.consume(1, 60)
        consumer.close()


if __name__ == "__main__":
    try:
        make()
    except Exception as error:  # noqa: BLE001 - the archive is optional
        sys.exit(f"regroup: no archive of the broker's classes, so each start takes longer: {one_line(error)}")
