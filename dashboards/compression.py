"""Answers made small for the way to the reader. The scripts, which never change, are made small once."""

from __future__ import annotations

from flask import Flask, Request
from flask_compress import Compress

FIXED = "/_dash-component-suites/"
"""Files below it carry their version in their name or stay as installed."""


class Scripts:
    """What has been made small, by address; nothing that has none (`COMPRESS_CACHE_BACKEND` of Flask-Compress)."""

    def __init__(self) -> None:
        self._known: dict[str, bytes] = {}

    def get(self, key: str) -> bytes | None:
        return self._known.get(key)

    def set(self, key: str, value: bytes) -> None:
        if FIXED in key:
            self._known[key] = value


def address(request: Request) -> str:
    """Of a script; '' of anything else."""
    return request.path if request.path.startswith(FIXED) else ""


def compress(server: Flask) -> None:
    """Whoever can read it gets gzip, Brotli or Zstandard; quickly, since pages are made anew all the time."""
    server.config |= {"COMPRESS_LEVEL": 3, "COMPRESS_CACHE_BACKEND": Scripts, "COMPRESS_CACHE_KEY": address}
    Compress(server)
