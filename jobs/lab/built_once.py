"""Programs of the lab that are built once, into a folder of the user's cache that is named after their sources."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from jobs.config.errors import UserError
from jobs.setup.jars import cache_dir


def program_folder(name: str) -> Path:
    """Return the folder of the built program `name`, whether it exists or not."""
    return cache_dir().parent / "lab" / name


def built_once(folder: Path, build: Callable[[Path], None]) -> Path:
    """Return `folder` after `build` has filled it, as a whole: another process never sees a part of it.

    If `build` raises an error, nothing is left.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".new-"))
    try:
        build(fresh)
        fresh.rename(folder)
    except OSError:
        # Another process has already built the same program.
        if not folder.exists():
            raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return folder


def completed(command: Sequence[str | Path], in_folder: Path, failure: Callable[[str], str]) -> None:
    """Run a command to its end.

    Raises:
        UserError: it failed; `failure` makes the sentence from what it printed.
    """
    done = subprocess.run(command, cwd=in_folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UserError(failure((done.stderr or done.stdout).strip()))
