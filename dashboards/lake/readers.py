"""Which groups who may see: the setting `readers`, by the name or the groups that the guard knows a reader by."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dashboards.lake.lake import Lake, Parameter, Tables
from dashboards.lake.query_cache import Rows

Prefixes = tuple[str, ...]
TOKEN = "token"  # noqa: S105 - how a reader is called who came with it
GROUP_MARK = "@"
"""Stands before the name of a group of readers, so that nobody's own name is one."""


@dataclass(frozen=True, slots=True)
class Readers:
    """Prefixes of group ids by reader, as stated. Where nobody is named, everybody sees everything."""

    stated: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.stated)

    @classmethod
    def of(cls, stated: Any) -> Readers:
        """From settings: `name = ["prefix", ...]`.

        Raises:
            ValueError: with a sentence, where that is something else.
        """
        if not isinstance(stated, dict):
            raise ValueError(  # noqa: TRY004 - what people wrote, not what a program passed
                'The setting readers must be a table: write [readers], then name = ["prefix"] in lines below.'
            )
        for name, prefixes in stated.items():
            if not isinstance(prefixes, list) or not all(isinstance(each, str) for each in prefixes):
                raise ValueError(
                    f'In [readers], {name} must be a list of prefixes of group ids, such as ["payments-"].'
                )
        return cls(stated)

    def prefixes(self, names: Sequence[str]) -> Prefixes | None:
        """What a reader of these names sees: groups whose ids begin so; None: all; (): none."""
        if not self.stated:
            return None
        found = sorted({prefix for name in names for prefix in self.stated.get(name, ())})
        return None if "" in found else tuple(found)


def readers_table(file: Path) -> Any:
    """[readers] of a TOML file.

    Raises:
        ValueError, OSError: it names nobody, which would let everybody see everything, or cannot be read.
    """
    readers = tomllib.loads(file.read_text(encoding="utf-8")).get("readers")
    if not readers:
        raise ValueError(f'{file} names no readers: write [readers], then name = ["prefix"] in lines below.')
    return readers


class ReadersLake:
    """A lake of which everybody sees what `prefixes` says of who asks now, whatever is asked."""

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
            raise ValueError("Who asks decides what is seen.")
        return self._lake.query(sql, tables, cap, parameters, self._prefixes())
