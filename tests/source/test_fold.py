from __future__ import annotations

from datetime import UTC, datetime
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.bronze_batch import bronze_rows
from pipelines.decoding.source_record import SourceRecord
from pipelines.decoding.wire import uuid_text
from pipelines.silver.history import CommitHistory
from tests.source.offset_records import commit, commit_key, commit_value, deletion, group_record

BUCKET = 600_000


def rows(records):
    return bronze_rows(records, cluster="c", log_epoch=0)


def runs(records):
    return sorted(rows(records)["offset_commits"], key=lambda r: r["first_offset"])


def ends(run):
    return run["first_offset"], run["before_last_offset"], run["last_offset"], run["commits"]


def test_consecutive_commits_become_one_row_of_first_last_but_one_and_last():
    (run,) = runs([commit(3, at_ms=1_000), commit(4, at_ms=2_000), commit(9, at_ms=3_000), commit(12, at_ms=4_000)])
    at = [datetime.fromtimestamp(s, UTC) for s in (1, 3, 4)]
    expected = {
        "cluster": "c", "log_epoch": 0, "source_partition": 0, "group_id": "g", "topic": "orders", "partition": 0,
        "is_tombstone": False, "commits": 4, "leader_epoch": 7, "topic_id": None,
        "committer_library": None, "committer_id": None,
        "first_offset": 3, "before_last_offset": 9, "last_offset": 12,
        "first_commit_at": at[0], "before_last_commit_at": at[1], "last_commit_at": at[2],
        "third_last_offset": None, "third_last_commit_at": None, "third_last_committed_offset": None,
        "first_committed_offset": 30, "before_last_committed_offset": 90, "last_committed_offset": 120,
    }  # fmt: skip
    assert expected == run


MEMBER = "kgo-0b0e1c0a-5d5b-4c0e-9c3f-0123456789ab"


@pytest.mark.parametrize(
    ("metadata", "library", "committer"),
    [
        (MEMBER, "franz-go", MEMBER),
        (f"{'k' * 200}{MEMBER}", "franz-go", f"{'k' * 200}{MEMBER}"),
        (f"é-{MEMBER}", "franz-go", f"é-{MEMBER}"),
        ("+1/'a@host'/<0.45.0>", "brod", "'a@host'/<0.45.0>"),
        ("AgAAAZ7x3sAA", "streams", None),
        ("a note of the application", None, None),
        (f"{'k' * 5_000}{MEMBER}", None, None),
    ],
)
def test_the_metadata_of_the_last_record_names_who_committed(metadata, library, committer):
    (run,) = runs([commit(3), commit(4, metadata="another note"), commit(9, metadata=metadata)])
    assert (library, committer) == (run["committer_library"], run["committer_id"])
    (run,) = runs([commit(3, metadata=metadata), commit(9)])
    assert (None, None) == (run["committer_library"], run["committer_id"])


def test_a_run_of_one_has_no_last_but_one():
    (run,) = runs([commit(5)])
    assert (None, None, None) == (
        run["before_last_offset"],
        run["before_last_commit_at"],
        run["before_last_committed_offset"],
    )


def test_a_run_whose_last_commit_repeats_the_one_before_has_the_last_but_two():
    (run,) = runs([commit(3), commit(5), commit(6, committed=50), commit(7, committed=50)])
    assert (5, 6, 7) == (run["third_last_offset"], run["before_last_offset"], run["last_offset"])
    assert (50, 50, 50) == tuple(run[f"{end}_committed_offset"] for end in ("third_last", "before_last", "last"))
    (run,) = runs([commit(6, committed=50), commit(7, committed=50)])
    assert None is run["third_last_offset"]


def test_a_group_record_cuts_the_runs_of_its_own_group_only():
    history = [commit(0), commit(1, "other"), group_record(2), commit(3), commit(4, "other")]
    assert [(0, None, 0, 1), (1, 1, 4, 2), (3, None, 3, 1)] == [ends(r) for r in runs(history)]


def test_partitions_are_folded_apart():
    history = [commit(0, partition=0), commit(1, partition=1), commit(2, partition=0)]
    assert [(0, 0, 2, 2), (1, None, 1, 1)] == [ends(r) for r in runs(history)]


def test_ten_minutes_end_a_run():
    history = [commit(0, at_ms=BUCKET - 1), commit(1, at_ms=BUCKET), commit(2, at_ms=BUCKET + 1)]
    assert [(0, None, 0, 1), (1, 1, 2, 2)] == [ends(r) for r in runs(history)]


def test_a_topic_made_anew_ends_a_run_and_each_says_its_id():
    old, new = bytes(15) + b"\x01", bytes(15) + b"\x02"
    history = [commit(0), commit(1, topic_id=old), commit(2, topic_id=old), commit(3, topic_id=new)]
    assert [(0, 1, None), (1, 2, uuid_text(old)), (3, 1, uuid_text(new))] == [
        (r["first_offset"], r["commits"], r["topic_id"]) for r in runs(history)
    ]


def test_a_deleted_offset_is_a_row_of_its_own_without_values():
    found = runs([commit(0), deletion(1), deletion(2), commit(3)])
    assert [(0, False), (1, True), (2, True), (3, False)] == [(r["first_offset"], r["is_tombstone"]) for r in found]
    assert {None} == {found[1][f"{end}_committed_offset"] for end in ("first", "before_last", "last")}


def test_a_record_without_a_timestamp_has_no_time():
    found = rows([commit(0, at_ms=-1), group_record(1, at_ms=-1)])
    assert (None, None) == (
        found["offset_commits"][0]["last_commit_at"],
        found["coordinator_records"][0]["record_at"],
    )


