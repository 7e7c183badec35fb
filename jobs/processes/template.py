"""A process from which others are forked, so that they share the memory of the modules that it has loaded.

`up` and `ingest` start about ten Python processes. Each would load the same libraries, 45-60 MB of its own. A fork
shares these pages with the command until one of them writes there. The command forks the template before it has a
second thread, because threads do not survive a fork. The template needs Linux. On other systems, and if the template
was killed, processes are started in the usual way. The template ends with the command, and its forks with the template.
"""

from __future__ import annotations

import _socket
import atexit
import ctypes
import gc
import os
import runpy
import select
import shutil
import signal
import socket
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import IO, NoReturn, Self

from jobs.processes.processes import die_with_parent
from jobs.processes.python_launcher import SIZE, ordered, received

STREAMS = 3
"""Stdin, stdout and stderr, which come with an order."""

FOLDERS = "regroup-template-"
"""Prefix of the private folders of templates, among the temporary files."""

ORDER_S = 5.0
"""Seconds within which an order must have arrived as a whole."""

_folder: Path | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """The module that a fork runs, with arguments, as `python -m`. Without an environment, the fork keeps the
    template's.
    """

    directory: str
    arguments: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def unpacked(cls, packed: bytes) -> Order:
        """Return the order that `python_launcher.ordered` packed."""
        directory, count, *rest = (os.fsdecode(each) for each in packed.split(b"\0")[:-1])
        arguments, variables = rest[: int(count)], rest[int(count) :]
        return cls(directory, arguments, dict(each.split("=", 1) for each in variables if "=" in each))


class Forked:
    """A fork that runs a module, with pipes to its stdin and stdout."""

    def __init__(self, connection: _socket.socket, stdin: IO[bytes], stdout: IO[bytes]) -> None:
        self.stdin, self.stdout = stdin, stdout
        self._connection = connection
        self.pid = int.from_bytes(received(connection, SIZE), "little")
        self._process: int | None = os.pidfd_open(self.pid)

    def poll(self) -> int | None:
        """Return None while the process runs, else -1, because only the template knows the exit status."""
        return self._waited(0)

    def wait(self) -> int | None:
        """Return after the process has ended."""
        return self._waited(None)

    def kill(self) -> None:
        """Send SIGKILL."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._process, signal.SIGKILL)

    def _waited(self, seconds: float | None) -> int | None:
        if self._process is not None:
            if not select.select([self._process], [], [], seconds)[0]:
                return None
            os.close(self._process)
            self._process = None
        return -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        try:
            self.stdin.close()
        finally:
            self.stdout.close()
            self.wait()


def start(modules: Sequence[str] = ()) -> None:
    """Fork the template, which loads these modules as well. Call before this process has a second thread."""
    global _folder  # noqa: PLW0603 - one template per process
    if not _is_possible():
        return
    _remove_abandoned()
    private = Path(tempfile.mkdtemp(prefix=FOLDERS))
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(address(private)))
    except OSError:
        # The path of a socket has at most 107 bytes. Processes are then started in the usual way.
        listener.close()
        shutil.rmtree(private, ignore_errors=True)
        return
    _folder = private
    # Not blocking, because a client may have ended before it is accepted.
    listener.settimeout(0)
    listener.listen(64)
    ends, ours = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    # Exempts the loaded objects from garbage collection, which would write to their pages in each process.
    gc.collect()
    gc.freeze()
    if os.fork():
        listener.close()
        os.close(ends)
        return
    try:
        os.close(ours)
        # A terminal's Ctrl-C and a service manager's SIGTERM reach all processes, but only the command decides when it
        # ends.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        named(["regroup-template"])
        for name in modules:
            import_module(name)
        gc.freeze()
        _serve(listener, ends)
    finally:
        shutil.rmtree(_folder, ignore_errors=True)
        os._exit(0)


def folder() -> Path | None:
    """Return the private folder of the template of this process; None without a template."""
    return _folder


def address(within: Path) -> Path:
    """Return the path of the template's socket."""
    return within / "socket"


def forked(*arguments: str) -> Forked | None:
    """Return a fork that runs the module `arguments[0]` with the other arguments; None if there is no template."""
    if _folder is None:
        return None
    theirs_in, ours_in = os.pipe()
    ours_out, theirs_out = os.pipe()
    stdin, stdout = os.fdopen(ours_in, "wb"), os.fdopen(ours_out, "rb")
    connection = None
    try:
        connection = ordered(str(address(_folder)), arguments, (), (theirs_in, theirs_out, 2))
        return Forked(connection, stdin, stdout)
    except (OSError, EOFError):
        for each in (connection, stdin, stdout):
            if each is not None:
                each.close()
        return None
    finally:
        os.close(theirs_in)
        os.close(theirs_out)


