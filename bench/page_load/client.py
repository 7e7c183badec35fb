"""One reader of the pages over HTTP, which sends the requests of a browser and measures the size of the responses."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit


@dataclass(slots=True)
class Sizes:
    """The largest sizes seen, in bytes."""

    figure: int = 0
    zipped: int = 0
    payload: int = 0


@dataclass(slots=True)
class Client:
    """One reader's connection to the pages. Without `weighs`, sizes are not measured, which takes as long as a page."""

    host: str
    output: dict[str, Any]
    weighs: bool = True
    sizes: Sizes = field(default_factory=Sizes)
    seen: Any = None
    connection: HTTPConnection = field(init=False)

    def __post_init__(self) -> None:
        self.connection = HTTPConnection(self.host, timeout=60)

    def close(self) -> None:
        self.connection.close()

    def get(self, path: str) -> bytes:
        self.connection.request("GET", path)
        answer = self.connection.getresponse()
        content = answer.read()
        assert answer.status == 200, (path, answer.status, content[:200])
        return content

    def open(self, address: str, *, is_tick: bool = False) -> float:
        """Return the milliseconds of the page's callback. A tick sends the current display, like a browser."""
        parts = urlsplit(address)
        search = f"?{parts.query}" if parts.query else ""
        values = {"pathname": parts.path, "search": search, "n_intervals": 1, "href": address}
        question = json.dumps(
            {
                "output": self.output["output"],
                "outputs": _outputs(self.output["output"]),
                "inputs": [i | {"value": values.get(i["property"])} for i in self.output["inputs"]],
                "state": [s | {"value": self.seen if is_tick else None} for s in self.output["state"]],
                "changedPropIds": ["tick.n_intervals" if is_tick else "url.search"],
            }
        )
        began = time.perf_counter()
        self.connection.request("POST", "/_dash-update-component", question, {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        content = answer.read()
        took = 1000 * (time.perf_counter() - began)
        assert answer.status in (200, 204), (address, answer.status, content[:200])
        if not is_tick:
            assert b"Something went wrong" not in content, address
            response = json.loads(content)["response"]
            self.seen = response["seen"]["data"]
            if self.weighs:
                self._weigh(response["made"]["data"], len(content))
        return took

    def _weigh(self, page: Any, length: int) -> None:
        for figure in _figures(page):
            text = json.dumps(figure, separators=(",", ":")).encode()
            length -= len(text)
            self.sizes.figure = max(self.sizes.figure, len(text))
            self.sizes.zipped = max(self.sizes.zipped, len(gzip.compress(text, 6)))
        self.sizes.payload = max(self.sizes.payload, length)


def _outputs(name: str) -> list[dict[str, str]]:
    parts = [each.rsplit(".", 1) for each in name.strip(".").split("...")]
    return [{"id": identity, "property": prop} for identity, prop in parts]


def _figures(node: Any) -> Iterator[Any]:
    if isinstance(node, dict):
        if node.get("type") == "Graph":
            yield node["props"]["figure"]
        node = list(node.values())
    if isinstance(node, list):
        for each in node:
            yield from _figures(each)


def client(host: str, *, weighs: bool = True) -> Client:
    asking = Client(host, {}, weighs)
    callbacks = json.loads(asking.get("/_dash-dependencies"))
    asking.output = next(each for each in callbacks if "seen.data" in each["output"])
    return asking
