"""One group of the consumer protocol (KIP-848) that comes and goes member by member: what silver of it takes.

`./regroup bench consumer-group [--members 100 200 400]`. Each member that joins, and each that leaves, makes an epoch
of its own, and `generation_members` has a row for each member of each epoch. Such a group is rebuilt from its first
record whenever it rebalances, so this is what its next rebalance takes. The functions that make silver run in this
process, on one core; no Kafka, no Spark.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from bench.large_group import BEGIN_MS, measured
from jobs.settings import Settings
from jobs.silver_tasks import Making
from pipelines.arrow_types import stored
from pipelines.silver.client_hosts import ClientHosts
from pipelines.silver.frame import INPUTS
from schemas.bronze import COORDINATOR_RECORDS

GROUP, TOPIC, TOPIC_ID = "payments-settlement", "settlement-events", "topicAAAAAAAAAAAAAAAAA1"
PARTITIONS, APART_MS = 4, 1_000
"""Of each member; between two epochs."""

Body = tuple[int, str, str | None, dict[str, Any] | None]
"""Time in ms, kind after `ConsumerGroup`, member, value."""


def history(members: int) -> Iterator[Body]:
    """All join one after the other, then leave in the same order; each record as the coordinator writes it."""
    names = [f"member-{number:05d}" for number in range(members)]
    for turn, name in enumerate((*names, *names)):
        at, epoch = BEGIN_MS + turn * APART_MS, turn + 2
        if turn < members:
            given = partitions(turn)
            yield at, "MemberMetadata", name, seat(name)
            yield at, "Metadata", None, {"epoch": epoch, "metadataHash": 1}
            yield at, "TargetAssignmentMember", name, {"topicPartitions": given}
            yield at, "TargetAssignmentMetadata", None, {"assignmentEpoch": epoch}
            yield at, "CurrentMemberAssignment", name, current(epoch, given)
            others: Sequence[int] = range(turn)
        else:
            for kind in ("CurrentMemberAssignment", "TargetAssignmentMember", "MemberMetadata"):
                yield at, kind, name, None
            yield at, "Metadata", None, {"epoch": epoch, "metadataHash": 1}
            yield at, "TargetAssignmentMetadata", None, {"assignmentEpoch": epoch}
            others = range(turn - members + 1, members)
        for number in others:
            yield at + APART_MS // 2, "CurrentMemberAssignment", names[number], current(epoch, partitions(number))


def partitions(number: int) -> list[dict[str, Any]]:
    first = number * PARTITIONS
    return [{"topicId": TOPIC_ID, "partitions": list(range(first, first + PARTITIONS))}]


def seat(name: str) -> dict[str, Any]:
    return {
        "instanceId": None,
        "clientId": name,
        "clientHost": "/10.0.0.1",
        "subscribedTopicNames": [TOPIC],
        "rebalanceTimeoutMs": 300_000,
    }


def current(epoch: int, given: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "memberEpoch": epoch, "previousMemberEpoch": epoch - 1, "state": 0, "assignedPartitions": given,
        "partitionsPendingRevocation": [],
    }  # fmt: skip


def records(members: int) -> pa.Table:
    """Rows of `coordinator_records`."""
    return stored(
        (
            {
                "cluster": "bench", "group_id": GROUP, "log_epoch": 0, "source_partition": 0, "source_offset": offset,
                "record_at": at, "record_kind": f"ConsumerGroup{kind}", "member_id": member_id,
                "is_tombstone": value is None, "body": json.dumps({"key": {}, "value": value}),
            }
            for offset, (at, kind, member_id, value) in enumerate(history(members))
        ),
        COORDINATOR_RECORDS,
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, nargs="*", default=[100, 200, 400])
    making = Making(quiet_ms=Settings().quiet_ms, hosts=ClientHosts(), topic_names={})
    for members in parser.parse_args().members:
        known = {name: pa.table({}) for name in INPUTS} | {"record": records(members)}
        what = f"silver of {members:,} members, {known['record'].num_rows:,} records"
        found = measured(what, partial(making.rows, known, pa.table({})))
        print("  " + ", ".join(f"{table.name} {rows.num_rows:,}" for table, rows in found.items()))


if __name__ == "__main__":
    main()
