"""Files that are not opened for a group's page have no rows for it."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

from dashboards.lake.file_index import SPANS
from dashboards.lake.lake import LocalLake
from dashboards.queries.store import Store
from dashboards.urlstate import Window
from schemas.silver import SILVER
from testing import sample

MINUTE = 60_000


@pytest.fixture(scope="module")
def scattered(tmp_path_factory, now):
    """The sample's rows in many files, each with the rows that became known within ten minutes."""
    folder = tmp_path_factory.mktemp("scattered")
    everything = sample.everyday(now)
    parts: dict[int, sample.Rows] = {0: {name: everything[name] for name in ("groups", "coverage")}}
    for name, (first, _) in SPANS.items():
        for row in everything[name]:
            part = parts.setdefault(1 + (now - (row[first] or now)) // (10 * MINUTE), {})
            part.setdefault(name, []).append(row)
    for rows in parts.values():
        sample.write(folder, rows)
    return folder


class Everything(LocalLake):
    """A lake that opens all files for every query."""

    def _needed(self, cursor, name, source, question):
        return source.files


@pytest.fixture(scope="module")
def stores(scattered):
    return Store(LocalLake(scattered)), Store(Everything(scattered))


def test_there_are_files_to_leave_out(scattered):
    assert all(len(DeltaTable(f"{scattered}/{table.name}").file_uris()) > 3 for table in SILVER if table.name in SPANS)


@pytest.mark.parametrize("width", [1, 11, 24 * 60])
def test_a_groups_answers_are_the_same_whichever_files_are_left_out(stores, now, width):
    some, every = stores
    found = 0
    for group in some.fleet(Window(0, now, is_live=False)).rows:
        key = group["cluster"], group["group_id"]
        for end in range(now - 60 * MINUTE, now + 10 * MINUTE, 23 * MINUTE):
            window = Window(end - width * MINUTE, end, is_live=False)
            for ask in ("generations", "members", "stalls", "events", "gaps"):
                response = getattr(some, ask)(*key, window)
                assert response == getattr(every, ask)(*key, window), (ask, key, window)
                found += len(response.rows)
    assert found > 50


@pytest.mark.parametrize("width", [1, 11, 24 * 60])
def test_the_fleet_is_the_same_whichever_files_are_left_out(stores, now, width):
    some, every = stores
    found = 0
    for end in range(now - 60 * MINUTE, now + 10 * MINUTE, 7 * MINUTE):
        window = Window(end - width * MINUTE, end, is_live=False)
        for ask in ("fleet", "totals", "fleet_verdicts"):
            assert rounded(getattr(some, ask)(window)) == rounded(getattr(every, ask)(window)), (ask, window)
        groups = [(row["cluster"], row["group_id"]) for row in some.fleet(window).rows]
        cells = sorted(some.cells(window, 60, groups), key=repr)
        assert cells == sorted(every.cells(window, 60, groups), key=repr)
        disturbed = some.disturbed("prod-eu", [group for _, group in groups], window)
        assert rounded(disturbed) == rounded(every.disturbed("prod-eu", [group for _, group in groups], window))
        found += len(cells) + len(disturbed.rows)
    assert found > 0


def rounded(found):
    """Return numbers with nine digits: the order in which files are read changes the last digits of a sum."""
    if isinstance(found, dict):
        return {key: rounded(each) for key, each in found.items()}
    if isinstance(found, list | tuple):
        return [rounded(each) for each in found]
    return f"{found:.9g}" if isinstance(found, float) else found


def test_a_rebalance_is_the_same_whichever_files_are_left_out(stores, now):
    some, every = stores
    for group in some.fleet(Window(0, now, is_live=False)).rows:
        for generation in range(1, 9):
            key = group["cluster"], group["group_id"], 0, generation
            assert some.rebalance(*key) == every.rebalance(*key), key


def test_a_group_that_is_in_no_file_has_nothing(stores, now):
    window = Window(0, now, is_live=False)
    assert ([], [], None) == (
        stores[0].generations("prod-eu", "nobody", window).rows,
        stores[0].members("prod-eu", "nobody", window).rows,
        stores[0].rebalance("prod-eu", "nobody", 0, 1),
    )


def test_what_is_learnt_beforehand_changes_no_answer(scattered, stores, now):
    lake = LocalLake(scattered)
    lake.warm()
    window = Window(now - 60 * MINUTE, now, is_live=False)
    assert stores[1].members("prod-eu", "billing-worker", window) == Store(lake).members(
        "prod-eu", "billing-worker", window
    )
    LocalLake(scattered / "nowhere").warm()


def test_a_file_that_comes_later_is_looked_into(tmp_path, now):
    sample.write(tmp_path, sample.static(now))
    store, window = Store(LocalLake(tmp_path, fresh_seconds=0)), Window(0, now, is_live=False)
    assert [] == store.generations("prod-eu", "billing-worker", window).rows
    sample.write(tmp_path, sample.churny(now))
    assert 8 == len(store.generations("prod-eu", "billing-worker", window).rows)
