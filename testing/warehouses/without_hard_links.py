"""Runs a command whose file system has no hard links, as on a Databricks volume or a mounted object store.

`python -m testing.warehouses.without_hard_links COMMAND…` replaces itself by the command. The kernel refuses the system
calls `link` and `linkat` of the command and its children with EOPNOTSUPP (a seccomp filter, Linux on x86-64 and
AArch64).
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

LINK_CALLS = {"x86_64": (86, 265), "aarch64": (37,)}
"""Numbers of `link` and `linkat` by machine (the kernel's `unistd.h`)."""

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
LOAD_CALL, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EOPNOTSUPP


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def refuse_hard_links() -> None:
    """Refuse hard links to this process and its children, for ever.

    Raises:
        OSError: the kernel has no seccomp filters, or refuses this one.
        KeyError: the machine is not in `LINK_CALLS`.
    """
    calls = LINK_CALLS[platform.machine()]
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
    """Refuse hard links to Python's code in this process, until the patch ends. Folders tried before are not tried
    again.
    """

    def link(*_: object, **__: object) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    patched.setattr(os, "link", link)


if __name__ == "__main__":
    refuse_hard_links()
    os.execvp(sys.argv[1], sys.argv[1:])