def named(arguments: Sequence[str]) -> None:
    """Replace the command line of this process, which is that of the command after a fork, in what `ps` prints."""
    line = b"\0".join(os.fsencode(each) for each in arguments) + b"\0"
    with suppress(OSError, ValueError, IndexError):
        # Fields 48 and 49 of proc(5); the second one, in parentheses, may contain spaces.
        numbers = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        begin, end = int(numbers[45]), int(numbers[46])
        if 0 < begin < end:
            ctypes.memset(begin, 0, end - begin)
            ctypes.memmove(begin, line, min(len(line), end - begin - 1))


def _remove_abandoned() -> None:
    """Remove the folders of templates that were killed, such as with the command and all other processes at once."""
    for each in Path(tempfile.gettempdir()).glob(f"{FOLDERS}*"):
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            if each.stat().st_uid == os.getuid():
                try:
                    connection.connect(str(address(each)))
                except ConnectionRefusedError:
                    shutil.rmtree(each, ignore_errors=True)


def _is_possible() -> bool:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True


def _serve(listener: socket.socket, ends: int) -> None:
    """Fork on order, until the other end of the pipe `ends` is closed."""
    waiting = select.poll()
    waiting.register(ends, select.POLLIN)
    waiting.register(listener, select.POLLIN)
    clients: dict[int, tuple[socket.socket, int]] = {}
    children: dict[int, tuple[int, int]] = {}
    while True:
        # New clients are handled last, because they may get the file descriptors of clients that are closed before.
        for ready, _ in sorted(waiting.poll(), key=lambda event: event[0] == listener.fileno()):
            if ready == ends:
                return
            if ready == listener.fileno():
                with suppress(OSError):
                    client, _ = listener.accept()
                    pid = _ordered(client, [listener.fileno(), ends, *clients, *children])
                    if pid is None:
                        # Its reader then starts the process in the usual way.
                        client.close()
                        continue
                    child = os.pidfd_open(pid)
                    clients[client.fileno()], children[child] = (client, pid), (pid, client.fileno())
                    waiting.register(client, select.POLLIN)
                    waiting.register(child, select.POLLIN)
            elif ready in clients:
                # The client has ended, or has closed its connection.
                client, pid = clients.pop(ready)
                waiting.unregister(ready)
                client.close()
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
            elif ready in children:
                pid, number = children.pop(ready)
                waiting.unregister(ready)
                os.close(ready)
                _, status = os.waitpid(pid, 0)
                if clients.get(number, (None, 0))[1] == pid:
                    client, _ = clients.pop(number)
                    waiting.unregister(number)
                    with suppress(OSError), client:
                        client.sendall((os.waitstatus_to_exitcode(status) & 0xFF).to_bytes(SIZE, "little"))


def _ordered(client: socket.socket, inherited: Sequence[int]) -> int | None:
    """Read an order, fork, and return the id of the new process, which closes the numbers `inherited`; None if the
    order is not complete or no process can be forked.
    """
    client.settimeout(ORDER_S)
    streams: list[int] = []
    try:
        head, streams, _, _ = socket.recv_fds(client, SIZE, STREAMS)
        if len(head) < SIZE or len(streams) < STREAMS:
            return None
        order = Order.unpacked(received(client, int.from_bytes(head, "little")))
        pid = os.fork()
        if not pid:
            _become(order, streams, (*inherited, client.fileno()))
        with suppress(OSError):
            client.sendall(pid.to_bytes(SIZE, "little"))
    except (OSError, ValueError, EOFError):
        return None
    else:
        return pid
    finally:
        for each in streams:
            os.close(each)


def _become(order: Order, streams: Sequence[int], inherited: Sequence[int]) -> NoReturn:
    """Run the module of the order in this process, and end it."""
    code = 1
    try:
        for each in inherited:
            os.close(each)
        die_with_parent()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115 - numbers
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115 - a number
        if order.environment:
            os.environ.clear()
            os.environ.update(order.environment)
        os.chdir(order.directory)
        module, *rest = order.arguments
        named(["python", "-m", module, *rest])
        sys.argv = [module, *rest]
        # It is run as `__main__`, and must not be there twice.
        sys.modules.pop(module, None)
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - printed as the interpreter would
        traceback.print_exc()
    finally:
        for written in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                written.flush()
        with suppress(Exception):
            atexit._run_exitfuncs()  # noqa: SLF001 - the interpreter's first step at exit
        os._exit(code & 0xFF)
