"""Time for silver of the next rebalance of one consumer-protocol group (KIP-848) with a deploy every day.

`./regroup bench consumer-group [--members 100] [--days 1 4 16] [--restless]`. In a deploy each member leaves and
another one joins, and each of these changes bumps the epoch. `generation_members` has a row for each member of each
epoch. The functions that make silver run in this process, on one core: over the whole history, and from the last point.
With `--restless`, a deploy follows the other at once, so that the group never rests. No Kafka, no Spark.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bench.large_group import BEGIN_MS, measured
from jobs.config.settings import Settings
from jobs.silver.silver_tasks import Making
from pipelines.arrow_types import stored
from pipelines.silver.client_hosts import ClientHosts
from pipelines.silver.frame import INPUTS
from schemas.bronze import COORDINATOR_RECORDS
from schemas.silver import GROUPS, REBALANCES, RESUME_POINTS
from schemas.tables import Table

GROUP, TOPIC, TOPIC_ID = "payments-settlement", "settlement-events", "topicAAAAAAAAAAAAAAAAA1"
PARTITIONS, APART_MS, DAY_MS = 4, 1_000, 86_400_000
"""Partitions of each member, and the time in ms between two epochs."""

POINT = ("base_log_epoch", "base_offset", "base_rebalance_mode", "incarnation")
NO_POINTS = pa.table({"base_offset": pa.array([], pa.int64())})

Body = tuple[int, str, str | None, dict[str, Any] | None]
"""Time in ms, kind after `ConsumerGroup`, member, value."""


def history(members: int, days: int, apart_ms: int) -> Iterator[Body]:
    """Yield the coordinator's records: all members join one after the other; every `apart_ms` each is replaced, in the
    same order.
    """
    epoch, present = 1, list[str]()
    for day in range(days + 1):
        for round_no in range(members):
            at = BEGIN_MS + day * apart_ms + 2 * round_no * APART_MS
            if day:
                gone = present.pop(0)
                epoch += 1
                for kind in ("CurrentMemberAssignment", "TargetAssignmentMember", "MemberMetadata"):
                    yield at, kind, gone, None
                yield at, "Metadata", None, {"epoch": epoch, "metadataHash": 1}
                yield at, "TargetAssignmentMetadata", None, {"assignmentEpoch": epoch}
                yield from reached(at, epoch, present, round_no + 1, members)
            epoch, name, assigned, at = epoch + 1, f"member-{day}-{round_no:05d}", partitions(round_no), at + APART_MS
            yield at, "MemberMetadata", name, member(name)
            yield at, "Metadata", None, {"epoch": epoch, "metadataHash": 1}
            yield at, "TargetAssignmentMember", name, {"topicPartitions": assigned}
            yield at, "TargetAssignmentMetadata", None, {"assignmentEpoch": epoch}
            yield at, "CurrentMemberAssignment", name, current(epoch, assigned)
            yield from reached(at, epoch, present, round_no - len(present), members)
            present.append(name)


def reached(at: int, epoch: int, present: Sequence[str], first: int, members: int) -> Iterator[Body]:
    """Yield the records in which all members reach the epoch. The first member has the partitions of number `first`."""
    for place, name in enumerate(present, first):
        yield at + APART_MS // 2, "CurrentMemberAssignment", name, current(epoch, partitions(place % members))


def partitions(number: int) -> list[dict[str, Any]]:
    first = number * PARTITIONS
    return [{"topicId": TOPIC_ID, "partitions": list(range(first, first + PARTITIONS))}]


def member(name: str) -> dict[str, Any]:
    return {
        "instanceId": None,
        "clientId": name,
        "clientHost": "/10.0.0.1",
        "subscribedTopicNames": [TOPIC],
        "rebalanceTimeoutMs": 300_000,
    }


def current(epoch: int, assigned: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "memberEpoch": epoch, "previousMemberEpoch": epoch - 1, "state": 0, "assignedPartitions": assigned,
        "partitionsPendingRevocation": [],
    }  # fmt: skip


def records(members: int, days: int, apart_ms: int) -> pa.Table:
    """Return the rows of `coordinator_records`."""
    return stored(
        (
            dict.fromkeys(COORDINATOR_RECORDS.names)
            | {
                "cluster": "bench", "group_id": GROUP, "log_epoch": 0, "source_partition": 0, "source_offset": offset,
                "record_at": at, "record_kind": f"ConsumerGroup{kind}", "member_id": member_id,
                "is_tombstone": value is None, "body": json.dumps({"key": {}, "value": value}),
            }
            for offset, (at, kind, member_id, value) in enumerate(history(members, days, apart_ms))
        ),
        COORDINATOR_RECORDS,
    )  # fmt: skip


def last_point(whole: Mapping[Table, pa.Table]) -> pa.Table:
    """Return the last point, if any, as `resume_points.resume_points` does."""
    texts = {"state": REBALANCES, "base_state": RESUME_POINTS}
    found = [
        whole[table].append_column(name, pa.nulls(whole[table].num_rows, pa.string())).select([*POINT, *texts])
        for name, table in texts.items()
    ]
    points = pa.concat_tables(found)
    last = points.filter(pc.is_valid(points["base_offset"])).sort_by("base_offset")[-1:]
    for name in ("cluster", "group_id", "first_seen_at"):
        last = last.append_column(name, whole[GROUPS][name][: last.num_rows])
    return last


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, default=100)
    parser.add_argument("--days", type=int, nargs="*", default=[1, 4, 16])
    parser.add_argument("--restless", action="store_true", help="no pause between two deploys")
    assigned = parser.parse_args()
    apart_ms = 2 * assigned.members * APART_MS if assigned.restless else DAY_MS
    making = Making(quiet_ms=Settings().quiet_ms, hosts=ClientHosts(), topic_names={})
    for days in assigned.days:
        known = {name: stored([], table) for name, table in INPUTS.items()}
        known["record"] = records(assigned.members, days, apart_ms)
        what = f"silver of {days:,} days, {known['record'].num_rows:,} records"
        whole = measured(what, partial(making.rows, known, NO_POINTS))
        print("  " + ", ".join(f"{table.name} {rows.num_rows:,}" for table, rows in whole.items()))
        if not (point := last_point(whole)).num_rows:
            continue
        since = pc.greater_equal(known["record"]["source_offset"], point["base_offset"][0])
        known["record"] = known["record"].filter(since)
        measured(f"  from the last point, {known['record'].num_rows:,} records", partial(making.rows, known, point))


if __name__ == "__main__":
    main()
