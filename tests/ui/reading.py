"""Texts and links of a page, read from its components."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dash.development.base_component import Component


def inside(part: Component) -> list[Any]:
    """Return the children of a component; for the body of a table, the cells of its rows."""
    rows = getattr(part, "data-rows", None)
    children = getattr(part, "children", None) if rows is None else rows
    return children if isinstance(children, list) else [children]


def parts(part: Any) -> Iterator[Component]:
    """Every component of a page."""
    if isinstance(part, list | tuple):
        for each in part:
            yield from parts(each)
    elif isinstance(part, Component):
        yield part
        yield from parts(inside(part))


def words(part: Any, between: str = " | ") -> str:
    """All text."""
    if isinstance(part, Component):
        part = inside(part)
    if isinstance(part, list | tuple):
        return between.join(words(each, between) for each in part)
    return "" if part is None else str(part)


def links(part: Any) -> list[str]:
    """Where links lead."""
    return [each.href for each in parts(part) if hasattr(each, "href")]
