"""docs/pages.md names the keys of the address and of the keyboard that there are."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
READ = (ROOT / "docs" / "pages.md").read_text()


def test_every_key_of_the_keyboard_is_reported_in_the_words_of_the_help():
    script = (ROOT / "dashboards" / "assets" / "keyboard.js").read_text()
    keys = re.findall(r'\{ key: "([^"]+)", does: "([^"]+)" \}', script)
    assert len(keys) > 15
    assert keys == re.findall(r"^\| `([^`]+)` \| ([^|]+) \|$", READ.partition("| key | does |")[2], re.MULTILINE)


def test_every_key_of_the_address_is_reported():
    source = (ROOT / "dashboards" / "urlstate.py").read_text()
    read = set(re.findall(r'(?:values(?:\.get\(|, )|key == )"(\w+)"', source))
    described = set(
        re.findall(
            r"`(\w+)`", "".join(re.findall(r"^\| (`[^|]+) \|", READ.partition("| key | does |")[0], re.MULTILINE))
        )
    )
    assert read == described | {"gid"}
