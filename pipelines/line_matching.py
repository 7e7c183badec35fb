"""Kafka's message templates as parsers that extract the arguments from a message.

A group id may contain any text, even words of the surrounding template. If a line is ambiguous, the match with the
longest group id is used. Untrusted text in an id then stays inside that id and never makes a line about another group.
The matching time is proportional to the length of the text, whatever it contains.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from schemas.coordinator_log import NUMBERS, WORDS

_ARGUMENT = re.compile(r"\{(\w+)\}")
_UUID = r"-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
# Coordinators name classic members `<client or instance id>-<UUID>`; KIP-848 members may choose their own ids.
_ENDS = {"member_id": _UUID, "leader_member_id": _UUID, "replaced_member_id": _UUID, "member_ids": _UUID + r"[])}]"}
_PIVOTS = ("group_id", "group_instance_id", "reason")
_UNKEPT = frozenset({"_", "_n", "_w", "state"})
_INT32, _INT64 = 2**31 - 1, 2**63 - 1
_KEPT_NUMBERS = NUMBERS - _UNKEPT


@dataclass(frozen=True, slots=True)
class _Gap:
    """The fixed part between two free texts, including numbers and words, as patterns for matching from either side."""

    here: re.Pattern[str]
    first: tuple[re.Pattern[str], ...]
    last: re.Pattern[str]
    names: tuple[str, ...]


@dataclass(frozen=True)
class Template:
    """A parser for one message template; `text` has the format of `schemas.coordinator_log`."""

    text: str

    @cached_property
    def _parts(self) -> list[str]:
        """Fixed texts and argument names, alternating. The first and the last item are fixed texts."""
        return _ARGUMENT.split(self.text)

    @cached_property
    def head(self) -> str:
        return self._parts[0]

    @cached_property
    def tail(self) -> str:
        return self._parts[-1]

    @cached_property
    def longest(self) -> str:
        """The longest fixed text. A message without it cannot match, which is the fastest check."""
        return max(self._parts[::2], key=len)

    @cached_property
    def fixed(self) -> int:
        """Count of fixed characters. Of two matching templates, the one with the higher count is more specific."""
        return sum(map(len, self._parts[::2]))

    @cached_property
    def _free(self) -> list[str]:
        return [name for name in self._parts[1::2] if name not in NUMBERS | WORDS]

    @cached_property
    def _gaps(self) -> list[_Gap]:
        """The fixed parts before the first free text, between any two, and after the last one, up to the end of the
        text.
        """
        gaps: list[_Gap] = []
        names: list[str] = []
        pattern, before = "", ""
        for fixed, name in zip(self._parts[::2], [*self._parts[1::2], ""], strict=True):
            pattern += re.escape(fixed)
            if name in NUMBERS or name in WORDS:
                pattern += r"(-?[0-9]{1,19})" if name in NUMBERS else r"([A-Za-z0-9_-]{1,64})"
                names.append(name)
            else:
                gaps.append(_gap(pattern if name else pattern + r"\Z", before, tuple(names)))
                names, pattern, before = [], "", name
        return gaps

    @cached_property
    def _plan(self) -> _Plan:
        """The matching order. The pivot matches as much text as possible; the other free texts match as little."""
        opening, *gaps = self._gaps
        pivot = next((self._free.index(name) for name in _PIVOTS if name in self._free), 0)
        following = [*self._free[pivot + 1 :], "_"] if self._free else []
        return _Plan(
            opening=opening,
            left=tuple(zip(self._free[:pivot], gaps, strict=False)),
            pivot=self._free[pivot] if self._free else "_",
            right=tuple(zip(following, gaps[pivot:], strict=True))[::-1],
        )

    def read(self, text: str) -> dict[str, Any] | None:
        """Return the arguments by column name, with numbers as int, or None if `text` does not match this template."""
        if not (text.startswith(self.head) and text.endswith(self.tail)):
            return None
        plan = self._plan
        found = plan.opening.here.match(text)
        if found is None:
            return None
        values = dict(zip(plan.opening.names, found.groups(), strict=True))
        low, high = found.end(), len(text)
        for name, gap in plan.left:
            found = next((m for pattern in gap.first if (m := pattern.match(text, low))), None)
            if found is None:
                return None
            values |= zip((name, *gap.names), found.groups(), strict=True)
            low = found.end()
        for name, gap in plan.right:
            found = gap.last.match(text, low, high)
            if found is None:
                return None
            values[name] = text[found.end() : high]
            if gap.names:
                values |= zip(gap.names, found.groups()[1:], strict=True)
            high = found.end(1)
        values[plan.pivot] = text[low:high]
        return _typed(values)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """The order in which the parts are matched.

    `left` runs from left to right, each free text with the gap after it. `right` runs from right to left, each free
    text with the gap before it.
    """

    opening: _Gap
    left: tuple[tuple[str, _Gap], ...]
    pivot: str
    right: tuple[tuple[str, _Gap], ...]


def _gap(pattern: str, before: str, names: tuple[str, ...]) -> _Gap:
    ends = _ENDS.get(before)
    strict = (re.compile(rf"(?s)(.*?{ends}){pattern}"),) if ends else ()
    return _Gap(
        here=re.compile(pattern),
        first=(*strict, re.compile(rf"(?s)(.*?){pattern}")),
        last=re.compile(rf"(?s)(.*){pattern}"),
        names=names,
    )


def _typed(values: dict[str, str]) -> dict[str, Any] | None:
    """Return the arguments that columns store, or None for a number too large for Kafka to have printed."""
    typed: dict[str, Any] = {}
    for name, value in values.items():
        if name in _KEPT_NUMBERS:
            typed[name] = number = int(value)
            if number > (_INT64 if name == "duration_ms" else _INT32):
                return None
        elif name not in _UNKEPT:
            typed[name] = value
    return typed


_UUID_COMMA = re.compile(rf"(?<={_UUID}), ")


def listed(text: str) -> list[str]:
    """Return the members of a printed collection: `Set(a, b)`, `[a, b]`, `{a, b}` or bare.

    Client ids may have commas.
    """
    inner = re.sub(r"\A\w*[(\[{]|[)\]}]\Z", "", text) if re.fullmatch(r"(?s)\w*[(\[{].*[)\]}]", text) else text
    if not inner:
        return []
    return _UUID_COMMA.split(inner) if re.search(rf"{_UUID}\Z", inner) else inner.split(", ")
