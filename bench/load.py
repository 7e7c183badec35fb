"""Load in Kafka's own record formats, written directly to `__consumer_offsets` of a loopback broker.

Each group of 3 members commits the 10 partitions that are assigned to them in rounds, like OffsetCommit requests. In
every 20th round (or another number) a GroupMetadata record starts its next generation, for a twentieth of the groups at
a time: 0.5 % of all records. The broker must run with `OVERRIDES`, because the history is otherwise compacted while it
is written.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from jobs.captures.recording import Capture
from pipelines.decoding.group_partition import partition_of
from schemas.records import OFFSETS_TOPIC
from testing.recordings import CAPTURES
from testing.records.binary import group_key, group_metadata, offset_commit, offset_commit_key
from testing.records.endless import going_on

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

PARTITIONS_PER_GROUP = 10
LOOP, LOOP_GROUP = "connect_mismatch", "branch-connect"
"""The recording of a Connect group in a loop, and the group."""
# A broker with these settings keeps every record of the load.
OVERRIDES = {"log.cleaner.enable": "false", "log.retention.ms": -1, "offsets.topic.num.partitions": 50}


@dataclass(frozen=True, kw_only=True)
class Load:
    """The load: `records` in all, at event times `records_per_s` apart that end now."""

    records: int
    groups: int = 1_200
    partitions: int = 50
    records_per_s: int = 2_000
    rounds_per_generation: int = 20

    def announced(self, turn: int, group: int) -> int | None:
        """Return the generation that the group with this number starts in this round; None if it starts none."""
        shifted = turn + group % self.rounds_per_generation
        begins = not turn or not shifted % self.rounds_per_generation
        return shifted // self.rounds_per_generation + 1 if begins else None


def write(bootstrap_servers: str, load: Load, *, processes: int = 2) -> None:
    """Create the topic if it is missing, and produce `load` with several processes; return when all is acknowledged."""
    create_offsets_topic(bootstrap_servers, load.partitions)
    start_ms = int(time.time() * 1000) - load.records * 1000 // load.records_per_s
    spawn = multiprocessing.get_context("spawn")
    workers = [
        spawn.Process(target=produce, args=(bootstrap_servers, load, start_ms, range(n, load.groups, processes)))
        for n in range(processes)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if any(worker.exitcode for worker in workers):
        raise SystemExit("A producer of the load failed.")


def create_offsets_topic(bootstrap_servers: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    topic = NewTopic(OFFSETS_TOPIC, partitions, 1, config={"cleanup.policy": "compact", "segment.bytes": "104857600"})
    try:
        admin.create_topics([topic])[OFFSETS_TOPIC].result(30)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise


def produce(bootstrap_servers: str, load: Load, start_ms: int, groups: Sequence[int]) -> None:
    """Produce one process's share: the groups with the numbers `groups`. Future records are written when they are due.

    Only an admin client id may write to an internal topic.
    """
    _produce(bootstrap_servers, records(load, start_ms, groups))


def produce_loop(bootstrap_servers: str, partitions: int, per_s: int, start_ms: int) -> None:
    """Produce a Connect group that never rests, until this process is ended: a recording, then `per_s` generations a
    second from `start_ms` on that go on with its CONFIG_MISMATCH loop.
    """
    recorded = list(Capture(CAPTURES / LOOP).records())
    loop = chain(recorded, going_on(recorded[-1], per_s * 86_400, 1000 // per_s, start_ms))
    home = partition_of(LOOP_GROUP, partitions)
    _produce(bootstrap_servers, ((home, each.timestamp_ms, each.key or b"", each.value) for each in loop))


def _produce(bootstrap_servers: str, made: Iterable[tuple[int, int, bytes, bytes | None]]) -> None:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "client.id": "__admin_client",
            "enable.idempotence": True,  # retries keep the order
            "linger.ms": 50,
            "batch.num.messages": 2_000,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    for partition, at_ms, key, value in made:
        while (ahead_s := at_ms / 1000 - time.time()) > 0:
            producer.poll(min(ahead_s, 0.05))
        while True:
            try:
                producer.produce(OFFSETS_TOPIC, value, key, partition, timestamp=at_ms)
                break
            except BufferError:
                producer.poll(0.05)
    producer.flush()


def records(load: Load, start_ms: int, groups: Sequence[int]) -> Iterator[tuple[int, int, bytes, bytes]]:
    """Yield (offsets partition, time in ms, key, value), in order of time within each group."""
    names = {number: f"payments-settlement-{number:05d}" for number in groups}
    topics = {number: f"settlement-events-{number % 97:03d}" for number in groups}
    commit_keys = {
        number: [offset_commit_key(name, topics[number], p) for p in range(PARTITIONS_PER_GROUP)]
        for number, name in names.items()
    }
    homes = {number: partition_of(name, load.partitions) for number, name in names.items()}
    per_round = PARTITIONS_PER_GROUP * load.groups
    rounds = -(-load.records // per_round)
    for turn in range(rounds):
        for number in groups:
            at_ms = start_ms + (turn * load.groups + number) * PARTITIONS_PER_GROUP * 1000 // load.records_per_s
            if generation := load.announced(turn, number):
                started = group_metadata(names[number], generation, at_ms, topic=topics[number])
                yield homes[number], at_ms, group_key(names[number]), started
            for partition, key in enumerate(commit_keys[number]):
                yield homes[number], at_ms, key, offset_commit(turn * 100 + partition, at_ms)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap-servers", required=True, help="a loopback broker with log.cleaner.enable=false")
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--groups", type=int, default=1_200)
    arguments = parser.parse_args()
    began = time.monotonic()
    write(arguments.bootstrap_servers, Load(records=arguments.records, groups=arguments.groups))
    print(f"{arguments.records:,} records written in {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main()
