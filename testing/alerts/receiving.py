"""A real Alertmanager, and a real HTTP receiver for what it and Regroup send."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import unquote_to_bytes
from urllib.request import urlopen

from jobs.processes.ports import free_ports
from testing.waiting import wait_until

EXAMPLE = Path(__file__).parents[2] / "deploy" / "alertmanager.yml"
PROGRAMS = ("prometheus-alertmanager", "alertmanager")
FAST = {"group_wait: 10s": "group_wait: 500ms", "group_interval: 1m": "group_interval: 500ms"}
"""Replacements that make the example configuration fast enough for one Alertmanager in a test."""


def program(*names: str) -> str:
    """Return the first of these programs that is installed."""
    found = next((path for name in names if (path := shutil.which(name))), None)
    assert found, (
        f"Install {names[0]} (Debian: apt-get install prometheus-alertmanager prometheus), as ./regroup test does."
    )
    return found


def unescaped(text: str) -> str:
    """Return the name from which `escaped` made this text."""
    return unquote_to_bytes(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


def free_port() -> int:
    return free_ports(1)[0]


class Alertmanager:
    """Debian's Alertmanager, on loopback, with the example configuration. Its stored data remains when it is stopped.

    `waits` replaces parts of the configuration. `host` is another address to listen on, `within` comes before the
    command line, and `cluster` are the options of a cluster of several.
    """

    def __init__(
        self,
        folder: Path,
        notified: str,
        *,
        waits: Mapping[str, str] = FAST,
        host: str = "127.0.0.1",
        within: Sequence[str] = (),
        cluster: Sequence[str] = ("--cluster.listen-address=",),
    ) -> None:
        config = EXAMPLE.read_text().replace("http://127.0.0.1:9999", notified)
        for slow, fast in waits.items():
            config = config.replace(slow, fast)
        self._config, self._data, self._log = folder / "alertmanager.yml", folder / "data", folder / "alertmanager.log"
        self._config.write_text(config)
        self.port = free_port()
        self.url = f"http://{host}:{self.port}"
        self._within, self._cluster = within, cluster
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [*self._within, program(*PROGRAMS), f"--config.file={self._config}", f"--storage.path={self._data}"]
        listening = [f"--web.listen-address={self.url.removeprefix('http://')}", *self._cluster]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen([*command, *listening], stdout=log, stderr=log)
        wait_until(self.is_ready)

    def is_ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text()
        try:
            with urlopen(f"{self.url}/-/ready", timeout=1) as response:
                return bool(response.status == 200)
        except (URLError, OSError):
            return False

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(120)
            self._process = None

    def alerts(self, query: str = "") -> list[dict[str, Any]]:
        with urlopen(f"{self.url}/api/v2/alerts?{query}", timeout=120) as response:
            found: list[dict[str, Any]] = json.load(response)
            return found


class HttpReceiver:
    """Keeps the bodies and headers of every POST, by path; answers with `status`."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.posts: list[tuple[str, dict[str, str], bytes]] = []
        self.status = 200
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if receiver.status == 200:
                    receiver.posts.append((self.path, dict(self.headers), body))
                self.send_response(receiver.status)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer((host, 0), Handler)
        self.url = f"http://{host}:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def bodies(self, path: str) -> list[dict[str, Any]]:
        return [json.loads(body) for where, _, body in self.posts if where == path]

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
