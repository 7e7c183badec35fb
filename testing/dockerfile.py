"""The steps of deploy/Dockerfile, for what runs or checks them without a container engine."""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass(slots=True)
class Stage:
    """One stage of the Dockerfile: its steps in order, each as a word and the rest of its line."""

    name: str
    steps: list[tuple[str, str]] = field(default_factory=list)


def stages(text: str) -> list[Stage]:
    """Return the stages of a Dockerfile."""
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    found: list[Stage] = []
    for line in re.sub(r"\\\n\s*", " ", lines).splitlines():
        word, _, rest = line.strip().partition(" ")
        if word == "FROM":
            found.append(Stage(name=rest.rpartition(" AS ")[2] if " AS " in rest else ""))
        elif word and found:
            found[-1].steps.append((word, rest.strip()))
    return found
