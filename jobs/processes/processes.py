"""Children that never outlive their parent, however the parent ends.

Each child runs under a small supervisor that holds the reading end of a pipe. When the parent closes its end, exits
or is killed, the pipe ends, and the supervisor terminates the child: politely first, by force after a grace period.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Supervised:
    """A running child. `stop()` ends it politely, `kill()` as a crash would; both return once it is gone."""

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        output: Path,
        env: Mapping[str, str] | None = None,
        given: str = "",
        grace_s: float = 15,
        nicer: int = 0,
    ) -> None:
        """Start `command`, so much nicer than this process, with stdout and stderr appended to the file `output`, and
        `given` as all that it reads from stdin.
        """
        told = given.encode()
        with output.open("ab") as sink:
            self._supervisor = subprocess.Popen(
                [sys.executable, "-I", __file__, str(grace_s), str(nicer), str(len(told)), *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=sink,
                env=env,
            )
        assert self._supervisor.stdin is not None
        assert self._supervisor.stdout is not None
        self._supervisor.stdin.write(told)
        self._supervisor.stdin.flush()
        self.pid = int(self._supervisor.stdout.readline())

    def is_alive(self) -> bool:
        """Whether the child still runs."""
        return self._supervisor.poll() is None

    def wait(self, timeout_s: float | None = None) -> int:
        """The child's exit status; negative for a signal."""
        return self._supervisor.wait(timeout_s)

    def stop(self) -> None:
        """SIGTERM, then SIGKILL after the grace period."""
        self._close()

    def kill(self) -> None:
        """SIGKILL at once."""
        if self.is_alive():
            os.kill(self.pid, signal.SIGKILL)
        self._close()

    def _close(self) -> None:
        assert self._supervisor.stdin is not None
        assert self._supervisor.stdout is not None
        self._supervisor.stdin.close()
        self._supervisor.wait()
        self._supervisor.stdout.close()


def _supervise(grace_s: float, nicer: int, given: bytes, command: Sequence[str]) -> None:
    # A terminal's Ctrl-C reaches the whole foreground group; the parent decides, and its end of the pipe tells.
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def prepare() -> None:
        die_with_parent()
        os.nice(nicer)

    child = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=sys.stderr,
        # A group that can be ended as a whole, but no session of its own: Linux shares the cores among sessions first
        # (`sched_autogroup_enabled`), and niceness counts within one only.
        process_group=0,
        preexec_fn=prepare,  # noqa: PLW1509 - no other thread runs yet
    )

    def leave_with_child() -> None:
        os._exit(child.wait() & 0xFF)

    def end_child(*_: object) -> None:
        os.killpg(child.pid, signal.SIGTERM)
        time.sleep(grace_s)
        os.killpg(child.pid, signal.SIGKILL)

    signal.signal(signal.SIGTERM, end_child)
    sys.stdout.write(f"{child.pid}\n")
    sys.stdout.flush()
    threading.Thread(target=leave_with_child).start()
    # A pipe holds 64 KiB: the child may take its time to read more, or end without.
    threading.Thread(target=_give, args=(child, given), daemon=True).start()
    while os.read(0, 4096):
        pass
    end_child()


def _give(child: subprocess.Popen[bytes], given: bytes) -> None:
    assert child.stdin is not None
    with suppress(BrokenPipeError), child.stdin:
        child.stdin.write(given)


def _taken(size: int) -> bytes:
    """The first so many bytes of stdin; what follows them is the end of the pipe."""
    taken = b""
    while len(taken) < size and (part := os.read(0, size - len(taken))):
        taken += part
    return taken


def die_with_parent() -> None:
    """Linux: even if the supervisor itself is killed, the kernel ends the child (prctl 1, PR_SET_PDEATHSIG)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


if __name__ == "__main__":
    _supervise(float(sys.argv[1]), int(sys.argv[2]), _taken(int(sys.argv[3])), sys.argv[4:])
