"""Files as brokers, log4j and logrotate leave them."""

from __future__ import annotations

import errno
import json
import os
import shutil
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.config.errors import UserError
from jobs.kafka.logs.joined_lines import MAX_LINE_BYTES
from jobs.kafka.logs.log_files import FileLine, FilePosition, Follower


@pytest.fixture
def follow():
    """A follower that is closed with the test."""
    with ExitStack() as opened:
        yield lambda *args: opened.enter_context(closing(Follower(*args)))


def texts(lines: list[FileLine]) -> list[str]:
    return [each.line for each in lines]


def append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8", newline="") as stream:
        stream.write(text)


def kept(follower: Follower) -> FilePosition:
    """The position as it comes back from a file."""
    position = FilePosition(**json.loads(json.dumps(follower.position.to_json())))
    follower.close()
    return position


def test_a_file_gives_its_numbered_lines(tmp_path, follow):
    path = tmp_path / "server.log"
    path.write_bytes("one\ntwo\r\n\nfour \u2028 é\rx".encode() + b"\xff\n")
    expected = [
        (path.name, 1, "one"),
        (path.name, 2, "two"),
        (path.name, 3, ""),
        (path.name, 4, "four \u2028 é\rx\ufffd"),
    ]
    assert [(*e, False) for e in expected] == list(map(tuple, follow(path).poll()))


def test_a_source_may_be_named_otherwise(tmp_path, follow):
    (tmp_path / "server.log").write_text("one\n")
    assert [FileLine("broker 3", 1, "one")] == follow(tmp_path / "server.log", None, "broker 3").poll()


def test_a_very_long_line_is_cut_and_marked_and_the_next_one_is_whole(tmp_path, follow):
    path = tmp_path / "server.log"
    just, more = "a" * MAX_LINE_BYTES, "b" * (3 * MAX_LINE_BYTES + 5)
    path.write_text(f"{just}\n{more}\nlast\n")
    found = follow(path).poll()
    assert [just, "b" * MAX_LINE_BYTES, "last"] == texts(found)
    assert [False, True, False] == [each.is_oversized for each in found]


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"no log file .*absent\.log"):
        Follower(tmp_path / "absent.log")


def test_a_folder_is_named(tmp_path):
    with pytest.raises(UserError, match="cannot be read"):
        Follower(tmp_path)


def test_a_line_counts_once_its_end_has_come(tmp_path, follow):
    path = tmp_path / "server.log"
    path.write_text("one\ntw")
    follower = follow(path)
    assert [FileLine("server.log", 1, "one")] == follower.poll()
    assert [] == follower.poll()
    append(path, "o\nthree\n")
    assert [("server.log", 2, "two", False), ("server.log", 3, "three", False)] == list(map(tuple, follower.poll()))


def test_a_portion_is_no_larger_than_asked(tmp_path, follow):
    path = tmp_path / "server.log"
    path.write_text("1\n2\n3\n4\n5\n")
    follower = follow(path)
    assert [["1", "2"], ["3", "4"], ["5"], []] == [texts(follower.poll(2)) for _ in range(4)]


def test_a_renamed_file_is_read_to_its_end_then_the_new_one(tmp_path, follow):
    path = tmp_path / "server.log"
    path.write_text("one\n")
    follower = follow(path)
    assert ["one"] == texts(follower.poll())
    append(path, "two\nlast without end")
    path.rename(tmp_path / "server.log.2026-11-21-06")
    assert ["two"] == texts(follower.poll())
    path.write_text("new\n")
    found = follower.poll()
    assert [(3, "last without end"), (4, "new")] == [(e.line_no, e.line) for e in found]


def test_a_file_renamed_while_nobody_looked_is_found_again(tmp_path, follow):
    path = tmp_path / "server.log"
    path.write_text("one\n")
    follower = follow(path)
    follower.poll()
    position = kept(follower)
    append(path, "two\n")
    path.rename(tmp_path / "server.log.2026-11-21-06")
    path.write_text("three, of the same length or not\n")
    assert [(2, "two"), (3, "three, of the same length or not")] == [
        (e.line_no, e.line) for e in follow(path, position).poll()
    ]


@pytest.mark.parametrize("names", [["log.2026-11-21-06", "log.2026-11-21-07"], ["log.2", "log.1"], ["log-6", "log-7"]])
@pytest.mark.parametrize("is_restarted", [False, True])
def test_files_renamed_in_several_rotations_are_read_in_the_order_of_time(tmp_path, follow, names, is_restarted):
    path = tmp_path / "server.log"
    path.write_text("one\n")
    (tmp_path / "server.log.3").write_text("read before\n")
    os.utime(tmp_path / "server.log.3", (1, 1))
    follower = follow(path)
    assert ["one"] == texts(follower.poll())
    position = kept(follower) if is_restarted else None
    append(path, "two\n")
    for second, name in enumerate(names, 2):
        os.utime(path, (second, second))
        path.rename(tmp_path / f"server.{name}")
        path.write_text(f"of file {second}\nwithout end")
    for name in ("log.1.gz", "log.lck", "log.2026-11-21-05.zip"):
        (tmp_path / f"server.{name}").write_text("no log\n")
    found = (follow(path, position) if is_restarted else follower).poll()
    assert [(2, "two"), (3, "of file 2"), (4, "without end"), (5, "of file 3")] == [(e.line_no, e.line) for e in found]


