"""The commands of docs/tutorial.md print what it shows, and its pictures show pages that there are."""

from __future__ import annotations

import re
import shlex
import struct
from pathlib import Path

import pytest

from dashboards import urlstate
from jobs.cli import main
from testing.pictures import README, TUTORIAL

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
READ = (DOCS / "tutorial.md").read_text(encoding="utf-8")
BLOCKS = [
    [line.removeprefix("    ") for line in block.splitlines()]
    for block in re.findall(r"(?:^    .*\n|^\n(?=    ))+", READ, re.MULTILINE)
]
SHOWN = {lines[0]: lines[1:] for block in BLOCKS if (lines := [*filter(None, block)])[0].startswith("$ ")}
LARGEST_PICTURE = 200_000


def test_the_commands_print_what_is_shown(tmp_path, monkeypatch, capsys) -> None:
    """All shown lines are lines of the output, in this order; `…` stands for what is left out."""
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    monkeypatch.chdir(tmp_path)
    commands = [shlex.split(command.removeprefix("$ ./regroup ")) for command in SHOWN]
    assert ["replay", "top", "why", "advise", "incident"] == [words[0] for words in commands]
    for words, shown in zip(commands, SHOWN.values(), strict=True):
        assert main(words) == (1 if words[0] == "advise" else 0)
        printed = [line for line in capsys.readouterr().out.splitlines() if line]
        assert _is_shown(shown, printed), (shown, printed)
    document = Path("incident.html").read_text(encoding="utf-8")
    assert "The others waited 2.5 s for pricing-loader-1 to join" in document
    assert "<script" not in document


def _is_shown(shown: list[str], printed: list[str]) -> bool:
    pattern = "\n".join(re.escape(line) for line in shown).replace("\n…", r"(?:\n.*)*?").replace("…", ".*")
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
