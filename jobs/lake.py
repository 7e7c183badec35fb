"""The tables that the pages and the answers read: of a folder, an object store or a Databricks SQL warehouse."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from dashboards.answers.why import NoAnswerError
from dashboards.lake.databricks_tables import lake as databricks
from dashboards.lake.lake import Lake, LakeError, LocalLake, WarmLake
from jobs.config.declared import secret
from jobs.config.errors import UserError
from jobs.config.places import place_of
from jobs.config.settings import Settings
from jobs.tables.location import location

T = TypeVar("T")


def asked(settings: Settings, question: Callable[[Lake], T]) -> T:
    """Return the answer of the tables to a question.

    Raises:
        UserError: there is no answer, or the tables cannot be read.
    """
    try:
        return question(lake(settings))
    except (NoAnswerError, LakeError) as error:
        raise UserError(str(error)) from None


def print_json(values: Mapping[str, Any]) -> None:
    """Print an answer's values as JSON."""
    json.dump(values, sys.stdout, indent=2)
    sys.stdout.write("\n")


def lake(settings: Settings) -> WarmLake:
    """Return the tables of the warehouse, or of the settings' [databricks].

    Raises:
        UserError: the address or the connection is not valid, or the package for Databricks SQL is not installed.
    """
    declared = settings.databricks
    if declared is None:
        place = settings.address or settings.warehouse
        # `jobs.cli` refuses a schema. Pages read the files of an address themselves.
        if isinstance(place, Path) and (there := location(place)) is not None:
            place = place_of(there)
        return LocalLake(place)
    hidden = {key: secret(f"{key} in [databricks]", getattr(declared, key)) for key in ("token", "client_secret")}
    try:
        return databricks(replace(declared, **hidden))
    except LakeError as error:
        raise UserError(str(error)) from None
