"""Figures as the plain dictionaries that Plotly's script draws.

The classes of Plotly's Python package check every property of a figure, which took two thirds of the processor time of
a group's page. `tests/ui/views/test_plot.py` has these classes check the figures of all pages instead.
"""

from __future__ import annotations

from typing import Any

Trace = dict[str, Any]
Figure = dict[str, Any]
"""`data`, a list of traces, and `layout`, as in Plotly's JSON schema."""


def trace(kind: str, **properties: Any) -> Trace:
    """Return a trace of this type, such as `scatter`, without the properties that are None."""
    return {"type": kind, **{name: value for name, value in properties.items() if value is not None}}
