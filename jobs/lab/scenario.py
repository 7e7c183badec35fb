"""One scenario of the lab."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jobs.lab.members import GroupPlan
from jobs.lab.other_members import JavaPlan

if TYPE_CHECKING:
    from jobs.lab.churn import Script
    from jobs.lab.incidents import Incident


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Groups with their scripts, and the required cluster. `overrides` are broker properties."""

    groups: Sequence[tuple[GroupPlan, Script]]
    overrides: Mapping[str, object] = field(default_factory=dict)
    brokers: int = 1
    incidents: Sequence[Incident] = ()

    @property
    def needs_compiler(self) -> bool:
        """Return whether a member is a Java program of the lab."""
        return any(isinstance(plan, JavaPlan) for plan, _ in self.groups)
