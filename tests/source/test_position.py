from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.config.clusters import Cluster
from jobs.kafka.kafka_client import TopicEnds
from jobs.kafka.kafka_source import TopicStreamReader
from jobs.kafka.source_position import RECREATED, TRUNCATED, PartitionPosition, TopicPosition, covered, lost
from jobs.kafka.topic_streams import offsets as offsets_topic


def topic(ends, topic_id="a"):
    return TopicEnds(topic_id=topic_id, ends=ends)


def at(topic_id="a", log_epoch=0, **offsets):
    positions = {
        int(p[1:]): PartitionPosition(log_epoch=log_epoch, begin=0, offset=offset) for p, offset in offsets.items()
    }
    return TopicPosition(topic_id=topic_id, log_epoch=log_epoch, positions=positions)


def offsets(position):
    return {p: place.offset for p, place in position.positions.items()}


def test_what_a_checkpoint_keeps_comes_back_as_it_was():
    position = at(log_epoch=2, p0=5, p11=7)
    assert position == TopicPosition.of(position.stored())


def test_the_same_position_is_stored_as_the_same_text():
    assert str(at(p1=1, p0=2).stored()) == str(at(p0=2, p1=1).stored())


def test_without_a_limit_every_partition_moves_to_its_end():
    assert {0: 10, 1: 4} == offsets(
        at(p0=3).seen(topic({0: (0, 10), 1: (2, 4)})).advanced(topic({0: (0, 10), 1: (2, 4)}), None)
    )


def test_a_limit_is_shared_out_in_proportion_to_what_waits():
    ends = topic({0: (0, 9_000), 1: (0, 1_000), 2: (0, 0)})
    assert {0: 900, 1: 100, 2: 0} == offsets(TopicPosition().seen(ends).advanced(ends, 1_000))


def test_offsets_that_are_gone_from_the_log_take_nothing_of_the_limit():
    ends = topic({0: (5_000, 6_000), 1: (0, 1_000)})
    assert {0: 5_500, 1: 500} == offsets(TopicPosition().seen(ends).advanced(ends, 1_000))


@given(
    st.dictionaries(st.integers(0, 20), st.tuples(st.integers(0, 1_000), st.integers(0, 10_000)), min_size=1),
    st.integers(1, 5_000),
)
def test_limited_steps_reach_every_end_and_none_is_much_larger_than_the_limit(logs, limit):
    ends = topic({p: (low, low + size) for p, (low, size) in logs.items()})
    position = TopicPosition().seen(ends)
    for _ in range(20_000):
        moved = position.advanced(ends, limit)
        step = sum(
            moved.positions[p].offset - max(position.positions[p].offset, low)
            for p, (low, _) in ends.ends.items()
            if moved.positions[p].offset > low
        )
        assert step <= limit + len(logs)
        if moved == position:
            break
        position = moved
    assert {p: high for p, (_, high) in ends.ends.items()} == offsets(position)


def test_a_new_partition_is_read_from_its_beginning():
    ends = topic({0: (0, 9), 1: (0, 4)})
    before = at(log_epoch=3, p0=9)
    assert PartitionPosition(log_epoch=3, begin=0, offset=0) == before.seen(ends).positions[1]


def test_a_partition_that_a_broker_does_not_know_yet_keeps_its_position():
    before, now = at(p0=50, p1=60), topic({0: (0, 80)})
    after = before.seen(now).advanced(now, None)
    assert {0: 80, 1: 60} == offsets(after)
    assert [] == lost(before, after)


def test_a_topic_with_another_id_begins_a_new_life_in_all_its_partitions():
    before, now = at(p0=50, p1=60), topic({0: (0, 80)}, "b")
    after = before.seen(now).advanced(now, None)
    assert (
        TopicPosition(topic_id="b", log_epoch=1, positions={0: PartitionPosition(log_epoch=1, begin=0, offset=80)})
        == after
    )
    assert [(0, 50, 50, RECREATED), (1, 60, 60, RECREATED)] == [
        (gap.partition, gap.from_offset, gap.to_offset, gap.gap_reason) for gap in lost(before, after)
    ]


