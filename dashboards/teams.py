"""Which team a group belongs to: the setting `teams`, shell patterns over group ids.

The label is joined to the rows of a query when it is asked, and never stored: a changed setting applies to the past.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

NO_TEAM = "none"
"""The name of all groups without a team, in addresses and options."""

LONGEST_NAME = 100
LONGEST_PATTERN = 512
MOST_PATTERNS = 1_000
MOST_STARS = 3
"""Of one pattern. A SQL warehouse may try every way to divide an id among them, and clients choose ids."""

KEYS = {"groups", "clusters"}
BEGIN, END, ANYTHING = r"(?s)\A(?:", r")\z", ".*"
NUMBERED = re.compile(r"\\x\{([0-9a-f]+)\}")


class TeamRule(NamedTuple):
    """A team's position in the settings, and regular expressions of its groups and clusters ('': all clusters)."""

    team: int
    groups: str
    clusters: str


@dataclass(frozen=True)
class Teams:
    """The teams in the order of the settings. A group belongs to the first team with a pattern that matches.

    The regular expressions mean the same in DuckDB, Spark and Python: characters other than letters and digits are
    written by their number.
    """

    declared: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.declared)

    @classmethod
    def of(cls, declared: Any) -> Teams:
        """Return the teams of a setting `name = ["pattern", ...]`.

        Raises:
            ValueError: with a sentence, if the setting has another form or a pattern is not valid.
        """
        if not isinstance(declared, dict):
            raise ValueError(  # noqa: TRY004 - the value comes from a file, not from code
                'The setting teams must be a table: write [teams], then name = ["pattern"] in lines below.'
            )
        found = cls(declared)
        for name, patterns in declared.items():
            _check_name(name)
            if not isinstance(patterns, list) or not patterns:
                raise ValueError(f'In [teams], {name} must be a list of patterns of group ids, such as ["payments-*"].')
        if sum(map(len, declared.values())) > MOST_PATTERNS:
            raise ValueError(f"[teams] has more than {MOST_PATTERNS:,} patterns: use wider ones.")
        # Computed to find patterns that are not valid.
        found.rules  # noqa: B018
        return found

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.declared)

    @cached_property
    def rules(self) -> tuple[TeamRule, ...]:
        """Return the rules in the order in which they are tried; patterns of one team and cluster form one rule.

        Raises:
            ValueError: a pattern is not valid.
        """
        found: list[TeamRule] = []
        for team, (name, patterns) in enumerate(self.declared.items()):
            for groups, clusters in (_declared(name, pattern) for pattern in patterns):
                if found and (found[-1].team, found[-1].clusters) == (team, clusters):
                    found[-1] = found[-1]._replace(groups=f"{found[-1].groups}|{groups}")
                else:
                    found.append(TeamRule(team, groups, clusters))
        return tuple(rule._replace(groups=_whole(rule.groups)) for rule in found)

    @cached_property
    def _compiled(self) -> tuple[tuple[int, re.Pattern[str], re.Pattern[str] | None], ...]:
        return tuple(
            (rule.team, re.compile(_python(rule.groups)), re.compile(_python(rule.clusters)) if rule.clusters else None)
            for rule in self.rules
        )

    def document(self) -> str:
        """Return the setting as one line of JSON, for `teams_of_document`."""
        return json.dumps(self.declared)

    def of_group(self, cluster: str, group_id: str) -> str | None:
        """Return the team of a group; None if it has none."""
        for team, groups, clusters in self._compiled:
            if groups.search(group_id) and (clusters is None or clusters.search(cluster)):
                return self.names[team]
        return None

    def position(self, name: str) -> int:
        """Return the value of `sql` for the groups of a team, or for `NO_TEAM`. Raises `ValueError` for other names."""
        return -1 if name == NO_TEAM else self.names.index(name)

    def name_at(self, position: int) -> str | None:
        """Return the name of the team with this value of `sql`; None for no team."""
        return None if position < 0 else self.names[position]

    @cached_property
    def sql(self) -> str:
        """Return an SQL expression over `cluster` and `group_id`: the team's position, or -1 for no team.

        The patterns are its `parameters`.
        """
        if not self.rules:
            return "-1"
        cases = (
            f"WHEN regexp_matches(group_id, $team_{at}_groups)"
            f"{f' AND regexp_matches(cluster, $team_{at}_clusters)' if rule.clusters else ''} THEN {rule.team}"
            for at, rule in enumerate(self.rules)
        )
        return f"CASE {' '.join(cases)} ELSE -1 END"

    @property
    def parameters(self) -> dict[str, str]:
        """Return the query parameters of `sql`."""
        found = {f"team_{at}_groups": rule.groups for at, rule in enumerate(self.rules)}
        return found | {f"team_{at}_clusters": rule.clusters for at, rule in enumerate(self.rules) if rule.clusters}


