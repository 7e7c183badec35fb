"""Whether a folder's file system has hard links, which deltalake needs to commit.

Local disks have them. Databricks volumes, mounted object stores and some network shares do not, and a commit of
deltalake fails there (delta-rs issue 2540).
"""

from __future__ import annotations

import os
import tempfile
from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=100)
def has_hard_links(folder: Path) -> bool:
    """Return whether a hard link can be made in the folder, or in its nearest existing parent.

    Nothing remains of the trial. True if no file can be created there at all: a write then says why.
    """
    there = next((each for each in (folder, *folder.absolute().parents) if each.is_dir()), Path.cwd())
    try:
        trial = tempfile.TemporaryDirectory(prefix=".regroup-", dir=there)
    except OSError:
        return True
    with trial as name:
        file = Path(name, "file")
        file.touch()
        try:
            os.link(file, file.with_name("link"))
        except OSError:
            return False
    return True
