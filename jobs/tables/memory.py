"""Memory in processes that live for weeks: what collecting cycles costs, and what allocators keep."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pyarrow as pa


@contextmanager
def no_collection() -> Iterator[None]:
    """For millions of objects none of which is in a cycle: looking for some would be up to a third of the work."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def trim() -> None:
    """What is free to the operating system: allocators keep it, in hours more than all that is in use."""
    pa.default_memory_pool().release_unused()
    # GNU's C library alone has it.
    with suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