def test_a_log_that_ends_below_our_position_goes_on_in_a_new_epoch_and_says_so():
    before, now = at(p0=50, p1=60), topic({0: (0, 40), 1: (0, 61)})
    after = before.seen(now)
    assert {
        0: PartitionPosition(log_epoch=1, begin=40, offset=40),
        1: PartitionPosition(log_epoch=0, begin=0, offset=60),
    } == after.positions
    assert [(0, 1, 0, 40, TRUNCATED)] == [
        (gap.partition, gap.log_epoch, gap.from_offset, gap.to_offset, gap.gap_reason) for gap in lost(before, after)
    ]


def test_every_life_has_an_epoch_of_its_own():
    truncated = at(p0=50).seen(topic({0: (0, 40)}))
    recreated = truncated.seen(topic({0: (0, 9)}, "b"))
    assert 2 == recreated.positions[0].log_epoch


def test_without_topic_ids_a_shorter_log_is_a_new_topic():
    after = at(topic_id=None, p0=50).seen(topic({0: (0, 40)}, None))
    assert PartitionPosition(log_epoch=1, begin=0, offset=0) == after.positions[0]


def rows_of(before, after):
    """Return what `coverage` gets of a batch: (partition, log epoch, end offset, whether the topic was recreated)."""
    for gap in lost(before, after):
        yield gap.partition, gap.log_epoch, gap.to_offset, gap.gap_reason == RECREATED
    for partition, end in after.positions.items():
        old = before.position(partition)
        if end.offset > (old.offset if old.log_epoch == end.log_epoch else end.begin):
            yield partition, end.log_epoch, end.offset, False


def test_an_empty_partition_of_a_recreated_topic_does_not_resume_at_its_end_in_the_earlier_one():
    first, second = topic({0: (0, 50), 1: (0, 60)}), topic({0: (0, 80), 1: (0, 0)}, "b")
    one = TopicPosition().seen(first).advanced(first, None)
    two = one.seen(second).advanced(second, None)
    found = covered([*rows_of(TopicPosition(), one), *rows_of(one, two)])
    assert {
        0: PartitionPosition(log_epoch=1, begin=0, offset=80),
        1: PartitionPosition(log_epoch=1, begin=0, offset=0),
    } == found.positions
    assert found.positions == found.seen(second).positions


@given(
    lives=st.lists(
        st.tuples(st.booleans(), st.lists(st.integers(0, 5), min_size=1, max_size=4)), min_size=1, max_size=8
    )
)
def test_what_coverage_has_gives_the_position_that_the_checkpoint_had(lives):
    position, rows, topic_id = TopicPosition(), [], 0
    for is_new, highs in lives:
        topic_id += is_new
        now = topic(dict(enumerate([(0, high) for high in highs])), str(topic_id))
        moved = position.seen(now).advanced(now, None)
        rows += rows_of(position, moved)
        position = moved
    found = covered(rows)
    expected = {p: (position.position(p).log_epoch, position.position(p).offset) for p in position.positions}
    assert expected == {p: (found.position(p).log_epoch, found.position(p).offset) for p in expected}


def test_nothing_is_lost_where_nothing_was_read_before():
    assert [] == lost(TopicPosition(), at(p0=5))


@pytest.mark.parametrize(("most", "expected"), [(64, [[0], [2], [3]]), (2, [[2], [0, 3]]), (1, [[2, 0, 3]])])
def test_there_are_as_many_tasks_as_partitions_with_new_records_but_not_more_than_allowed(most, expected):
    stream = offsets_topic(Cluster(name="kafka", bootstrap_servers="127.0.0.1:1"), tasks=most)
    before, after = at(p0=5, p1=7, p2=0, p3=1), at(p0=9, p1=7, p2=9, p3=4)
    shares = TopicStreamReader(stream).partitions(before.stored(), after.stored())
    read = [[each.partition for each in share.ranges] for share in shares]
    assert sorted(expected) == sorted(read)