def teams_of_document(text: str) -> Teams:
    """Rebuild the teams from the text that `document` returned; no text means no teams.

    Raises:
        ValueError: with a sentence, if the text is something else.
    """
    try:
        declared = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        declared = None
    return Teams.of(declared)


def teams_table(file: Path) -> Teams:
    """Return the teams of the table [teams] in a TOML file.

    Raises:
        ValueError, OSError: the file cannot be read, has no such table, or it is not valid.
    """
    declared = tomllib.loads(file.read_text(encoding="utf-8")).get("teams")
    if not declared:
        raise ValueError(f'{file} names no teams: write [teams], then name = ["pattern"] in lines below.')
    return Teams.of(declared)


def _check_name(name: str) -> None:
    if name == NO_TEAM or not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        raise ValueError(
            f"In [teams], the name {name[:LONGEST_NAME]!r} cannot be used: choose 1 to {LONGEST_NAME} printable "
            f'characters other than "{NO_TEAM}", which stands for groups without a team.'
        )


def _declared(team: str, pattern: Any) -> tuple[str, str]:
    """Return the regular expressions of groups (without its ends) and clusters of one pattern."""
    if isinstance(pattern, str):
        return _regex(team, pattern), ""
    if not isinstance(pattern, dict) or set(pattern) - KEYS or not isinstance(pattern.get("groups"), str):
        raise ValueError(
            f'In [teams], each pattern of {team} must be text such as "payments-*", or a table such as '
            '{ groups = "payments-*", clusters = "prod-*" }.'
        )
    clusters = pattern.get("clusters", "*")
    if not isinstance(clusters, str):
        raise ValueError(  # noqa: TRY004 - as above
            f'In [teams], clusters of {team} must be text such as "prod-*".'
        )
    return _regex(team, pattern["groups"]), "" if clusters == "*" else _whole(_regex(team, clusters))


def _whole(regex: str) -> str:
    return f"{BEGIN}{regex}{END}"


def _regex(team: str, pattern: str) -> str:
    """Return the regular expression of a shell pattern: `*`, `?`, `[abc]`, `[a-z]` and `[!abc]`, case-sensitive."""
    if not 0 < len(pattern) <= LONGEST_PATTERN or "\0" in pattern:
        raise ValueError(
            f"In [teams], a pattern of {team} is empty or has more than {LONGEST_PATTERN} characters: correct it."
        )
    found = re.sub(r"(\.\*)+", ANYTHING, "".join(_parts(team, pattern)))
    if found.count(ANYTHING) > MOST_STARS:
        raise ValueError(
            f"In [teams], the pattern {pattern[:80]!r} of {team} has more than {MOST_STARS} stars: write several."
        )
    return found


def _parts(team: str, pattern: str) -> Iterator[str]:
    at = 0
    while at < len(pattern):
        character = pattern[at]
        if character == "[":
            negated = pattern[at + 1 : at + 2] == "!"
            first = at + 2 if negated else at + 1
            # As in shells, a bracket directly after the first one is a character of the class.
            end = pattern.find("]", first + 1)
            if end < 0:
                raise ValueError(
                    f"In [teams], the pattern {pattern[:80]!r} of {team} has a [ without ]: write [[] for the bracket."
                )
            yield f"[{'^' if negated else ''}{''.join(_class(team, pattern, pattern[first:end]))}]"
            at = end
        else:
            yield {"*": ANYTHING, "?": "."}.get(character) or _literal(character)
        at += 1


def _class(team: str, pattern: str, text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        if text[at + 1 : at + 2] == "-" and at + 2 < len(text):
            if text[at] > text[at + 2]:
                raise ValueError(
                    f"In [teams], the pattern {pattern[:80]!r} of {team} has the range {text[at : at + 3]}, which is "
                    "empty: write its limits in order."
                )
            yield f"{_literal(text[at])}-{_literal(text[at + 2])}"
            at += 3
        else:
            yield _literal(text[at])
            at += 1


def _literal(character: str) -> str:
    is_plain = character.isascii() and character.isalnum()
    return character if is_plain else f"\\x{{{ord(character):x}}}"


def _python(regex: str) -> str:
    """Return a rule's regular expression for Python, which takes linear time: no text after a star is tried twice."""
    ways = regex.removeprefix(BEGIN).removesuffix(END).split("|")
    return rf"(?s)\A(?:{'|'.join(map(_atomic, ways))})\Z"


def _atomic(way: str) -> str:
    first, *parts = (
        NUMBERED.sub(lambda found: re.escape(chr(int(found[1], 16))), part) for part in way.split(ANYTHING)
    )
    if not parts:
        return first
    return first + "".join(f"(?>.*?{part})" for part in parts[:-1]) + ANYTHING + parts[-1]
