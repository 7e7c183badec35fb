"""Which reader may see which groups: the setting `readers`, by the reader's name or groups."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dashboards.lake.lake import Lake, Parameter, Tables
from dashboards.lake.query_cache import Rows

Prefixes = tuple[str, ...]
TOKEN = "token"  # noqa: S105 - name of a reader who signed in with the token
GROUP_MARK = "@"
"""Prefix of the names of groups of readers, which separates them from names of readers."""


@dataclass(frozen=True, slots=True)
class Readers:
    """Prefixes of group ids by reader, as configured. If no reader is configured, everybody sees everything."""

    declared: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.declared)

    @classmethod
    def of(cls, declared: Any) -> Readers:
        """Return the readers of a setting `name = ["prefix", ...]`.

        Raises:
            ValueError: with a sentence, if the setting has another form.
        """
        if not isinstance(declared, dict):
            raise ValueError(  # noqa: TRY004 - the value comes from a file, not from code
                'The setting readers must be a table: write [readers], then name = ["prefix"] in lines below.'
            )
        for name, prefixes in declared.items():
            if not isinstance(prefixes, list) or not all(isinstance(each, str) for each in prefixes):
                raise ValueError(
                    f'In [readers], {name} must be a list of prefixes of group ids, such as ["payments-"].'
                )
        return cls(declared)

    def prefixes(self, names: Sequence[str]) -> Prefixes | None:
        """Return the prefixes of the group ids that a reader of these names sees; None: all; (): none."""
        if not self.declared:
            return None
        found = sorted({prefix for name in names for prefix in self.declared.get(name, ())})
        return None if "" in found else tuple(found)


def readers_table(file: Path) -> Any:
    """Return the table [readers] of a TOML file.

    Raises:
        ValueError, OSError: the file cannot be read, or names no reader, which would let everybody see everything.
    """
    readers = tomllib.loads(file.read_text(encoding="utf-8")).get("readers")
    if not readers:
        raise ValueError(f'{file} names no readers: write [readers], then name = ["prefix"] in lines below.')
    return readers


class ReadersLake:
    """A lake that limits every query to the groups that the current reader may see (`prefixes`)."""

    def __init__(self, lake: Lake, prefixes: Callable[[], Prefixes | None]) -> None:
        self._lake = lake
        self._prefixes = prefixes

    def versions(self) -> Mapping[str, int]:
        return self._lake.versions()

    def changed_at(self) -> Mapping[str, int]:
        return self._lake.changed_at()

    def query(
        self,
        sql: str,
        tables: Tables,
        cap: int,
        parameters: Mapping[str, Parameter],
        prefixes: Prefixes | None = None,
    ) -> Rows:
        if prefixes is not None:
            raise ValueError("The reader's prefixes come from the request; pass none.")
        return self._lake.query(sql, tables, cap, parameters, self._prefixes())
