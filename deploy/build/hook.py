"""Records the commit of a build in the wheel and in the source archive, for `regroup --version`.

hatchling loads this file by its path, in an environment that has neither Regroup nor its packages.
"""

from __future__ import annotations

import json
import os
import runpy
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

RECORD = "jobs/installation/build.json"


class CommitHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds `RECORD` to a build from a git checkout. A build from a source archive finds the file in the archive."""

    _folder: tempfile.TemporaryDirectory[str] | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the record, outside the checkout."""
        root = Path(self.root)
        if version == "editable" or (root / RECORD).exists():
            return
        build = runpy.run_path(str(root / "jobs" / "installation" / "build_info.py"))["of_git"](root, os.environ)
        if build is None:
            return
        self._folder = tempfile.TemporaryDirectory()
        file = Path(self._folder.name) / "build.json"
        file.write_text(json.dumps(build, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        build_data["force_include"][str(file)] = RECORD

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 - hatchling's signature
        """Remove the folder of the record."""
        if self._folder is not None:
            self._folder.cleanup()
