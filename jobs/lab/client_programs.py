"""Builds the lab's programs of other client libraries once: in Go, for Node.js, and with a Python environment.

Their packages come from the lock next to the sources, verified by its hashes. The built programs are kept in the user's
cache, in a folder that is named after the sources and the lock.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jobs.config.errors import UserError
from jobs.lab.built_once import built_once, completed, program_folder

SOURCES = Path(__file__).parent
POLITE = ("nice", "-n", "10")
"""The build must not starve what runs on the same machine."""


@dataclass(frozen=True, kw_only=True)
class ToolChain:
    """A way to build the sources of one folder.

    `lacking` returns what this machine does not have, as the beginning of a sentence, or an empty string. `build`
    returns the commands that build a copy of the sources in a folder.
    """

    folder: str
    lacking: Callable[[], str]
    build: Callable[[Path], Sequence[Sequence[str | Path]]]

    def built(self) -> Path:
        """Return the folder of the built program. The first call needs the network, or a filled cache of packages.

        Raises:
            UserError: a tool is missing, or a package cannot be fetched or built.
        """
        return _built(self)


@cache
def _built(chain: ToolChain) -> Path:
    sources = sorted(path for path in (SOURCES / chain.folder).iterdir() if path.is_file())
    folder = program_folder(f"{chain.folder}-{_digest(sources)}")
    if folder.exists():
        return folder
    if missing := chain.lacking():
        raise UserError(f"The lab's members in the folder {chain.folder} cannot be built: {missing}.")

    def failure(printed: str) -> str:
        return f"The lab's members in the folder {chain.folder} cannot be built: {printed[-300:]}"

    def build(fresh: Path) -> None:
        for source in sources:
            shutil.copy(source, fresh)
        for command in chain.build(fresh):
            completed([*POLITE, *command], fresh, failure)

    return built_once(folder, build)


def _digest(sources: Sequence[Path]) -> str:
    hashed = hashlib.sha256(f"{sys.version_info[:2]}".encode())
    for source in sources:
        hashed.update(source.name.encode() + b"\0" + source.read_bytes())
    return hashed.hexdigest()[:16]


def _version(*command: str) -> tuple[int, ...]:
    """Return the version that a tool prints; empty if the tool is not installed."""
    try:
        printed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:
        return ()
    found = re.search(r"(\d+)\.(\d+)", printed)
    return tuple(map(int, found.groups())) if found else ()


def _lacks_go() -> str:
    wanted = re.search(r"^go (\d+)\.(\d+)", (SOURCES / "go" / "go.mod").read_text(encoding="utf-8"), re.MULTILINE)
    assert wanted is not None
    is_new_enough = _version("go", "version") >= tuple(map(int, wanted.groups()))
    return "" if is_new_enough else f"this machine has no Go {wanted[1]}.{wanted[2]} or newer"


def _lacks_node() -> str:
    is_there = _version("node", "--version") >= (14,) and _version("npm", "--version") >= (7,)
    return "" if is_there else "this machine has no Node.js 14 or newer with npm 7 or newer"


def _lacks_venv() -> str:
    # Debian packs ensurepip, with which `venv` installs pip, separately.
    return (
        ""
        if importlib.util.find_spec("ensurepip")
        else "this Python has no pip for new environments (Debian: python3-venv)"
    )


GO = ToolChain(
    folder="go",
    lacking=_lacks_go,
    build=lambda folder: [["env", "GOTOOLCHAIN=local", "go", "build", "-trimpath", "-o", folder / "member", "."]],
)
NODE = ToolChain(
    folder="node",
    lacking=_lacks_node,
    build=lambda _: [["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]],
)
PYTHON = ToolChain(
    folder="python",
    lacking=_lacks_venv,
    build=lambda folder: [
        [sys.executable, "-m", "venv", folder / "venv"],
        [
            *(folder / "venv" / "bin" / "python", "-m", "pip", "--quiet", "--disable-pip-version-check", "install"),
            *("--require-hashes", "--no-deps", "-r", folder / "aiokafka.lock"),
        ],
    ],
)
