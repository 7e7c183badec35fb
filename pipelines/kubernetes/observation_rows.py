"""Facts about pods to rows of `admin_observations`, and log lines with objects of Kubernetes to such rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pipelines.coordinator_events import Unreadable
from pipelines.kubernetes.messages import HINTS, kubernetes
from pipelines.kubernetes.pod_facts import KIND, PodFact
from schemas.states import QuarantineReason

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pipelines.log_lines import PlacedLine

Row = dict[str, Any]

UNKEPT = "; the content is not kept, because the settings of a pod may contain secrets"
"""Ends the detail of a row of `quarantine` whose content may be an object of Kubernetes."""


def observation_rows(facts: Sequence[PodFact], cluster: str, place: str) -> list[Row]:
    """Return a row of `admin_observations` for each fact. `place` is where the facts were read.

    The subject of each row ends with the place and a number. Equal facts of one place are one row.
    """
    return [
        {
            "cluster": cluster,
            "observed_at": fact.at,
            "source": KIND,
            "kind": KIND,
            "subject": f"{fact.namespace}/{fact.pod or fact.node}#{place}.{number}",
            "body": json.dumps(fact.body, separators=(",", ":")),
        }
        for number, fact in enumerate(dict.fromkeys(facts))
    ]


def rows_of_lines(lines: Iterable[PlacedLine], *, cluster: str) -> tuple[list[Row], list[Row], int]:
    """Return rows of `admin_observations` and of `quarantine`, and the number of lines that gave the former.

    Lines that are not JSON of Kubernetes give no row.
    """
    seen: list[Row] = []
    refused: list[Row] = []
    used = 0
    for line in lines:
        if line.is_oversized:
            if line.text.startswith("{") and any(hint in line.text for hint in HINTS):
                why = Unreadable(QuarantineReason.OVERSIZED, "the object is longer than a line may be")
                refused.append(_refused(line, why, cluster))
            continue
        if (found := kubernetes(line.text)) is None:
            continue
        rows = observation_rows(found.facts, cluster, f"{line.source_id}:{line.line_no}")
        seen += rows
        used += bool(rows)
        refused += [_refused(line, why, cluster) for why in found.refused[:1]]
    return seen, refused, used


def _refused(line: PlacedLine, why: Unreadable, cluster: str) -> Row:
    return {
        "cluster": cluster,
        "source": line.source_id,
        "log_epoch": 0,
        "source_partition": -1,
        "source_offset": line.line_no,
        "reason": why.reason,
        "detail": why.detail + UNKEPT,
        "raw_value": None,
        "lines": None,
    }
