"""Answers of the JSON API of pages that run elsewhere, with what their reader may see."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, build_opener

from dashboards.answers.questions.question import API, ApiQuestion
from jobs.alerting.http_post import NoRedirect
from jobs.config.errors import UserError, one_line
from jobs.config.value_checks import is_http_address

LONGEST_S = 60.0
LARGEST = 32 * 1024 * 1024
"""Bytes of an answer that are read at most."""


class PagesError(Exception):
    """The pages did not answer a question. The text is one sentence."""


def valid_address(address: str) -> str:
    """Return the address of pages without a slash at its end.

    Raises:
        UserError: it is no address of HTTP.
    """
    if not is_http_address(address) or urlsplit(address).query or urlsplit(address).fragment:
        raise UserError(f"--pages {address!r} must be an address such as https://regroup.example.org.")
    return address.rstrip("/")


def answer_of_pages(address: str, token: str, question: ApiQuestion, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer of the pages at an address, with their token if there is one.

    Raises:
        PagesError: the pages refused the question or did not answer; the text is theirs if they sent a sentence.
    """
    query = urlencode({name: str(value) for name, value in given.items() if value is not None})
    headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    request = Request(f"{address}{API}/{question.name}?{query}", headers=headers)  # noqa: S310 - http, as checked
    try:
        with build_opener(NoRedirect).open(request, timeout=LONGEST_S) as response:
            found = json.loads(response.read(LARGEST))
    except HTTPError as error:
        with error:
            sentence = _sentence(error.read(LARGEST))
        raise PagesError(sentence or f"The pages answered {error.code}.") from None
    except (OSError, HTTPException, ValueError) as error:
        raise PagesError(f"The pages at {address} did not answer: {one_line(error)}.") from None
    if not isinstance(found, dict):
        raise PagesError(f"What answers at {address} is not Regroup: its answer is no JSON object.")
    return found


def _sentence(body: bytes) -> str:
    text = body.decode("utf-8", "replace")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text.strip()[:500]
    return str(found.get("error", "")) if isinstance(found, dict) else ""
