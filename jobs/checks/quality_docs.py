"""Great Expectations' HTML pages of a check, to be read in a browser.

By default, these pages fetch scripts and pictures from the network and render values as HTML. Here values are escaped,
and a content security policy forbids scripts and requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd
from great_expectations.core.run_identifier import RunIdentifier
from great_expectations.data_context.types.resource_identifiers import (
    ExpectationSuiteIdentifier,
    ValidationResultIdentifier,
)

from jobs.checks.quality_suite import Suite, context
from jobs.config.errors import UserError

SITE = "regroup"
POLICY = "default-src 'none'; style-src 'self' 'unsafe-inline'; img-src 'self'; font-src 'self'; form-action 'none'"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedVersion:
    """The results of `Suite.check` for each batch of a version's `escaped` rows."""

    suite: Suite
    version: int
    results: Sequence[Any]


def escaped(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with texts escaped for HTML."""
    texts = rows.select_dtypes("string").apply(lambda column: column.map(escape, na_action="ignore"))
    return rows.assign(**{name: texts[name] for name in texts.columns})


def write_docs(folder: Path, found: Sequence[CheckedVersion]) -> Path:
    """Write the pages, one for each batch of rows. Return the first page.

    Raises:
        UserError: the folder cannot be written.
    """
    folder = folder.absolute()
    store = {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(folder)}
    site = {"class_name": "SiteBuilder", "store_backend": store}
    made = context()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        made.add_data_docs_site(SITE, site | {"site_index_builder": {"class_name": "DefaultSiteIndexBuilder"}})
        for each in found:
            made.suites.add(each.suite.suite)
            name = ExpectationSuiteIdentifier(each.suite.table.name)
            run = RunIdentifier(run_name=f"version {each.version}")
            for number, result in enumerate(each.results, 1):
                batch = f"batch {number} of {len(each.results)}"
                key = ValidationResultIdentifier(name, run_id=run, batch_identifier=batch)
                made.validation_results_store.set(key, result)
        made.build_data_docs(site_names=[SITE])
        for page in folder.rglob("*.html"):
            _confine(page)
    except OSError as error:
        raise UserError(
            f"The folder {folder} cannot be written ({error.strerror}): name another with --data-docs."
        ) from None
    return folder / "index.html"


def _confine(page: Path) -> None:
    head = f'<head><meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    page.write_text(page.read_text(encoding="utf-8").replace("<head>", head, 1), encoding="utf-8")
