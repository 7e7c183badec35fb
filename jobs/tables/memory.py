"""Memory of processes that run for weeks: garbage collection, and free memory that allocators keep."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pyarrow as pa


@contextmanager
def no_collection() -> Iterator[None]:
    """Turn off garbage collection in the block. It would take up to a third of the work for millions of acyclic
    objects.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def trim() -> None:
    """Return free memory to the operating system. Allocators keep it: after hours, more than all memory in use."""
    pa.default_memory_pool().release_unused()
    # Only GNU's C library has this function.
    with suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