def test_a_folder_that_may_not_be_listed_is_named_after_a_restart_and_needed_for_nothing_else(
    tmp_path, follow, monkeypatch
):
    path = tmp_path / "server.log"
    path.write_text("one\n")
    follower, again = follow(path), follow(path)
    assert ["one"] == texts(follower.poll()) == texts(again.poll())
    position = kept(again)

    def refuse(folder):
        raise PermissionError(errno.EACCES, "Permission denied", str(folder))

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(UserError, match=r"The folder .* cannot be listed .*Permission denied\): let this user"):
        Follower(path, position)
    path.rename(tmp_path / "server.log.1")
    path.write_text("two\n")
    assert ["two"] == texts(follower.poll())
    monkeypatch.undo()


def test_a_truncated_file_is_read_from_its_beginning(tmp_path, follow):
    path = tmp_path / "server.log"
    path.write_text("one\ntwo\n")
    follower = follow(path)
    follower.poll()
    os.truncate(path, 0)
    append(path, "new\n")
    assert [(3, "new")] == [(e.line_no, e.line) for e in follower.poll()]


def test_a_file_that_was_truncated_and_grew_beyond_its_old_size_is_read_from_its_beginning(tmp_path, follow):
    path = tmp_path / "server.log"
    path.write_text("one\ntwo\n")
    follower = follow(path)
    follower.poll()
    position = kept(follower)
    shutil.copy(path, tmp_path / "server.log.1")
    os.truncate(path, 0)
    append(path, "another beginning\nand more\n")
    assert ["another beginning", "and more"] == texts(follow(path, position).poll())


@pytest.mark.parametrize("kept_lines", ["one\ntwo\n", "one\n" * 300])
def test_a_followed_file_that_was_truncated_and_grew_again_is_read_from_its_beginning(tmp_path, follow, kept_lines):
    path = tmp_path / "server.log"
    path.write_text(kept_lines)
    follower = follow(path)
    follower.poll()
    os.truncate(path, 0)
    append(path, "another beginning\n" + "and more\n" * 300)
    assert ["another beginning", *["and more"] * 300] == texts(follower.poll())
    append(path, "end\n")
    assert ["end"] == texts(follower.poll())


def test_a_file_that_vanished_for_a_moment_is_waited_for(tmp_path, follow):
    path = tmp_path / "server.log"
    path.write_text("one\n")
    follower = follow(path)
    path.unlink()
    assert ["one"] == texts(follower.poll())
    assert [] == follower.poll()
    path.write_text("two\n")
    assert ["two"] == texts(follower.poll())


STEPS = st.lists(st.sampled_from(["write", "partial", "poll", "restart", "rotate"]), max_size=30)


@settings(max_examples=200)
@given(steps=STEPS)
def test_every_line_is_read_once_and_in_order_whatever_happens(tmp_path_factory, steps):
    path = tmp_path_factory.mktemp("logs") / "server.log"
    path.touch()
    follower, written, read, rotations = Follower(path), [], [], 0
    for step in steps:
        match step:
            case "write":
                written.append(f"line {len(written)}")
                append(path, written[-1] + "\n")
            case "partial":
                written.append(f"half {len(written)} whole")
                append(path, written[-1][:4])
                read += follower.poll(1)
                append(path, written[-1][4:] + "\n")
            case "poll":
                read += follower.poll(2)
            case "restart":
                follower = Follower(path, kept(follower))
            case "rotate":
                rotations += 1
                os.utime(path, (rotations, rotations))  # written later than the file before it
                path.rename(f"{path}.{rotations}")
                path.touch()
    while lines := follower.poll():
        read += lines
    follower.close()
    assert written == texts(read)
    assert list(range(1, len(written) + 1)) == [e.line_no for e in read]


CRI = "2026-11-21T06:41:02.803921417Z"


def test_the_parts_of_a_line_that_a_container_runtime_split_are_one_line(tmp_path, follow):
    path = tmp_path / "0.log"
    path.write_text(
        f"{CRI} stdout F one\n{CRI} stdout P two, \n{CRI} stdout P three, \n{CRI} stdout F four\n{CRI} stderr F e\n"
    )
    found = follow(path).poll()
    assert [f"{CRI} stdout F one", f"{CRI} stdout P two, three, four", f"{CRI} stderr F e"] == texts(found)
    assert [1, 2, 3] == [each.line_no for each in found]


