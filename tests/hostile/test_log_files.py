"""Log files that the settings or `ship-logs` name: a pipe or a device in their place never blocks a job."""

from __future__ import annotations

import os

import pytest

from jobs.config.errors import UserError
from jobs.kafka.logs.log_files import Follower


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "device"])
def test_what_is_no_regular_file_is_refused(tmp_path, make) -> None:
    make(tmp_path / "server.log")
    with pytest.raises(UserError, match="is not a regular file: name the file that the broker writes"):
        Follower(tmp_path / "server.log")


def test_a_symbolic_link_to_a_log_is_followed_as_rotation_makes_them(tmp_path) -> None:
    (tmp_path / "server.2026-11-21.log").write_text("one\n")
    (tmp_path / "server.log").symlink_to("server.2026-11-21.log")
    follower = Follower(tmp_path / "server.log")
    assert ["one"] == [line.line for line in follower.poll()]
    (tmp_path / "server.2026-11-22.log").write_text("two\n")
    (tmp_path / "server.log").unlink()
    (tmp_path / "server.log").symlink_to("server.2026-11-22.log")
    assert ["two"] == [line.line for line in follower.poll()]
    follower.close()


def test_a_log_that_becomes_a_pipe_is_refused(tmp_path) -> None:
    (tmp_path / "server.log").write_text("one\n")
    follower = Follower(tmp_path / "server.log")
    follower.poll()
    (tmp_path / "server.log").unlink()
    os.mkfifo(tmp_path / "server.log")
    with pytest.raises(UserError, match="is not a regular file"):
        follower.poll()
    follower.close()
