"""Child processes that never outlive their parent, however the parent ends.

Each child runs under a small supervisor that holds the reading end of a pipe. When the parent closes its end, exits or
is killed, the pipe ends. The supervisor then sends the child SIGTERM, and SIGKILL after a grace period.
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
    """A running child. `stop()` ends it with SIGTERM first, `kill()` with SIGKILL; both return after it has ended."""

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        output: Path,
        env: Mapping[str, str] | None = None,
        stdin_text: str = "",
        grace_s: float = 15,
        nicer: int = 0,
    ) -> None:
        """Start `command`, append its stdout and stderr to the file `output`, and send `stdin_text` as its whole stdin.

        `nicer` is added to this process's niceness. `grace_s` is the time in seconds between SIGTERM and SIGKILL.
        """
        stdin = stdin_text.encode()
        with output.open("ab") as sink:
            self._supervisor = subprocess.Popen(
                [sys.executable, "-I", __file__, str(grace_s), str(nicer), str(len(stdin)), *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=sink,
                env=env,
            )
        assert self._supervisor.stdin is not None
        assert self._supervisor.stdout is not None
        self._supervisor.stdin.write(stdin)
        self._supervisor.stdin.flush()
        self.pid = int(self._supervisor.stdout.readline())

    def is_alive(self) -> bool:
        """Return whether the child still runs."""
        return self._supervisor.poll() is None

    def wait(self, timeout_s: float | None = None) -> int:
        """Return the child's exit status; negative for a signal."""
        return self._supervisor.wait(timeout_s)

    def stop(self) -> None:
        """Send SIGTERM, then SIGKILL after the grace period."""
        self._close()

    def kill(self) -> None:
        """Send SIGKILL at once."""
        if self.is_alive():
            os.kill(self.pid, signal.SIGKILL)
        self._close()

    def _close(self) -> None:
        assert self._supervisor.stdin is not None
        assert self._supervisor.stdout is not None
        self._supervisor.stdin.close()
        self._supervisor.wait()
        self._supervisor.stdout.close()


def _supervise(grace_s: float, nicer: int, stdin_text: bytes, command: Sequence[str]) -> None:
    # A terminal's Ctrl-C reaches the whole foreground group. Only the parent decides, by closing its end of the pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def prepare() -> None:
        die_with_parent()
        os.nice(nicer)

    child = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=sys.stderr,
        # A process group can be ended as a whole. Not a session: Linux shares the cores among sessions first
        # (`sched_autogroup_enabled`), and niceness counts only within a session.
        process_group=0,
        preexec_fn=prepare,  # noqa: PLW1509 - no other thread runs yet
    )

    def leave_with_child() -> None:
        os._exit(child.wait() & 0xFF)

    def end_child(*_: object) -> None:
        # The child may have ended by itself, and been waited for.
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGTERM)
            time.sleep(grace_s)
            os.killpg(child.pid, signal.SIGKILL)

    signal.signal(signal.SIGTERM, end_child)
    sys.stdout.write(f"{child.pid}\n")
    sys.stdout.flush()
    threading.Thread(target=leave_with_child).start()
    # A thread, because a pipe holds only 64 KiB, and the child may read the rest late or never.
    threading.Thread(target=_write_input, args=(child, stdin_text), daemon=True).start()
    while os.read(0, 4096):
        pass
    end_child()


def _write_input(child: subprocess.Popen[bytes], stdin_text: bytes) -> None:
    assert child.stdin is not None
    with suppress(BrokenPipeError), child.stdin:
        child.stdin.write(stdin_text)


def _read_input(size: int) -> bytes:
    """Return the first `size` bytes of stdin. After them, stdin only signals the end of the pipe."""
    received = b""
    while len(received) < size and (part := os.read(0, size - len(received))):
        received += part
    return received


def die_with_parent() -> None:
    """On Linux, let the kernel end this process if its parent is killed (prctl 1, PR_SET_PDEATHSIG)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


if __name__ == "__main__":
    _supervise(float(sys.argv[1]), int(sys.argv[2]), _read_input(int(sys.argv[3])), sys.argv[4:])
