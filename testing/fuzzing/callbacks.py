"""Request bodies that no page sends: those of the callbacks, mutated, and posted to the application in this process."""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from dashboards.app import create_app
from dashboards.lake.lake import LocalLake
from dashboards.web.requests import UPDATE
from testing import sample

VALUES_ONLY = 0.1
"""Share of bodies that are valid requests with values that the pages do not have."""

VALUES = {"pathname": "/group", "search": "?cluster=prod-eu&group=billing-worker", "n_intervals": 3}
STRANGE: tuple[Any, ...] = (
    None, True, -1, 0, 2**63, -(2**80), 1e308, float("nan"), "", "x" * 5_000, "\u0000", "\ud800", "../../etc/passwd",
    "<script>alert(1)</script>", "__proto__", [], {}, [[]], {"id": {"type": ["figure"]}}, {"points": [{"y": 10**9}]},
)  # fmt: skip


@dataclass(slots=True)
class Responses:
    """The statuses, the processor time of the slowest response, and the responses with more than a sentence."""

    statuses: Counter[int] = field(default_factory=Counter)
    slowest_s: float = 0.0
    leaks: list[str] = field(default_factory=list)


class LogCollector(logging.Handler):
    """Keeps all log records."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


def bodies(app: Any, random: Random, count: int) -> Any:
    """Yield bodies as they are sent over the network."""
    asked = [asked_of(output, each, VALUES) for output, each in app.callback_map.items() if "callback" in each]
    for _ in range(count):
        body = json.loads(json.dumps(random.choice(asked)))
        if random.random() < VALUES_ONLY:
            for each in (*body["inputs"], *body["state"]):
                given = each[0] if isinstance(each, list) else each
                given["value"] = _changed(given["value"], random)
            yield json.dumps(body).encode("utf-8", "surrogatepass")
            continue
        for _ in range(random.randrange(1, 4)):
            body = _changed(body, random)
        data = json.dumps(body).encode("utf-8", "surrogatepass")
        if random.random() < 0.2:
            at = random.randrange(len(data) + 1)
            data = data[:at] + random.randbytes(random.randrange(4)) + data[at + random.randrange(4) :]
        yield data


def post(folder: Path, *, count: int, seed: int = 1) -> tuple[Responses, list[str]]:
    """Send `count` bodies to pages over a small warehouse; return the responses and the log."""
    sample.write(folder, sample.everyday(int(time.time() * 1000)))
    app = create_app(LocalLake(folder))
    client = app.server.test_client()
    client.get("/_dash-dependencies")
    collector, responses = LogCollector(), Responses()
    logging.getLogger().addHandler(collector)
    try:
        for data in bodies(app, Random(seed), count):
            began = time.process_time()
            response = client.post(UPDATE, data=data, content_type="application/json")
            responses.slowest_s = max(responses.slowest_s, time.process_time() - began)
            responses.statuses[response.status_code] += 1
            if response.status_code >= 400 and (len(response.data) > 300 or b"Traceback" in response.data):
                responses.leaks.append(data[:200].decode("utf-8", "replace"))
    finally:
        logging.getLogger().removeHandler(collector)
    return responses, collector.lines


def asked_of(output: str, callback: dict[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request of a browser for a callback, with `values` by property."""

    def given(each: dict[str, Any]) -> Any:
        found = {"id": each["id"], "property": each["property"], "value": values.get(each["property"])}
        if not each["id"].startswith("{"):
            return found
        return [found | {"id": {"type": "figure", "name": "group"}}]

    names = output.removeprefix("..").removesuffix("..").split("...")
    targets = [dict(zip(("id", "property"), name.rsplit(".", 1), strict=True)) for name in names]
    return {
        "output": output,
        "outputs": targets if len(targets) > 1 else targets[0],
        "inputs": [given(each) for each in callback["inputs"]],
        "state": [given(each) for each in callback["state"]],
        "changedPropIds": [f"{each['id']}.{each['property']}" for each in callback["inputs"][:1]],
    }


def _changed(value: Any, random: Random) -> Any:
    """Return the value with some part of it replaced, dropped or wrapped."""
    if isinstance(value, dict) and value and random.random() < 0.8:
        key = random.choice(sorted(value))
        if random.random() < 0.2:
            return {k: v for k, v in value.items() if k != key}
        return value | {key: _changed(value[key], random)}
    if isinstance(value, list) and value and random.random() < 0.8:
        at = random.randrange(len(value))
        return [*value[:at], *([] if random.random() < 0.2 else [_changed(value[at], random)]), *value[at + 1 :]]
    if random.random() < 0.05:
        for _ in range(random.randrange(200)):
            value = [value]
        return value
    return random.choice(STRANGE)
