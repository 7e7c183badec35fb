"""Where a warehouse is: a folder on this machine, or a path in an object store."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

WITH_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?:/+(.*))?", re.DOTALL)
"""`Path` replaces the two slashes by one, and drops them at the end. A single letter before the colon is a drive of
Windows.
"""

SCHEMES = {"s3": "s3", "s3a": "s3", "abfss": "abfss", "gs": "gs"}
"""Scheme as Spark writes it, and as deltalake expects it."""


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """A path in an object store. `scheme` is `s3`, `abfss` or `gs`; `bucket` of `abfss` is `container@account-host`."""

    scheme: str
    bucket: str
    path: str = ""

    def url(self, *names: str) -> str:
        """Return the URL of the path, or of these names below it, as deltalake expects it."""
        return f"{self.scheme}://{'/'.join(filter(None, (self.bucket, self.path, *names)))}"

    def __str__(self) -> str:
        return self.url()


def address(text: str | Path, of: str = "warehouse") -> Path | ObjectStore:
    """Return the place that the text names: `s3://`, `s3a://`, `abfss://` or `gs://`, else a folder.

    `of` is what is there, for the sentence of an error.

    Raises:
        ValueError: with a sentence that repeats no credentials, if the text has another scheme, no bucket, or a query
            or password, which belong in the environment.
    """
    found = WITH_SCHEME.fullmatch(str(text))
    if found is None:
        return Path(text)
    scheme, rest = found[1].lower(), found[2] or ""
    if scheme not in SCHEMES:
        raise ValueError(
            f"The {of} is an address of {found[1]}, which Regroup cannot read: name a folder, or an address of "
            f"{', '.join(SCHEMES)}."
        )
    bucket, _, path = rest.partition("/")
    user, at, _ = bucket.rpartition("@")
    if any(mark in rest for mark in "?#") or ":" in bucket or (at and scheme != "abfss"):
        raise ValueError(
            f"The {of}'s address of {scheme} has a password, a port or a query: write only "
            f"{scheme}://BUCKET/PATH, and give credentials and the endpoint in the environment."
        )
    if not bucket or (scheme == "abfss" and not user):
        form = "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH" if scheme == "abfss" else f"{scheme}://BUCKET/PATH"
        raise ValueError(f"The {of}'s address of {scheme} is not complete: write {form}.")
    return ObjectStore(SCHEMES[scheme], bucket, "/".join(filter(None, path.split("/"))))


def as_written(warehouse: Path) -> str:
    """Return the text of a place, with the two slashes of an address; `Path` keeps only one of them."""
    found = WITH_SCHEME.fullmatch(str(warehouse))
    return str(warehouse) if found is None else f"{found[1]}://{found[2]}"
