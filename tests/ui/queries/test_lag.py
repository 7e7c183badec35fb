"""A group's lag is computed from what it had committed at that moment, within the bounds of its runs of commits."""

from __future__ import annotations

import json

from dashboards.pages import group, rebalance
from dashboards.queries import lag_store
from dashboards.queries.lag import Behind, lag_checks, lag_sentence
from dashboards.queries.store import Store
from dashboards.urlstate import Window, parse
from testing import sample
from tests.ui.reading import words

T = 1_800_000_000_000


def looked(at: int, **ends: int) -> dict:
    body = {"topic": "bills", "ends": {partition.removeprefix("p"): end for partition, end in ends.items()}}
    return {"observed_at": at, "body": json.dumps(body)}


def run(first: int, last: int, low: int, high: int, partition: int = 0, **more) -> dict:
    described = {"topic": "bills", "partition": partition, "is_tombstone": False, "last_offset": last}
    before = {"before_last_commit_at": None, "before_last_committed_offset": None}
    times = {"first_commit_at": first, "last_commit_at": last}
    return described | before | times | {"first_committed_offset": low, "last_committed_offset": high} | more


def test_after_a_run_the_commit_is_known_and_within_it_only_its_bounds() -> None:
    runs = [run(T, T + 10_000, 100, 200), run(T + 60_000, T + 60_000, 300, 300)]
    after, within = lag_checks([looked(T + 20_000, p0=250), looked(T + 5_000, p0=250)], runs)[::-1]
    assert (after.least, after.most) == (50, 50)
    assert (within.least, within.most) == (50, 150)
    nearer = [runs[0] | {"before_last_commit_at": T + 4_000, "before_last_committed_offset": 180}]
    assert [(50, 70)] == [(each.least, each.most) for each in lag_checks([looked(T + 5_000, p0=250)], nearer)]


def test_what_is_not_known_is_not_counted_and_shown() -> None:
    runs = [run(T, T, 90, 90), run(T + 9_000, T + 9_000, 5, 5, partition=1)]
    (found,) = lag_checks([looked(T + 1_000, p0=100, p1=50, p2=7)], runs)
    assert (found.least, found.most, found.known, found.of) == (10, 10, 1, 2)
    assert "10 (1 of 2 partitions)" == str(found)
    gone = [run(T, T, 90, 90), run(T + 500, T + 500, 0, 0, is_tombstone=True)]
    assert [] == lag_checks([looked(T + 1_000, p0=100)], gone)
    assert [] == lag_checks([looked(T + 1_000, p0=100)], [runs[0] | {"topic": "other"}])


def test_partitions_and_topics_that_a_poll_lacks_make_its_lag_partial() -> None:
    runs = [run(T, T, 90, 90), run(T, T, 40, 40, partition=1), run(T, T, 7, 7) | {"topic": "orders"}]
    (without_leader,) = lag_checks([looked(T + 1_000, p0=100)], runs[:2])
    assert "10 (1 of 2 partitions)" == str(without_leader)
    (other_topic,) = lag_checks([looked(T + 1_000, p0=100, p1=40)], runs)
    assert "10 (2 of 3 partitions)" == str(other_topic)


def test_a_group_that_goes_back_within_a_run_has_both_offsets_as_bounds() -> None:
    (found,) = lag_checks([looked(T + 5_000, p0=250)], [run(T, T + 10_000, 200, 50)])
    assert (found.least, found.most) == (50, 200)


def test_a_group_is_never_ahead_of_the_end() -> None:
    (found,) = lag_checks([looked(T + 1_000, p0=80)], [run(T, T, 90, 90)])
    assert (found.least, found.most) == (0, 0)


def test_the_lag_behind_a_recreated_topic_is_not_known() -> None:
    runs = [run(T, T, 90, 90), run(T, T, 40, 40, partition=1)]
    (found,) = lag_checks([looked(T + 60_000, p0=3, p1=50)], runs)
    assert "10 (1 of 2 partitions)" == str(found)
    assert [] == lag_checks([looked(T + 60_000, p0=3)], runs[:1])


def test_the_sentence_tells_the_first_the_farthest_and_the_last_look() -> None:
    styles = [Behind(at=T + n * 15_000, least=n_least, most=n_most, known=1, of=1)
             for n, (n_least, n_most) in enumerate([(5, 5), (900, 1_200), (300, 300), (4, 4)])]  # fmt: skip
    printed = lag_sentence(styles, T, T + 60_000)
    assert "(4 polls): 5 at" in printed
    assert "900\N{EN DASH}1,200 at" in printed
    assert "; 4 at" in printed
    assert "300" not in printed
    assert "" == lag_sentence(styles, T + 100_000, T + 200_000)


def test_the_pages_of_a_group_and_of_its_rebalance_say_it_where_the_poll_looked(tmp_path, now, lake) -> None:
    rows = sample.everyday(now)
    made = next(g for g in rows["generations"] if (g["group_id"], g["generation_id"]) == ("billing-worker", 5))
    at, topic = made["joined_at"], next(s["name"] for s in rows["stalls"] if s["group_id"] == "billing-worker")
    commit = run(at - 20_000, at - 20_000, 500, 500) | {
        "cluster": sample.CLUSTER,
        "group_id": "billing-worker",
        "topic": topic,
        "log_epoch": 0,
        "source_partition": 0,
        "first_offset": 0,
    }
    seen = [
        {"cluster": sample.CLUSTER, "observed_at": at + after, "source": "poll", "kind": "end_offsets", "subject": topic,
         "body": json.dumps({"topic": topic, "ends": {"0": end}})}
        for after, end in ((-15_000, 510), (0, 740), (15_000, 900))
    ]  # fmt: skip
    sample.write(tmp_path, rows | {"offset_commits": [commit], "admin_observations": seen})
    store = Store(lake(tmp_path))
    asked = f"?cluster={sample.CLUSTER}&group=billing-worker"
    text = words(group.render(store, parse("/group", f"{asked}&from=all"), now))
    assert "How far behind" in text
    assert "(3 polls): 10 at" in text
    text = words(rebalance.render(store, parse("/rebalance", f"{asked}&incarnation=0&generation=5"), now))
    assert "400 at" in text
    text = words(group.render(store, parse("/group", f"?cluster={sample.CLUSTER}&group=imports-joiner&from=all"), now))
    assert "How far behind" not in text, "nobody looked"


def test_many_polls_of_topics_of_other_groups_hide_none_of_its_own(tmp_path, lake, monkeypatch) -> None:
    monkeypatch.setattr(lag_store, "SAMPLES", 2)
    identity = {"cluster": sample.CLUSTER, "group_id": "g", "log_epoch": 0, "source_partition": 0, "first_offset": 0}
    polls = [(T + at, f"other{at}", {}) for at in range(3)]
    polls += [(T + 10 + at, f"bills#{at}", {"p0": 500 + at}) for at in range(3)]
    seen = [
        looked(at, **ends) | {"cluster": sample.CLUSTER, "source": "poll", "kind": "end_offsets", "subject": subject}
        for at, subject, ends in polls
    ]
    sample.write(tmp_path, {"offset_commits": [run(T, T, 500, 500) | identity], "admin_observations": seen})
    found = Store(lake(tmp_path)).behind(sample.CLUSTER, "g", Window(T, T + 60_000, is_live=False))
    assert [(T + 11, 1), (T + 12, 2)] == [(each.at, each.most) for each in found], "the newest"
