"""The cache of `jobs.gold.storms` between two batches: known disturbances, and the versions of silver they come from.

It only saves work: if it is lost or outdated, all silver is scanned again and gives the same storms.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import get_type_hints

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from jobs.tables.changed_rows import TableSnapshot
from pipelines.gold.storms.disturbances import Disturbance
from schemas.states import Evidence

VERSION = 7
"""Increase this number with each change of the definition of a disturbance, of its cached fields, or of how long it is
cached.
"""

TYPES = {int: pa.int64(), int | None: pa.int64(), bool: pa.bool_()}
SCHEMA = pa.schema(
    [
        ("cluster", pa.string()),
        *((name, TYPES.get(kind, pa.string())) for name, kind in get_type_hints(Disturbance).items()),
    ]
)
Snapshots = Mapping[str, TableSnapshot]
Group = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """`snapshots`: the scanned version of each silver table; None if none was scanned yet."""

    snapshots: Snapshots | None
    disturbances: pa.Table

    @classmethod
    def empty(cls) -> Memory:
        return cls(snapshots=None, disturbances=SCHEMA.empty_table())

    @classmethod
    def of(cls, path: Path) -> Memory:
        try:
            table = pq.read_table(path)
            metadata = json.loads(table.schema.metadata[b"regroup"])
        except (OSError, pa.ArrowException, KeyError, TypeError, json.JSONDecodeError):
            return cls.empty()
        if metadata["version"] != VERSION or table.schema.names != SCHEMA.names:
            return cls.empty()
        snapshots = {name: TableSnapshot(*each) for name, each in metadata["snapshots"].items()}
        return cls(snapshots=snapshots, disturbances=table.cast(SCHEMA))

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        metadata = json.dumps({"version": VERSION, "snapshots": self.snapshots})
        part = path.with_suffix(".part")
        pq.write_table(self.disturbances.replace_schema_metadata({"regroup": metadata}), part)
        part.replace(path)

    def with_new(
        self, snapshots: Snapshots, since: Mapping[Group, int], found: Mapping[Group, Iterable[Disturbance]]
    ) -> Memory:
        """Return a copy in which the disturbances of groups since a timestamp are replaced by those in `found`."""
        starts = pa.table(
            {
                "cluster": pa.array([cluster for cluster, _ in since], pa.string()),
                "group_id": pa.array([group for _, group in since], pa.string()),
                "since": pa.array(since.values(), pa.int64()),
            }
        )
        joined = self.disturbances.join(starts, ["cluster", "group_id"])
        kept = joined.filter(pc.fill_null(pc.less(joined["at"], joined["since"]), fill_value=True)).select(SCHEMA.names)
        new = [{"cluster": cluster, **asdict(s)} for (cluster, _), mine in found.items() for s in mine]
        return Memory(snapshots=snapshots, disturbances=pa.concat_tables([kept, pa.Table.from_pylist(new, SCHEMA)]))

    def since(self, kept: Mapping[str, int]) -> Memory:
        """Return a copy without disturbances older than the timestamp of their cluster."""
        parts = [
            self.disturbances.filter((pc.field("cluster") == cluster) & (pc.field("at") >= start))
            for cluster, start in kept.items()
        ]
        return Memory(snapshots=self.snapshots, disturbances=pa.concat_tables([SCHEMA.empty_table(), *parts]))


def disturbances_of(table: pa.Table) -> list[Disturbance]:
    """Return the rows as objects. Equal texts are one object, because a long storm repeats few names very often."""
    texts: dict[str, str] = {}
    columns = {}
    for name in (field.name for field in fields(Disturbance)):
        values = table[name].to_pylist()
        columns[name] = [texts.setdefault(v, v) for v in values] if pa.types.is_string(table[name].type) else values
    # By a dictionary, because calling an enumeration takes longer than all the rest for a hundred thousand rows.
    evidences = {str(each): each for each in Evidence}
    columns["evidence"] = [evidences[evidence] for evidence in columns["evidence"]]
    return [Disturbance(**dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]
