"""A question that a program asks by name and parameters, and the check of what it sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from dashboards.answers.questions.fields import Fields
from dashboards.lake.lake import Lake
from dashboards.teams import Teams
from dashboards.text import visible

API = "/api/v1"
"""Path of the questions over HTTP."""

LONGEST = 32 * 1024
"""Characters of a text; Kafka allows ids of 32 KiB."""

TRUE, FALSE = ("1", "true", "yes"), ("0", "false", "no")
LATEST = datetime(9999, 1, 1, tzinfo=UTC)

Value = str | int | bool
Given = Mapping[str, Any]


class BadRequestError(Exception):
    """The question is unknown, or a parameter is. The text is one sentence that says what would be right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter: `kind` is the type of its JSON Schema.

    `least` and `most` limit a number, `choices` a text. A text with `is_time` is a time in ISO 8601.
    """

    name: str
    about: str
    kind: str = "string"
    is_required: bool = False
    is_time: bool = False
    default: Value | None = None
    least: int | None = None
    most: int | None = None
    choices: Sequence[str] = ()

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the parameter."""
        found: dict[str, Any] = {"type": self.kind}
        limits = {"minimum": self.least, "maximum": self.most, "default": self.default}
        found |= {key: value for key, value in limits.items() if value is not None}
        if self.choices:
            found["enum"] = list(self.choices)
        if self.is_time:
            found["format"] = "date-time"
        return found

    def read(self, given: Any) -> Value:
        """Return a value of this parameter, also from text.

        Raises:
            BadRequestError: it is none.
        """
        match self.kind:
            case "integer":
                return self._integer(given)
            case "boolean":
                return self._boolean(given)
        if not isinstance(given, str) or len(given) > LONGEST:
            raise BadRequestError(f"{self.name} must be a text of at most {LONGEST:,} characters.")
        if self.choices and given not in self.choices:
            raise BadRequestError(f"{self.name} is one of {', '.join(self.choices)}.")
        if self.is_time:
            self._time(given)
        return given

    def _integer(self, given: Any) -> int:
        try:
            number = int(given) if isinstance(given, (str, int)) and not isinstance(given, bool) else None
        except ValueError:
            number = None
        least, most = self.least, self.most
        if number is None or (least is not None and number < least) or (most is not None and number > most):
            limits = f" from {least:,} to {most:,}" if least is not None and most is not None else ""
            raise BadRequestError(f"{self.name} must be a whole number{limits}.")
        return number

    def _boolean(self, given: Any) -> bool:
        word = str(given).lower()
        if word not in (*TRUE, *FALSE):
            raise BadRequestError(f"{self.name} is true or false.")
        return word in TRUE

    def _time(self, given: str) -> None:
        try:
            milliseconds(given)
        except ValueError:
            raise BadRequestError(
                f"{self.name} must be a time such as 2026-11-21T12:03:07Z, not {visible(given, 40)}."
            ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionContext:
    """The surroundings of an answer: the tables, the time in epoch ms, and the address of the pages without a slash at
    its end. Data older than `stale_ms` is reported as old. `teams` are those of the settings.
    """

    lake: Lake
    now_ms: int
    stale_ms: int
    base_url: str
    teams: Teams = field(default_factory=Teams)

    @property
    def state(self) -> dict[str, Any]:
        """Return the arguments of answers that depend on the time."""
        return {"now_ms": self.now_ms, "stale_ms": self.stale_ms}


Answer = Callable[[QuestionContext, Given], dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiQuestion:
    """A question. `keys` says what the keys of its answer, a JSON object, hold, and `fields` what is inside some of
    them.
    """

    name: str
    about: str
    parameters: Sequence[Parameter]
    keys: Mapping[str, str]
    answer: Answer
    fields: Mapping[str, Fields] = field(default_factory=dict)

    def answer_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the answer."""
        properties = {
            name: (self.fields[name].schema() if name in self.fields else {}) | {"description": about}
            for name, about in self.keys.items()
        }
        return {"type": "object", "properties": properties, "required": list(properties)}

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of all parameters together."""
        return {
            "type": "object",
            "properties": {each.name: each.schema() | {"description": each.about} for each in self.parameters},
            "required": [each.name for each in self.parameters if each.is_required],
            "additionalProperties": False,
        }

    def ask(self, asked: QuestionContext, given: Given) -> dict[str, Any]:
        """Return the answer to what a program sent.

        Raises:
            BadRequestError: a parameter is unknown, missing or not valid.
            NoAnswerError: there is no such group, rebalance or storm.
            LakeError: the tables cannot be read.
        """
        known = {each.name: each for each in self.parameters}
        for name in given:
            if name not in known:
                raise BadRequestError(f"{self.name} has no parameter {visible(name, 40)}: it has {', '.join(known)}.")
        found: dict[str, Any] = {}
        for name, parameter in known.items():
            value = given.get(name)
            if value is None or value == "":
                if parameter.is_required:
                    raise BadRequestError(f"{self.name} needs the parameter {name}: {parameter.about}.")
                found[name] = parameter.default
            else:
                found[name] = parameter.read(value)
        return self.answer(asked, found)


def milliseconds(text: str) -> int:
    """Return a time in ISO 8601 as epoch ms; without a zone it is UTC.

    Raises:
        ValueError: it is no time, or one before 1970.
    """
    found = datetime.fromisoformat(text)
    found = found.replace(tzinfo=UTC) if found.tzinfo is None else found
    if not datetime.fromtimestamp(0, UTC) <= found < LATEST:
        raise ValueError(text)
    return (found - datetime.fromtimestamp(0, UTC)) // timedelta(milliseconds=1)
