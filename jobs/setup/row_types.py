"""The Python types of the tables' rows, as the text of `schemas/rows.py`: made from the tables' definitions."""

from __future__ import annotations

from collections.abc import Iterator

from schemas.bronze import BRONZE
from schemas.gold import BY_GROUP, CAUSES, DIFFERENCES, GOLD
from schemas.operations import OPERATIONS
from schemas.silver import GENERATION_MEMBERS, GENERATIONS, GROUP_EVENTS, REASSIGNMENT_TABLES, SILVER, STALLS
from schemas.tables import RESOURCES, Column, Table

HEAD = '''"""The rows of the tables as Python holds them.

Made by `python -m jobs.setup.reference` from the tables' definitions.
A row is a dict with every column of its table; timestamps are milliseconds since the epoch. `…OfGroup` is a row without
`cluster` and `group_id`, for functions that see one group only.
"""

from __future__ import annotations

from typing import TypedDict


class ResourceRow(TypedDict):
    """A topic's partition, a subtopology's task, or a connector's task."""

    name: str
    index: int


class DifferenceRow(TypedDict):
    """What members hit by a storm have in common."""

    attribute: str
    value: str
    share: float
    baseline: float
    lift: float


class CauseRow(TypedDict):
    """How many rebalances and groups of a storm have a cause."""

    cause: str
    rebalances: int
    groups: int


class GroupLossRow(TypedDict):
    """What a group lost in a storm."""

    group_id: str
    rebalances: int
    lost_resource_seconds_min: float
    lost_resource_seconds: float
    lost_resource_seconds_max: float
'''

TYPES = {
    "STRING": "str",
    "INT": "int",
    "BIGINT": "int",
    "DOUBLE": "float",
    "BOOLEAN": "bool",
    "BINARY": "bytes",
    "TIMESTAMP": "int",
    "ARRAY<STRING>": "list[str]",
    "ARRAY<INT>": "list[int]",
    "MAP<STRING,STRING>": "dict[str, str]",
    RESOURCES: "list[ResourceRow]",
    DIFFERENCES: "list[DifferenceRow]",
    CAUSES: "list[CauseRow]",
    BY_GROUP: "list[GroupLossRow]",
}
GROUP_KEY = ("cluster", "group_id")
HISTORY = (GENERATIONS, GENERATION_MEMBERS, STALLS, GROUP_EVENTS)
ROWS_BY_TABLE = (
    ("SilverRows", "Rows of silver of any number of groups, by table.", SILVER, "Row"),
    ("SilverOfGroup", "Rows of silver of one group, by table.", SILVER, "OfGroup"),
    ("GroupHistory", "Rows of silver that gold of one group is made of, by table.", HISTORY, "Row"),
    ("ReassignmentRows", "Rows of one cluster's reassignments, by table.", REASSIGNMENT_TABLES, "Row"),
)


def rows_module() -> str:
    """Return the text of `schemas/rows.py`."""
    tables = (*BRONZE, *SILVER, *REASSIGNMENT_TABLES, *GOLD, *OPERATIONS)
    classes = [text for table in tables for text in _classes(table)]
    classes += [
        _class(name, "TypedDict", comment, [(t.name, f"list[{row_name(t)}{suffix}]") for t in tables])
        for name, comment, tables, suffix in ROWS_BY_TABLE
    ]
    return "\n\n".join([HEAD, *classes])


def row_name(table: Table) -> str:
    """Return the singular of a table's name in CamelCase: `GenerationMember` for `generation_members`."""
    if table.name == "diagnoses":
        return "Diagnosis"
    return "".join(word.removesuffix("s").capitalize() for word in table.name.split("_"))


def _classes(table: Table) -> Iterator[str]:
    name = row_name(table)
    fields = [(column.name, _type(column, is_key=column.name in table.key)) for column in table.columns]
    comment = f"A row of `{table.name}`."
    if table.key[:2] != GROUP_KEY:
        yield _class(f"{name}Row", "TypedDict", comment, fields)
        return
    of_group = [field for field in fields if field[0] not in GROUP_KEY]
    yield _class(f"{name}OfGroup", "TypedDict", f"A row of `{table.name}` without cluster and group.", of_group)
    yield _class(f"{name}Row", f"{name}OfGroup", comment, [field for field in fields if field[0] in GROUP_KEY])


def _type(column: Column, *, is_key: bool) -> str:
    kind = TYPES[column.type]
    return kind if is_key or column.is_present else f"{kind} | None"


def _class(name: str, base: str, comment: str, fields: list[tuple[str, str]]) -> str:
    lines = [f"class {name}({base}):", f'    """{comment}"""', "", *(f"    {field}: {kind}" for field, kind in fields)]
    return "\n".join(lines) + "\n"
