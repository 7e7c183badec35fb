"""Batches of several streams that arrive at the same time are built together; a slow one does not delay others for
long.
"""

from __future__ import annotations

import threading

import pytest

from jobs.spark.batch_merge import BatchMerge


class Streams:
    """Threads that each pass on one batch, as Spark's streams do."""

    def __init__(self, batch_merge: BatchMerge) -> None:
        self.batch_merge = batch_merge
        self.threads: list[threading.Thread] = []
        self.errors: list[ValueError] = []

    def start(self, name: str, *, when: threading.Event | None = None) -> None:
        begun = threading.Event()

        def run() -> None:
            with self.batch_merge.under_way():
                begun.set()
                if when:
                    assert when.wait(120)
                try:
                    self.batch_merge.hand_on({name: name})
                except ValueError as error:
                    self.errors.append(error)

        self.threads.append(threading.Thread(target=run))
        self.threads[-1].start()
        assert begun.wait(120)

    def join(self) -> None:
        for thread in self.threads:
            thread.join(120)
            assert not thread.is_alive()


def test_batches_under_way_at_the_same_time_are_built_in_one_go() -> None:
    built: list[set[str]] = []
    streams = Streams(BatchMerge(lambda new: built.append(set(new)), patience_s=30))
    is_read = threading.Event()
    streams.start("lines", when=is_read)
    streams.start("records")
    is_read.set()
    streams.join()
    assert built == [{"lines", "records"}]


def test_a_batch_alone_waits_for_nobody() -> None:
    built: list[set[str]] = []
    streams = Streams(BatchMerge(lambda new: built.append(set(new)), patience_s=3600))
    streams.start("records")
    streams.join()
    assert built == [{"records"}]


def test_a_stream_that_reads_for_long_does_not_hold_up_the_others() -> None:
    built: list[set[str]] = []
    is_built, is_read = threading.Event(), threading.Event()

    def build(new) -> None:
        built.append(set(new))
        is_built.set()

    streams = Streams(BatchMerge(build, patience_s=0.05))
    streams.start("backlog", when=is_read)
    streams.start("records")
    assert is_built.wait(120)
    is_read.set()
    streams.join()
    assert built == [{"records"}, {"backlog"}]


def test_what_a_build_raises_fails_every_stream_whose_rows_it_had() -> None:
    def build(new) -> None:
        raise ValueError("no")

    streams = Streams(BatchMerge(build, patience_s=30))
    is_read = threading.Event()
    streams.start("lines", when=is_read)
    streams.start("records")
    is_read.set()
    streams.join()
    assert [str(error) for error in streams.errors] == ["no", "no"]


@pytest.mark.parametrize("count", [1, 8])
def test_no_batch_is_lost_or_built_twice(count) -> None:
    built: list[str] = []
    streams = Streams(BatchMerge(built.extend, patience_s=0.01))
    for number in range(count):
        streams.start(str(number))
    streams.join()
    assert sorted(built) == sorted(map(str, range(count)))
