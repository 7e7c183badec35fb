"""Makes the files of a release from a clean checkout: `python -m jobs.installation.release --out DIR`.

The files are the wheel, the source archive, the notes of the version, the SBOM, a provenance statement and SHA256SUMS.
Nothing is uploaded. The same commit gives the same bytes, on any machine and at any time.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from jobs.config.errors import UserError
from jobs.config.terminal import say, warn
from jobs.installation.build_info import of_git, version
from jobs.setup.jar_downloads import sha256_of

ROOT = Path(__file__).resolve().parents[2]
SECTION = r"^## {version} \((?P<state>[^)]+)\)\n(?P<text>.*?)(?=^## |\Z)"
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "urn:regroup:release:1"
"""What `resolvedDependencies` and `externalParameters` mean: those of this file."""
LOCAL = "urn:regroup:unidentified-builder"
SUMS = "SHA256SUMS"


def notes(changelog: str, release: str) -> str:
    """Return the text of a version's section in the changelog.

    Raises:
        UserError: the version has no section, or the section has no date yet.
    """
    found = re.search(SECTION.format(version=re.escape(release)), changelog, re.MULTILINE | re.DOTALL)
    if found is None:
        raise UserError(f"CHANGELOG.md has no section of version {release}: write one, or correct pyproject.toml.")
    if found["state"] == "unreleased":
        raise UserError(f"The section of version {release} in CHANGELOG.md is unreleased: write its date.")
    return f"# Regroup {release} ({found['state']})\n\n{found['text'].strip()}\n"


def provenance(files: list[Path], build: dict[str, Any], lock: Path, builder: str) -> dict[str, Any]:
    """Return an in-toto statement (v1) with SLSA provenance (v1) about the files. It is not signed."""
    return {
        "_type": STATEMENT,
        "subject": [{"name": file.name, "digest": {"sha256": sha256_of(file)}} for file in files],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {"version": version(), "command": "python -m jobs.installation.release"},
                "resolvedDependencies": [
                    {"name": "source", "digest": {"gitCommit": build["commit"]}},
                    {"name": lock.name, "digest": {"sha256": sha256_of(lock)}},
                ],
            },
            "runDetails": {"builder": {"id": builder}},
        },
    }


def release(out: Path, builder: str = LOCAL, root: Path = ROOT) -> list[Path]:
    """Make the files in `out`, which must not exist, and return them.

    Raises:
        UserError: the checkout has changes or is none, the changelog lacks the version, or the build fails.
    """
    build = of_git(root, os.environ)
    if build is None:
        raise UserError(f"{root} is no git checkout: a release is made from a commit.")
    if build["is_modified"]:
        raise UserError("The checkout has changes: commit them first, because a release is made from a commit.")
    text = notes((root / "CHANGELOG.md").read_text(encoding="utf-8"), version())
    try:
        out.mkdir(parents=True)
    except FileExistsError:
        raise UserError(f"{out} exists already: name a new folder.") from None
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(out.absolute())]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UserError(f"The build failed: {done.stderr.strip()[-500:]}")
    built = sorted(out.iterdir())
    (out / f"regroup-{version()}-notes.md").write_text(text, encoding="utf-8")
    shutil.copyfile(root / "docs" / "engineering" / "sbom.cdx.json", out / f"regroup-{version()}.cdx.json")
    statement = provenance(built, build, root / "uv.lock", builder)
    (out / f"regroup-{version()}.intoto.json").write_text(f"{json.dumps(statement, indent=1)}\n", encoding="utf-8")
    made = sorted(out.iterdir())
    sums = "".join(f"{sha256_of(file)}  {file.name}\n" for file in made)
    (out / SUMS).write_text(sums, encoding="utf-8")
    return [*made, out / SUMS]


def main() -> int:
    """Run the command; return 2 after a mistake, which is described in one sentence."""
    parser = argparse.ArgumentParser(
        prog="python -m jobs.installation.release", description="Make the files of a release."
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="new folder for the files")
    parser.add_argument("--builder", default=LOCAL, metavar="URI", help="who builds, for the provenance statement")
    args = parser.parse_args()
    try:
        for file in release(args.out, args.builder):
            say(f"{file.stat().st_size:>12,} {file}")
    except UserError as error:
        warn(f"release: {error}")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
