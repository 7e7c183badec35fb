"""Version and build of this Regroup: from the record in a wheel, or from git in a checkout.

The build of the wheel runs this file alone (deploy/build/hook.py), so it imports only the standard library.
"""

from __future__ import annotations

import json
import subprocess
import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RECORD = Path(__file__).with_name("build.json")
"""Only in wheels and source archives: commit, date of the commit, and whether files differed from it."""
SHORT = 12


@cache
def version() -> str:
    """Return the version of Regroup."""
    try:
        return metadata.version("regroup")
    except metadata.PackageNotFoundError:
        # A checkout that is not installed.
        text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
        return str(tomllib.loads(text)["project"]["version"])


def described() -> str:
    """Return the version and the build, as `regroup --version` prints them."""
    recorded = _recorded()
    build = recorded or of_git(ROOT, {})
    if build is None:
        return f"regroup {version()} (build unknown: neither a released wheel nor a git checkout)"
    changed = " with local changes" if build["is_modified"] else ""
    commit = str(build["commit"])[:SHORT]
    if recorded:
        return f"regroup {version()} (commit {commit}{changed}, {build['date']})"
    return f"regroup {version()} (checkout {commit}{changed})"


def of_git(root: Path, environ: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the build of the git checkout `root`; None if it is none, or if git is not installed.

    The date (UTC) is that of the commit, unless SOURCE_DATE_EPOCH gives another one: so the same commit gives the same
    bytes at any time. https://reproducible-builds.org/specs/source-date-epoch/
    """
    # A copy of Regroup inside another repository is no checkout of Regroup.
    if _git(root, "rev-parse", "--show-prefix") != "":
        return None
    shown = _git(root, "show", "--no-patch", "--format=%H %ct", "HEAD")
    changes = _git(root, "status", "--porcelain")
    if shown is None or changes is None:
        return None
    commit, seconds = shown.split()
    moment = datetime.fromtimestamp(int(environ.get("SOURCE_DATE_EPOCH") or seconds), UTC)
    return {"commit": commit, "date": f"{moment:%Y-%m-%d}", "is_modified": bool(changes)}


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _recorded() -> dict[str, Any] | None:
    try:
        build: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return build
