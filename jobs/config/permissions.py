"""Warnings about files and folders that other users of this machine can read or change."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

from jobs.config.settings import Settings

CLASSES = (
    ("everybody", stat.S_IROTH, stat.S_IWOTH, stat.S_IXOTH),
    ("the group", stat.S_IRGRP, stat.S_IWGRP, stat.S_IXGRP),
)
"""Classes of users, each with the permission bits to read, to change and to enter a folder."""


def warnings(file: Path | None, settings: Settings) -> Iterator[str]:
    """Yield a sentence for the warehouse and one for a settings file with secrets, if others have access."""
    if found := exposed_to(settings.warehouse):
        yield (
            f"The warehouse {settings.warehouse} {found}: it contains names of groups and clients; "
            f"chmod -R go-rwx {settings.warehouse} restricts it to this user."
        )
    if file is not None and (literal := settings.literal_secrets()) and (found := exposed_to(file)):
        yield (
            f"The settings file {file} contains {', '.join(literal)} and {found}: run chmod 600 {file}, or write "
            "env:NAME or file:PATH instead of the secret."
        )


def exposed_to(path: Path) -> str | None:
    """Return which other users can read or change the path; None if none can, also because of a parent folder."""
    try:
        path = path.resolve()
        mode = path.stat().st_mode
        above = [folder.stat().st_mode for folder in path.parents]
    except OSError:
        return None
    for who, reads, writes, enters in CLASSES:
        # A folder that other users cannot enter hides everything in it.
        if all(each & (enters | stat.S_IXOTH) for each in above):
            if mode & writes:
                return f"can be changed by {who}"
            if mode & reads:
                return f"can be read by {who}"
    return None
