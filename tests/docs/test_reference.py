"""The generated references agree with the source."""

from __future__ import annotations

import tomllib
from dataclasses import fields

import pytest

from jobs.config.settings import Settings
from jobs.setup import reference
from jobs.setup.row_types import rows_module


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("tables.md", reference.tables_document),
        ("states.md", reference.states_document),
        ("settings.md", reference.settings_document),
        ("clients.md", reference.clients_document),
        ("api.md", reference.api_document),
    ],
)
def test_a_reference_is_what_the_source_makes_it(name, made) -> None:
    assert made() == (reference.DOCS / name).read_text(encoding="utf-8"), "run: python -m jobs.setup.reference"


def test_the_row_types_are_what_the_tables_make_them() -> None:
    assert rows_module() == reference.ROWS.read_text(encoding="utf-8"), "run: python -m jobs.setup.reference"


def test_every_setting_is_reported_and_no_other() -> None:
    assert set(reference.TOP) == {f.name for f in fields(Settings)} - set(reference.SECTIONS)
    for _, kind, about in reference.SECTION_TEXT:
        assert set(about) <= {f.name for f in fields(kind)}


def test_the_readmes_settings_are_settings() -> None:
    readme = (reference.DOCS.parent / "README.md").read_text(encoding="utf-8")
    block = "\n".join(line.removeprefix("    ") for line in readme.splitlines() if line.startswith("    "))
    declared = tomllib.loads(block[block.index("[clusters.") :])
    assert set(declared["clusters"]["prod"]) <= set(reference.CLUSTER)
