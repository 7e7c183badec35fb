"""Makes docs/api.md from the questions."""

from __future__ import annotations

from collections.abc import Iterator

from dashboards.answers.questions.question import ApiQuestion, Parameter
from dashboards.answers.questions.questions import QUESTIONS

HEAD = """\
# Questions of programs

<!-- Generated from dashboards/answers/questions by `python -m jobs.setup.reference`. -->

Programs ask what people ask on the pages and in the [terminal](answers.md), and get the same answers as JSON: by HTTP
from the pages, or as tools of an assistant. A question changes nothing.

Losses are in resource-seconds, times in ISO 8601 (UTC), durations in milliseconds. A value that is not known is null,
which is not zero. `is_stale` marks old data, and each claim says whether it is observed, bounded or
inferred. Names, reasons and log lines are text that clients chose: escape them, and do not follow them.

## By HTTP

    curl -s 'http://127.0.0.1:8050/api/v1/groups?last=7d&limit=5'
    curl -s 'http://127.0.0.1:8050/api/v1/why?group=billing-worker' | jq -r .verdict.reason
    curl -s -H "Authorization: Bearer $REGROUP_PAGES_TOKEN" https://regroup.example.org/api/v1/report?days=7

`/api/v1/openapi.json` is the OpenAPI document. The rules of the [pages](serving.md) hold: the token or the proxy, the
host names, and the groups that a reader may see. A reader, or without one an address, may ask 60 questions at once and
then two a second; then the answer is 429 with `Retry-After`. Every error except those of the guard is JSON: `{"error":
"one sentence"}`, with 400 for a wrong parameter, 404 if there is no such thing, and 503 if the tables cannot be read.

## As tools of an assistant

    regroup mcp --warehouse /srv/regroup/warehouse
    REGROUP_PAGES_TOKEN=… regroup mcp --pages https://regroup.example.org

`mcp` serves the questions by the Model Context Protocol over standard input and output. With `--pages` it asks pages,
with what their reader may see; without it, it reads the tables of the settings, all of them. It needs the extra
`regroup[mcp]`; in a checkout, install it with `uv export --frozen --extra mcp --no-emit-project | uv pip install -r -`.
In the settings of an assistant:

```json
{"mcpServers": {"regroup": {"command": "regroup", "args": ["mcp", "--warehouse", "/srv/regroup/warehouse"]}}}
```

Whoever runs the assistant sends it names of groups, clients and hosts, and log lines. Client ids and log lines come
from whoever connects to Kafka: an assistant that may also act should not take them for instructions.
"""


def api_document() -> str:
    """Return docs/api.md."""
    return "\n".join([HEAD, *(line for question in QUESTIONS for line in _question(question))])


def _question(question: ApiQuestion) -> Iterator[str]:
    yield from (f"## {question.name}", "", question.about, "", "| parameter | | |", "|---|---|---|")
    for each in question.parameters:
        yield f"| `{each.name}` | {_kind(each)} | {each.about} |"
    yield from ("", "| key of the answer | |", "|---|---|")
    for name, about in question.keys.items():
        yield f"| `{name}` | {about} |"
        if (inside := question.fields.get(name)) is not None:
            place = f"{name}[]" if inside.is_list else name
            yield from (f"| `{place}.{inner}` | {each.about} |" for inner, each in inside.of.items())
    yield ""


def _kind(parameter: Parameter) -> str:
    if parameter.choices:
        kind = ", ".join(f"`{choice}`" for choice in parameter.choices)
    elif parameter.is_time:
        kind = "time"
    else:
        kind = {"integer": "whole number", "boolean": "`true` or `false`"}.get(parameter.kind, "text")
    if parameter.kind == "integer" and parameter.most is not None and parameter.least:
        kind += f", {parameter.least:,} to {parameter.most:,}"
    if parameter.is_required:
        return f"{kind}; required"
    return kind if parameter.default is None else f"{kind}; default `{parameter.default}`".replace("False", "false")
