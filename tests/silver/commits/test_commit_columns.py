"""Commits read from columns are those read from rows, for any runs."""

from __future__ import annotations

from collections import defaultdict

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pipelines.silver.commits.commit_columns import READ, commit_histories
from pipelines.silver.history import ENDS, CommitHistory

SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("cluster", "group_id", "topic", "topic_id", "committer_id")]
    + [("partition", pa.int32()), ("log_epoch", pa.int32()), ("is_tombstone", pa.bool_()), ("last_offset", pa.int64())]
    + [(name, pa.int64()) for end in ENDS for name in end if name != "last_offset"]
)
FEW, SOME = st.integers(0, 3), st.integers(0, 30)


@st.composite
def run(draw) -> dict:
    """A run of one, two, three or more commits; times need not ascend and may be missing, as in damaged records."""
    offsets = sorted(draw(st.sets(SOME, min_size=1, max_size=4)))
    first, *between, last = [*offsets, offsets[-1]] if len(offsets) == 1 else offsets
    points = {
        "first": first,
        "third_last": between[-2] if len(between) > 1 else None,
        "before_last": between[-1] if between else (first if first != last else None),
        "last": last,
    }
    row = {
        "cluster": f"c{draw(st.integers(0, 1))}",
        "group_id": draw(st.sampled_from(["g", "h", "", None])),
        "topic": draw(st.sampled_from(["orders", "orders-1", "é"])),
        "partition": draw(FEW),
        "log_epoch": draw(st.integers(0, 1)),
        "is_tombstone": draw(st.integers(0, 9)) == 0,
        "topic_id": draw(st.sampled_from([None, None, "id-1", "id-2"])),
        "committer_id": draw(st.sampled_from([None, None, "member-1", "member-2"])),
    }
    for (offset_name, at_name, committed), offset in zip(ENDS, points.values(), strict=True):
        row |= {offset_name: offset, at_name: None, committed: None}
        if offset is not None:
            row |= {at_name: draw(st.one_of(st.none(), SOME)), committed: draw(SOME)}
    return row


def by_rows(rows) -> dict[tuple[str, str], dict]:
    groups = defaultdict(list)
    for row in rows:
        if row["group_id"] is not None:
            groups[row["cluster"], row["group_id"]].append(row)
    return {group: state(CommitHistory(mine)) for group, mine in groups.items()}


def state(commits: CommitHistory) -> dict:
    return {"points": commits._points, "topics": commits._topics, "committers": commits.committers}


@given(st.lists(run(), max_size=40), st.integers(1, 40))
def test_columns_give_the_commits_of_rows(rows, chunk) -> None:
    parts = [pa.Table.from_pylist(rows[at : at + chunk], SCHEMA) for at in range(0, len(rows), chunk)]
    found = commit_histories(pa.concat_tables([SCHEMA.empty_table(), *parts]))
    assert {group: state(commits) for group, commits in found.items()} == by_rows(rows)
    kinds = {
        type(part) for commits in found.values() for points in commits._points.values() for p in points for part in p
    }
    assert kinds <= {tuple, int}, "no NumPy values, which JSON cannot write"


def test_the_columns_that_are_read_exist() -> None:
    assert {*READ} <= {*SCHEMA.names}