def test_nothing_read_makes_no_rows():
    assert {"coordinator_records": [], "offset_commits": [], "quarantine": [], "coverage": []} == rows([])


def test_what_cannot_be_read_is_kept_raw_with_its_reason():
    torn = SourceRecord(0, 7, 1_000, commit_key("g"), commit_value(1)[:-4])
    (row,) = rows([commit(6), torn, commit(8)])["quarantine"]
    assert (7, torn.key, torn.value, "__consumer_offsets") == (
        row["source_offset"], row["raw_key"], row["raw_value"], row["source"],
    )  # fmt: skip
    assert row["reason"] == "truncated"


def test_coverage_spans_each_partition_from_its_first_to_its_last_record():
    elsewhere = SourceRecord(3, 40, 5_000, b"\x00\x63", b"")
    spans = rows([commit(2, at_ms=1_000), commit(9, at_ms=2_000), elsewhere])["coverage"]
    assert [(0, 2, 10, 2, 0), (3, 40, 41, 1, 1)] == [
        (s["source_partition"], s["from_offset"], s["to_offset"], s["records"], s["quarantined"]) for s in spans
    ]


@st.composite
def histories(draw):
    """One partition of the offsets topic: two groups, two topic partitions each, offsets with holes, times that rise."""
    offset, at_ms, out = 0, 0, []
    kinds = st.sampled_from(["commit"] * 6 + ["group", "deletion"])
    for _ in range(draw(st.integers(0, 40))):
        offset += draw(st.sampled_from([1, 1, 1, 5]))
        at_ms += draw(st.sampled_from([0, 10, 200_000, 700_000]))
        group, partition = draw(st.sampled_from("gh")), draw(st.integers(0, 1))
        match draw(kinds):
            case "commit":
                out.append(commit(offset, group, partition=partition, at_ms=at_ms))
            case "deletion":
                out.append(deletion(offset, group, partition=partition, at_ms=at_ms))
            case _:
                out.append(group_record(offset, group, at_ms=at_ms))
    return out


def merged(found, group_records):
    """Return the runs, with those merged that only the end of a batch separates."""
    out = []
    for run in sorted(found, key=lambda r: (r["group_id"], r["partition"], r["first_offset"])):
        last = out[-1] if out else None
        if last and belongs(last, run, group_records):
            one = run["commits"] == 1
            for name in ("offset", "commit_at", "committed_offset"):
                last[f"before_last_{name}"] = last[f"last_{name}"] if one else run[f"before_last_{name}"]
                last[f"last_{name}"] = run[f"last_{name}"]
            last["commits"] += run["commits"]
        else:
            out.append(dict(run))
    return out


def belongs(last, run, group_records):
    same = all(last[name] == run[name] for name in ("group_id", "partition"))
    cut = any(g == run["group_id"] and last["last_offset"] < at < run["first_offset"] for g, at in group_records)
    deleted = last["is_tombstone"] or run["is_tombstone"]
    return same and not cut and not deleted and bucket(last["last_commit_at"]) == bucket(run["first_commit_at"])


def bucket(at):
    return at.timestamp() * 1000 // BUCKET


@given(histories(), st.lists(st.integers(0, 40)))
def test_any_split_into_batches_gives_the_same_ends_of_runs_once_merged(history, cuts):
    edges = sorted({0, len(history), *(c for c in cuts if c < len(history))})
    batches = [rows(history[a:b]) for a, b in pairwise(edges)] if history else []
    group_records = [(r["group_id"], r["source_offset"]) for r in rows(history)["coordinator_records"]]
    split = merged([run for batch in batches for run in batch["offset_commits"]], group_records)
    assert merged(runs(history), group_records) == split


@given(st.lists(st.integers(0, 2), max_size=12), st.sets(st.integers(1, 11)))
def test_any_split_leaves_the_last_three_commits_where_the_last_two_are_equal(progress, cuts):
    history = [commit(n, at_ms=n, committed=at) for n, at in enumerate(accumulate(progress))]
    edges = sorted({0, len(history), *(c for c in cuts if c < len(history))})
    split = [run for a, b in pairwise(edges) for run in runs(history[a:b])]
    whole, found = (CommitHistory(parts).segment(("orders", 0), (0, -1), (1, 0)) for parts in (runs(history), split))
    assert whole == found
    if len(history) > 2 and progress[-1] == 0:
        assert [n - 3 + len(history) for n in range(3)] == [
            point.position[1] for point in (found.third_last, found.before_last, found.last)
        ]


@given(histories(), st.lists(st.binary(max_size=40), max_size=5))
def test_every_record_read_is_a_group_record_a_commit_or_in_quarantine(history, garbage):
    history = [*history, *(SourceRecord(0, 1_000 + n, 0, key or None, b"?") for n, key in enumerate(garbage))]
    found = rows(history)
    commits = sum(run["commits"] for run in found["offset_commits"])
    assert len(history) == len(found["coordinator_records"]) + commits + len(found["quarantine"])
    assert len(history) == sum(span["records"] for span in found["coverage"])
    assert len(found["quarantine"]) == sum(span["quarantined"] for span in found["coverage"])


def test_a_key_with_more_than_65_535_distinct_neighbours_keeps_its_order():
    history = [commit(n, f"g{n % 70_000}") for n in range(140_000)]
    found = rows(history)["offset_commits"]
    assert {2} == {run["commits"] for run in found}
    assert {70_000} == {run["last_offset"] - run["first_offset"] for run in found}