def test_parts_of_another_stream_are_not_joined(tmp_path, follow):
    path = tmp_path / "0.log"
    path.write_text(f"{CRI} stdout P one\n{CRI} stderr F two\n{CRI} stdout F three\n")
    assert [f"{CRI} stdout P one", f"{CRI} stderr F two", f"{CRI} stdout F three"] == texts(follow(path).poll())


def test_a_split_line_waits_for_its_last_part_also_across_a_restart(tmp_path, follow):
    path = tmp_path / "0.log"
    path.write_text(f"{CRI} stdout F one\n{CRI} stdout P two, \n")
    follower = follow(path)
    assert [f"{CRI} stdout F one"] == texts(follower.poll())
    position = kept(follower)
    append(path, f"{CRI} stdout P three, \n")
    assert [] == follow(path, position).poll()
    append(path, f"{CRI} stdout F four\n{CRI} stdout F five\n")
    assert [(2, f"{CRI} stdout P two, three, four")] == [(e.line_no, e.line) for e in follow(path, position).poll(1)]
    again = follow(path, position)
    assert [2, 3] == [each.line_no for each in again.poll()]


def test_a_part_without_an_end_is_a_line_after_the_rotation(tmp_path, follow):
    path = tmp_path / "0.log"
    path.write_text(f"{CRI} stdout P one\n")
    follower = follow(path)
    assert [] == follower.poll()
    path.rename(tmp_path / "0.log.1")
    path.write_text(f"{CRI} stdout F two\n")
    assert [f"{CRI} stdout P one", f"{CRI} stdout F two"] == texts(follower.poll())


def test_endless_parts_take_no_more_memory_than_a_long_line(tmp_path, follow):
    path = tmp_path / "0.log"
    path.write_text(f"{CRI} stdout P {'x' * 16_000}\n" * 50 + f"{CRI} stdout F end\n")
    found = follow(path).poll()
    assert all(len(each.line) <= MAX_LINE_BYTES for each in found)
    assert found[0].is_oversized
    assert len(found) < 15


OBJECT = {"kind": "Pod", "metadata": {"name": "billing-0", "labels": {}}, "items": [1, [], {"a": None}]}
PRINTED = json.dumps(OBJECT, indent=4)
"""As `kubectl get -o json` prints it."""


def test_an_object_printed_over_several_lines_is_one_line(tmp_path, follow):
    path = tmp_path / "pods.json"
    path.write_text(f"one\n{PRINTED}\r\n{PRINTED}\ntwo\n")
    found = follow(path).poll()
    assert ["one", OBJECT, OBJECT, "two"] == [json.loads(x) if x.startswith("{") else x for x in texts(found)]
    assert [1, 2, 3, 4] == [each.line_no for each in found]


def test_an_object_waits_for_its_last_line_also_across_a_restart(tmp_path, follow):
    path = tmp_path / "pods.json"
    path.write_text("one\n")
    follower = follow(path)
    lines = PRINTED.splitlines(keepends=True)
    for line in lines[:-1]:
        append(path, line)
        assert all("one" == text for text in texts(follower.poll()))
    position = kept(follower)
    append(path, lines[-1])
    assert [] == follow(path, position).poll()
    append(path, "\n")
    assert [OBJECT] == [json.loads(text) for text in texts(follow(path, position).poll())]


def test_an_object_without_an_end_is_a_line_before_the_next_one(tmp_path, follow):
    path = tmp_path / "pods.json"
    path.write_text("{\n  1,\n[next] line\n{\n{\n}\n}\n  x\n")
    assert ["{ 1,", "[next] line", "{", "{ }", "}", "  x"] == texts(follow(path).poll())


def test_an_object_longer_than_a_line_may_be_is_cut_and_the_next_line_is_whole(tmp_path, follow):
    path = tmp_path / "pods.json"
    many = json.dumps({"items": ["x" * 1000] * 300}, indent=4)
    endless = "{\n" + " x\n" * 100_000
    path.write_text(f"{many}\nnext\n{endless}last\n")
    found = follow(path).poll()
    assert [True, False, True, False] == [each.is_oversized for each in found]
    assert ["next", "last"] == texts(found)[1::2]
    assert all(len(each.line) <= MAX_LINE_BYTES for each in found)


@given(st.lists(st.sampled_from(["{", "}", "  x", "y", f"{CRI} stdout P a", f"{CRI} stdout F b"])), st.data())
def test_lines_are_the_same_however_the_file_grows(tmp_path_factory, lines, data):
    content = "".join(f"{line}\n" for line in [*lines, "end"]).encode()
    folder = tmp_path_factory.mktemp("grows")
    whole, grown = folder / "whole.log", folder / "grown.log"
    whole.write_bytes(content)
    grown.write_bytes(b"")
    with closing(Follower(whole, None, "log")) as follower:
        expected = follower.poll()
    found, position = [], None
    for cut in [*sorted(data.draw(st.sets(st.integers(0, len(content))))), len(content)]:
        grown.write_bytes(content[:cut])
        with closing(Follower(grown, position, "log")) as follower:
            found += follower.poll()
            position = follower.position
    assert expected == found
