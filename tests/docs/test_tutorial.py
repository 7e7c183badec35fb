"""The commands of docs/tutorial.md and docs/evidence.md print what is shown; the pictures are of pages that exist."""

from __future__ import annotations

import gzip
import json
import re
import shlex
import struct
from pathlib import Path

import pytest

from dashboards import urlstate
from jobs.cli import main
from testing.pictures import README, TUTORIAL
from testing.recordings import CAPTURES

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
READ = (DOCS / "tutorial.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"(?:^    .*\n|^\n(?=    ))+", re.MULTILINE)
SHOWN = {"tutorial": ["replay", "top", "why", "advise", "incident"], "evidence": ["replay", "why", "replay", "why"]}
"""Document → the commands that it shows with their output."""
LARGEST_PICTURE = 200_000


def shown(document: str) -> list[tuple[str, list[str]]]:
    """The commands of a document, each with the lines that it is shown to print."""
    blocks = BLOCK.findall((DOCS / f"{document}.md").read_text(encoding="utf-8"))
    lines = [line.removeprefix("    ") for block in blocks for line in block.splitlines() if line]
    starts = [number for number, line in enumerate(lines) if line.startswith("$ ")]
    ends = [next((n for n in range(at + 1, len(lines)) if "./regroup " in lines[n]), len(lines)) for at in starts]
    return [(lines[at], lines[at + 1 : end]) for at, end in zip(starts, ends, strict=True)]


@pytest.fixture
def checkout(tmp_path, monkeypatch) -> Path:
    """The current directory of the commands, with the recordings where a checkout has them."""
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("document", SHOWN)
def test_the_commands_print_what_is_shown(document, checkout, capsys) -> None:
    """All shown lines are lines of the output, in this order; `…` stands for what is left out."""
    commands = [(shlex.split(command.removeprefix("$ ./regroup ")), lines) for command, lines in shown(document)]
    assert SHOWN[document] == [words[0] for words, _ in commands]
    for words, lines in commands:
        assert main(words) == (1 if words[0] == "advise" else 0)
        printed = [line for line in capsys.readouterr().out.splitlines() if line]
        assert _is_shown(lines, printed), (lines, printed)
    if document == "tutorial":
        incident = (checkout / "incident.html").read_text(encoding="utf-8")
        assert "The others waited 2.5 s for pricing-loader-1 to join" in incident
        assert "<script" not in incident


def test_the_truth_is_what_the_members_callbacks_recorded() -> None:
    """Generation 4 of pricing-loader was assigned at 07:25:42.8."""
    truth = json.loads(gzip.decompress((CAPTURES / "eager_churn/truth/summary.json.gz").read_bytes()))
    group = truth["groups"]["pricing-loader"]
    joined = next(each["join_end_ms"] for each in group["generations"] if each["generation"] == 4)
    stops = [stop for stop in group["stops"] if joined <= stop["assign_ms"] < joined + 1_000]
    assert len(stops) == 12
    assert round(sum(stop["assign_ms"] - stop["end_ms"] for stop in stops) / 1000, 1) == 31.4


def _is_shown(lines: list[str], printed: list[str]) -> bool:
    pattern = "\n".join(re.escape(line) for line in lines).replace("\n…", r"(?:\n.*)*?").replace("…", ".*")
    return re.fullmatch(pattern, "\n".join(printed)) is not None


@pytest.mark.parametrize("picture", [*README, *TUTORIAL], ids=lambda picture: picture.file)
def test_a_picture_is_of_a_page_that_there_is(picture) -> None:
    path = picture.page.partition("?")[0].removeprefix("/") or "fleet"
    assert path in {page.name for page in urlstate.PAGES}
    file = DOCS / picture.file
    content = file.read_bytes()
    width, height = struct.unpack(">II", content[16:24])
    assert (width, height) == (1440 if picture in TUTORIAL else 1280, picture.height) or picture.panel
    assert len(content) < LARGEST_PICTURE


def test_every_picture_of_the_tutorial_is_made_by_the_script() -> None:
    assert {f"tutorial/{file.name}" for file in (DOCS / "tutorial").iterdir()} == {p.file for p in TUTORIAL}
    assert re.findall(r"\]\((tutorial/\S+\.png)\)", READ) == [p.file for p in TUTORIAL]
