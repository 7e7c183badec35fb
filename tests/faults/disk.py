"""A disk for one test, which can lose power: everything that was not written to the device by then is lost."""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import subprocess
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from testing.waiting import wait_until

SIZE = 512 * 1024 * 1024
TOOLS = ("mkfs.ext4", "losetup")
SHUTDOWN = 0x8004587D
"""The ioctl EXT4_IOC_SHUTDOWN of `fs/ext4/ext4.h`, with which the kernel's own tests of file systems lose power."""
WITHOUT_FLUSHING = struct.pack("=I", 2)
"""EXT4_GOING_FLAGS_NOLOGFLUSH: neither data nor the journal is written first."""


class Disk:
    """An ext4 file system in a file, mounted at `folder` through a loop device.

    What a process wrote is in the page cache until it is synced, or until the kernel writes it after seconds. The file
    has only what reached the device. When power is lost, ext4 writes nothing more to it; it is then mounted again, and
    the journal is replayed as after a power cut.
    """

    def __init__(self, folder: Path, image: Path) -> None:
        self.folder = folder
        self._image = image

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True)
        with self._image.open("wb") as file:
            file.truncate(SIZE)
        subprocess.run(["mkfs.ext4", "-q", "-F", self._image], check=True)
        self._mount()
        return self

    def __exit__(self, *_: object) -> None:
        self._unmount()

    def _mount(self) -> None:
        subprocess.run(["mount", "-o", "loop", self._image, self.folder], check=True)

    def _unmount(self) -> None:
        command = ["umount", self.folder]
        wait_until(lambda: subprocess.run(command, check=False, capture_output=True).returncode == 0)

    def cut(self) -> None:
        """Lose power now, and start again. The processes that wrote are killed, but may not have ended yet."""
        root = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.ioctl(root, SHUTDOWN, WITHOUT_FLUSHING)
        finally:
            os.close(root)
        self._unmount()
        self._mount()


@lru_cache
def unavailable() -> str:
    """Return why this machine cannot have a `Disk`; empty if it can. Tried once, because a container may forbid it."""
    if os.geteuid() != 0:
        return "a disk of one's own takes root"
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        return f"a disk of one's own takes {', '.join(missing)}"
    try:
        with TemporaryDirectory() as folder, Disk(Path(folder, "disk"), Path(folder, "disk.img")) as disk:
            disk.cut()
    except (OSError, subprocess.CalledProcessError) as error:
        return f"no disk of one's own: {error}"
    return ""
