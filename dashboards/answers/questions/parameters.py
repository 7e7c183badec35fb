"""The parameters that several questions have, and the keys that several answers have."""

from __future__ import annotations

from dashboards.answers.questions.question import BadRequestError, Given, Parameter, QuestionContext, milliseconds
from dashboards.answers.top import RANGES
from dashboards.urlstate import Window

GROUP = Parameter(name="group", about="id of the consumer group", is_required=True)
CLUSTER = Parameter(name="cluster", about="name of the cluster, if several have the group")
RANGE = (
    Parameter(
        name="last", about="range that ends now; all is everything known", default="24h", choices=(*RANGES, "all")
    ),
    Parameter(name="from", about="first moment of the range, instead of last", is_time=True),
    Parameter(name="to", about="end of the range, exclusive; by default now", is_time=True),
)

SEEN = {"from": "first moment of the range", "to": "its end", "newest_records": "age of each cluster's newest record"}
OF_GROUP = {"cluster": "name of the cluster", "group_id": "id of the group"}


def window_of(asked: QuestionContext, given: Given) -> Window | None:
    """Return the range; None for everything that is known. Raises `BadRequestError` if it ends before it begins."""
    end = asked.now_ms if given["to"] is None else milliseconds(given["to"])
    if given["from"] is not None:
        start = milliseconds(given["from"])
    elif given["last"] == "all":
        return None if given["to"] is None else Window(0, max(end, 1), is_live=False)
    else:
        start = end - RANGES[given["last"]]
    if start >= end:
        raise BadRequestError("The range must end after it begins: from must be before to.")
    return Window(start, end, is_live=False)


def offset_of(most: int) -> Parameter:
    """Return the parameter that skips rows of an answer."""
    return Parameter(name="offset", about="rows to skip", kind="integer", default=0, least=0, most=most)


def limit_of(most: int) -> Parameter:
    """Return the parameter that limits the rows of an answer."""
    return Parameter(name="limit", about="maximum number of rows", kind="integer", default=50, least=1, most=most)
