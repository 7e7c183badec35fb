"""An object in a store that is written only if it is still the one that was read.

S3, Azure and Google compare the object's tag or generation themselves (`If-Match`, `If-None-Match`; S3 since 2024), so
of two processes that write at the same instant one is refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from obstore import delete, get, put
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import ObjectStore as Objects
from obstore.store import from_url

from dashboards.lake.address import ObjectStore
from jobs.config.errors import PassingError
from jobs.spark.s3_failure import failure

if TYPE_CHECKING:
    from obstore import PutMode
    from obstore.store import ClientConfig, RetryConfig

TRIES: RetryConfig = {"max_retries": 2, "retry_timeout": timedelta(seconds=10)}
HTTP = "AWS_ALLOW_HTTP"
"""The variable that allows an endpoint with http://, for deltalake too."""


class ChangedError(Exception):
    """Another process wrote or removed the object since it was read."""


@dataclass
class StoredObject:
    """The object `name` below an address. Credentials come from the environment, as deltalake expects them."""

    store: ObjectStore
    name: str
    _mode: PutMode = "create"

    def __str__(self) -> str:
        return self.store.url(self.name)

    def read(self) -> bytes | None:
        """Return the content; None if there is no object.

        Raises:
            UserError: the store cannot be used.
        """
        with self._named():
            try:
                found = get(self._objects, self.name)
                content = bytes(found.bytes())
            except FileNotFoundError:
                self._mode = "create"
                return None
            self._mode = _only(found.meta["e_tag"], found.meta["version"])
            return content

    def write(self, content: bytes) -> None:
        """Write the object, if it is still the one that was read, or still missing.

        Raises:
            ChangedError: it is another one.
            UserError: the store cannot be used.
        """
        with self._named():
            try:
                written = put(self._objects, self.name, content, mode=self._mode, use_multipart=False)
            except (AlreadyExistsError, PreconditionError) as error:
                raise ChangedError from error
            except FileNotFoundError as error:
                if self._mode == "create":
                    raise
                raise ChangedError from error
            self._mode = _only(written["e_tag"], written["version"])

    def remove(self) -> None:
        """Remove the object.

        Raises:
            UserError: the store cannot be used.
        """
        with self._named():
            delete(self._objects, self.name)

    @cached_property
    def _objects(self) -> Objects:
        client: ClientConfig = {
            "timeout": "10s",
            "connect_timeout": "5s",
            # Given here, because these options replace those of the environment.
            "allow_http": os.environ.get(HTTP, "").lower() in {"true", "1"},
        }
        return from_url(self.store.url(), client_options=client, retry_config=TRIES)

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Raise a `UserError` for an error of the store."""
        try:
            yield
        except (BaseError, FileNotFoundError) as error:
            what = f"The warehouse {self.store}"
            found = failure(what, error) if self.store.scheme == "s3" else None
            raise found or PassingError(
                f"{what} cannot be read or written: check the address, and the credentials in the environment."
            ) from None


def _only(tag: str | None, version: str | None) -> PutMode:
    """Return the condition that the object is this one. Stores have a tag, a version, or both."""
    known = {"e_tag": tag, "version": version}
    return {key: value for key, value in known.items() if value is not None}  # type: ignore[return-value]
