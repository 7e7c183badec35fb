"""The OpenAPI document of the JSON API, from the questions."""

from __future__ import annotations

from typing import Any

from dashboards.answers.questions.question import API, ApiQuestion
from dashboards.answers.questions.questions import QUESTIONS

VERSION = "1"
ERRORS = {
    "400": "A parameter is unknown, missing or not valid.",
    "401": "The pages require a token, or the name of the reader from their proxy. The answer is a text.",
    "403": "The pages do not accept this request. The answer is a text.",
    "404": "There is no such question, group, rebalance or storm.",
    "429": "Too many requests: wait for the seconds in Retry-After.",
    "503": "The tables cannot be read.",
}
TEXTS = ("401", "403")


def document() -> dict[str, Any]:
    """Return the document: one path for each question."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Regroup",
            "version": VERSION,
            "description": "What every Kafka group's rebalances cost. Losses are in resource-seconds; times are in "
            "ISO 8601 (UTC); a value that is not known is null. Readers get only what they may see on the pages.",
        },
        "servers": [{"url": API}],
        "paths": {f"/{question.name}": {"get": _operation(question)} for question in QUESTIONS},
        "components": {
            "schemas": {
                "Error": {
                    "type": "object",
                    "properties": {"error": {"type": "string", "description": "one sentence"}},
                    "required": ["error"],
                }
            },
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _operation(question: ApiQuestion) -> dict[str, Any]:
    return {
        "operationId": question.name,
        "summary": question.about,
        "parameters": [
            {
                "name": each.name,
                "in": "query",
                "required": each.is_required,
                "description": each.about,
                "schema": each.schema(),
            }
            for each in question.parameters
        ],
        "responses": {"200": _answer(question)} | {status: _error(status, about) for status, about in ERRORS.items()},
    }


def _answer(question: ApiQuestion) -> dict[str, Any]:
    return {"description": "The answer.", "content": {"application/json": {"schema": question.answer_schema()}}}


def _error(status: str, about: str) -> dict[str, Any]:
    if status in TEXTS:
        return {"description": about, "content": {"text/plain": {"schema": {"type": "string"}}}}
    schema = {"$ref": "#/components/schemas/Error"}
    return {"description": about, "content": {"application/json": {"schema": schema}}}
