"""Writes Prometheus' text format (version 0.0.4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pipelines.gold.alerts.escaping import escaped

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
ESCAPES = {"\\": "\\\\", "\n": "\\n"}
HELP, LABEL = str.maketrans(ESCAPES), str.maketrans(ESCAPES | {'"': '\\"'})
"""What the format escapes in a help text, and in a label's value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric with its samples: label values, in the order of `labels`, to a number."""

    name: str
    kind: str
    help: str
    labels: tuple[str, ...] = ()
    samples: Mapping[tuple[str, ...], float] = field(default_factory=dict)


def exposition(metrics: Iterable[Metric]) -> str:
    """Return all metrics as text, with markup and control characters of untrusted names percent-encoded."""
    return "".join(f"{line}\n" for metric in metrics for line in _lines(metric))


def _lines(metric: Metric) -> Iterable[str]:
    yield f"# HELP {metric.name} {metric.help.translate(HELP)}"
    yield f"# TYPE {metric.name} {metric.kind}"
    for values, number in sorted(metric.samples.items()):
        pairs = zip(metric.labels, values, strict=True)
        label_text = ",".join(f'{name}="{escaped(value).translate(LABEL)}"' for name, value in pairs)
        yield f"{metric.name}{f'{{{label_text}}}' if label_text else ''} {float(number)!r}"
