"""Every spelling of a name is found in text, in lists, in structs and in bytes, whatever characters it has."""

from __future__ import annotations

import json
from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jobs.retention.erased_name import Name
from jobs.retention.name_search import condition
from pipelines.arrow_types import TYPES
from schemas.gold import DIFFERENCES

NAMES = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=8)


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


def spellings(name: str) -> list[str]:
    """Return texts with the name: plain, in JSON of Python, and in JSON that keeps characters beyond ASCII."""
    return [f"of {name}.", json.dumps({"group": name}), json.dumps({"group": name}, ensure_ascii=False)]


COLUMNS = {
    "STRING": lambda text: text,
    "BINARY": str.encode,
    "ARRAY<STRING>": lambda text: ["", text],
    "MAP<STRING,STRING>": lambda text: [("key", text)],
    DIFFERENCES: lambda text: [{"value": text}],
}


@given(name=NAMES)
@example(name='é"')
@example(name="\\é")
@example(name="'")
@example(name="\x1f\x7f\x85\u2028")
@example(name="\U0001f600\n/")
def test_a_name_is_found_in_each_type_of_column(engine: duckdb.DuckDBPyConnection, name: str) -> None:
    texts = spellings(name)
    values = {kind: pa.array([of(text) for text in texts], TYPES[kind]) for kind, of in COLUMNS.items()}
    engine.register("stored", pa.table(values))
    forms = Name.of("kafka", group=name, host=None).forms()
    found = engine.sql(f"SELECT {', '.join(f'({condition(kind, kind, forms)})' for kind in COLUMNS)} FROM stored")
    assert [(True,) * len(COLUMNS)] * len(texts) == found.fetchall()


def test_a_column_without_text_needs_no_condition() -> None:
    assert not condition("at", "BIGINT", {"name"})
