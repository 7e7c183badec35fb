"""Runs a command as on a volume of Databricks or a mounted object store: without hard links and without locks.

`python -m testing.warehouses.volume COMMAND…` replaces itself by the command. The kernel refuses the system calls
`link`, `linkat` and `flock` of the command and its children with EOPNOTSUPP (a seccomp filter, Linux on x86-64 and
AArch64).
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import struct
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

CALLS = {"x86_64": (86, 265, 73), "aarch64": (37, 32)}
"""Numbers of `link`, `linkat` and `flock` by machine (the kernel's `unistd.h`); AArch64 has no `link`."""

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
LOAD_CALL, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EOPNOTSUPP


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def refuse() -> None:
    """Refuse hard links and locks to this process and its children, for ever.

    Raises:
        OSError: the kernel has no seccomp filters, or refuses this one.
        KeyError: the machine is not in `CALLS`.
    """
    calls = CALLS[platform.machine()]
    steps = [(LOAD_CALL, 0, 0, 0)]
    steps += [(JUMP_IF_EQUAL, len(calls) - at, 0, call) for at, call in enumerate(calls)]
    steps += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, REFUSE)]
    code = b"".join(struct.pack("HBBI", *step) for step in steps)
    kept = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(steps), ctypes.cast(kept, ctypes.c_void_p))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in (
        (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0),
    ):
        if libc.prctl(*arguments):
            raise OSError(ctypes.get_errno(), "The kernel refuses a seccomp filter.")


def refuse_in(patched: pytest.MonkeyPatch) -> None:
    """Refuse hard links and locks to Python's code in this process, until the patch ends.

    Folders in which a hard link was tried before are not tried again.
    """

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    patched.setattr(os, "link", refused)
    patched.setattr(fcntl, "flock", refused)


if __name__ == "__main__":
    refuse()
    os.execvp(sys.argv[1], sys.argv[1:])
