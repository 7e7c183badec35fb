"""Sums kept per file are the sums of the rows, wherever a range ends and however files change."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

from dashboards.lake.kept_parts import KeptParts
from dashboards.lake.lake import SUM_BYTES, LocalLake, moment
from dashboards.lake.sums import SUMS
from testing import sample
from tests.ui.lake.test_file_index import rounded

MINUTE = 60_000
TIMES = {"generations": "joined_at", "stalls": "stopped_at_latest", "verdicts": "joined_at"}
EVERYBODY = ("",)
"""Prefixes that every id has. Sums of a limited reader are computed from rows."""


def history(now, seed, groups=6, generations=30):
    """Return generations of groups, each with a verdict, and stops of up to four partitions."""
    rng, everyday = Random(seed), sample.everyday(now)
    generation, stall, verdict = (everyday[name][0] for name in TIMES)
    rows = {name: [] for name in TIMES}
    for n in range(groups * generations):
        key = {"cluster": f"c{n % 2}", "group_id": f"g{n % groups}", "incarnation": n % 3 // 2, "generation_id": n}
        at = now - rng.randrange(600) * MINUTE
        folded_count = {"folded_count": rng.choice((None, None, 7))}
        rows["generations"].append(generation | key | folded_count | {"joined_at": at + rng.randrange(50)})
        for index in range(rng.randrange(1, 5)):
            least = rng.randrange(60_000)
            bounds = [least, least + rng.randrange(9_000), least + 9_000 + rng.randrange(9_000)]
            stopped, resumed = at - rng.randrange(50), at + bounds[1]
            rows["stalls"].append(
                stall | key | {
                    "index": index, "from_member_id": f"m{rng.randrange(2)}", "stopped_at_earliest": stopped - 5,
                    "stopped_at_latest": stopped, "resumed_at_earliest": rng.choice((resumed, resumed, None)),
                    "resumed_at_latest": resumed, "cause": rng.choice(("moved", "moved", "no_member")),
                    **dict(zip(("stopped_ms_min", "stopped_ms", "stopped_ms_max"), bounds, strict=True)),
                }
            )  # fmt: skip
        lost = {f"lost_resource_seconds{end}": rng.random() * 99 for end in ("_min", "", "_max")}
        rows["verdicts"].append(
            verdict | key | lost | folded_count | {
                "joined_at": at, "verdict": rng.choice(("broker", "unknown")), "cause": rng.choice(("deploy", "unknown")),
                "evidence": rng.choice(("observed", "inferred")),
            }
        )  # fmt: skip
    return rows


def write(folder, rows, files, seed):
    """Write rows to files: most by time, the others to any file, so that several have a part of one stop."""
    rng, parts = Random(seed), [{name: [] for name in TIMES} for _ in range(files)]
    for name, column in TIMES.items():
        in_order = sorted(rows[name], key=lambda row: row[column])
        for n, row in enumerate(in_order):
            parts[rng.randrange(files) if rng.random() < 0.1 else n * files // len(in_order)][name].append(row)
    for part in parts:
        sample.write(folder, part)


def sums(lake, name, start, end, prefixes=None):
    order = ", ".join(("hashed", *SUMS[name].keys))
    of_range = {"start": moment(start), "end": moment(end)}
    found = lake.query(f"SELECT * FROM {name} ORDER BY {order} LIMIT $cap", [name], 500, of_range, prefixes)
    return rounded(found.rows)


def assert_same(lake, now, seed=0):
    """Compare sums with those of rows, over ranges that end at any time, and over all rows."""
    rng, found = Random(seed), 0
    ranges = [sorted(now - rng.randrange(-5, 620) * MINUTE - rng.randrange(MINUTE) for _ in range(2)) for _ in range(9)]
    for start, end in [(0, now + MINUTE), *ranges]:
        for name in SUMS:
            kept = sums(lake, name, start, end)
            assert kept == sums(lake, name, start, end, EVERYBODY), (name, start, end)
            found += len(kept)
    assert found > 50


def test_the_files_share_stops(tmp_path, now):
    write(tmp_path, history(now, 1), 8, 1)
    files = [pq.read_table(file).to_pylist() for file in DeltaTable(f"{tmp_path}/stalls").file_uris()]
    stops = [
        {(row["cluster"], row["group_id"], row["generation_id"], row["from_member_id"]) for row in f} for f in files
    ]
    assert sum(map(len, stops)) > len(set().union(*stops)) + 20


@pytest.mark.parametrize("sum_bytes", [0, 6_000, SUM_BYTES])
def test_sums_are_those_of_the_rows_however_files_change(tmp_path, now, sum_bytes):
    write(tmp_path, history(now, 1), 8, 1)
    lake = LocalLake(tmp_path, fresh_seconds=0, sum_bytes=sum_bytes)
    lake.warm()
    assert_same(lake, now)
    write(tmp_path, history(now, 2), 5, 2)
    assert_same(lake, now, 1)
    for name in TIMES:
        DeltaTable(f"{tmp_path}/{name}").delete("group_id = 'g1' OR generation_id < 20")
    assert_same(lake, now, 2)
    for name in TIMES:
        DeltaTable(f"{tmp_path}/{name}").optimize.compact(target_size=30_000)
    assert_same(lake, now, 3)
    write(tmp_path, history(now, 3), 3, 3)
    assert_same(lake, now, 4)


def test_a_limited_reader_gets_sums_of_his_groups_only(tmp_path, now):
    write(tmp_path, history(now, 1), 8, 1)
    lake = LocalLake(tmp_path)
    every = sums(lake, "verdict_sums", 0, now + MINUTE)
    own = sums(lake, "verdict_sums", 0, now + MINUTE, ("g2", "g3"))
    assert 0 < len(own) < len(every)
    assert {row["hashed"] for row in own} < {row["hashed"] for row in every}
    assert [row for row in every if row["hashed"] in {each["hashed"] for each in own}] == own
    assert [] == sums(lake, "group_losses", 0, now + MINUTE, ("nobody",))


def test_sums_of_files_without_a_column_are_those_of_the_rows(tmp_path, now):
    write(tmp_path, history(now, 1), 3, 1)
    DeltaTable(f"{tmp_path}/stalls").alter.add_columns([Field("more", PrimitiveType("string"))])
    assert_same(LocalLake(tmp_path), now)


def test_sums_of_files_of_an_earlier_version_are_those_of_the_rows(tmp_path, now):
    new = tmp_path / "new"
    write(new, history(now, 1), 3, 1)
    for name in TIMES:
        folder, earlier = str(tmp_path / "w" / name), DeltaTable(f"{new}/{name}").to_pyarrow_table()
        added = [each for each in ("folded_count", "last_generation_id") if each in earlier.column_names]
        write_deltalake(folder, earlier.drop_columns(added))
        if added:
            DeltaTable(folder).alter.add_columns([Field(each, PrimitiveType("integer")) for each in added])
    lake = LocalLake(tmp_path / "w", fresh_seconds=0)
    lake.warm()
    assert_same(lake, now)
    write(tmp_path / "w", history(now, 2), 3, 2)
    assert_same(lake, now)


def test_what_is_kept_is_limited_and_dropped_with_its_file():
    parts = KeptParts(1_000, has_items=True)
    for n in range(10):
        rows = pa.table({"item": pa.array(range(n * 10, n * 10 + 11), pa.uint64())})
        parts.add(f"file-{n}", rows, (n, n))
    everything = parts.between(0, 100)
    assert (len(everything.whole), everything.is_complete) == (10 - len(everything.edges), False)
    assert 0 < len(everything.whole) < 10
    assert {"file-0"} < {*everything.edges}
    newest = parts.between(8, 100)
    assert (2, [], True) == (len(newest.whole), newest.edges, newest.is_complete)
    assert [True] * 2 == [rows["is_shared"].to_pylist().count(True) > 0 for rows in newest.whole]
    assert ["new"] == parts.drop_others(["file-9", "new"])
    assert 1 == len(parts.between(0, 100).whole)
    assert [] == parts.between(0, 9).whole


def test_items_of_files_that_are_gone_are_forgotten():
    parts = KeptParts(1 << 20, has_items=True)
    for n in range(50):
        parts.drop_others([f"file-{n - 1}"])
        parts.add(f"file-{n}", pa.table({"item": pa.array(range(n, n + 100), pa.uint64())}), (n, n))
    assert len(parts._items) <= 2 * 200
