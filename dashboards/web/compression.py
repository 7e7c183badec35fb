"""Compressed responses. The scripts of Dash's packages, which never change, are compressed once and kept in memory."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from flask import Flask, Request
from flask_compress import Compress

from dashboards.web.requests import component_file

MOST_BYTES = 16 * 1024 * 1024
"""With all algorithms, the scripts that pages load take 3 MB; all files of the packages would take 45 MB."""


class Scripts:
    """Compressed scripts by algorithm and file, at most `MOST_BYTES` in total (`COMPRESS_CACHE_BACKEND`).

    The least recently used one is dropped first. Thread-safe.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[str, bytes] = OrderedDict()
        self._lock = Lock()
        self.bytes = 0

    def get(self, key: str) -> bytes | None:
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
            return self._known.get(key)

    def set(self, key: str, value: bytes) -> None:
        if key.endswith(NO_FILE):
            return
        with self._lock:
            self.bytes += len(value) - len(self._known.pop(key, b""))
            self._known[key] = value
            while self.bytes > MOST_BYTES:
                self.bytes -= len(self._known.popitem(last=False)[1])


NO_FILE = ";"
"""End of the key (`ALGORITHM;FILE`) of a response that is not a script file."""


def file_of(request: Request) -> str:
    """Return the file that a request names, without a fingerprint in its path; '' if it names none."""
    return component_file(request.path) or ""


def compress(server: Flask) -> None:
    """Compress responses with gzip, Brotli or Zstandard, at a fast level, because pages change often."""
    server.config |= {"COMPRESS_LEVEL": 3, "COMPRESS_CACHE_BACKEND": Scripts, "COMPRESS_CACHE_KEY": file_of}
    Compress(server)
