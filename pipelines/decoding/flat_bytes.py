"""Many byte strings in one buffer: a column of keys or values without a Python object per record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

PAD = bytes(64)
"""Zeros after the last string, so that a decoder may read some bytes beyond the end of any string."""


@dataclass(frozen=True, slots=True, eq=False)
class FlatBytes(Sequence[bytes | None]):
    """A sequence of byte strings or None. String `i` has `size[i]` bytes of `data` from `start[i]` on.

    The size of None is -1, and its start is valid. The strings may lie anywhere in `data`, which ends with `PAD`.
    """

    data: NDArray[np.uint8]
    start: NDArray[np.int64]
    size: NDArray[np.int64]

    @classmethod
    def of(cls, strings: Sequence[bytes | None]) -> FlatBytes:
        """Return the same strings in one buffer."""
        if isinstance(strings, FlatBytes):
            return strings
        size = np.fromiter((-1 if each is None else len(each) for each in strings), np.int64, len(strings))
        data = np.frombuffer(b"".join(chain(filter(None, strings), (PAD,))), np.uint8)
        return cls(data, _starts(size), size)

    @classmethod
    def joined(cls, pieces: Sequence[FlatBytes]) -> FlatBytes:
        """Return the strings of all pieces, in order."""
        if len(pieces) == 1:
            return pieces[0]
        sizes = [len(piece.data) - len(PAD) for piece in pieces]
        shifts = np.cumsum([0, *sizes])
        data = np.concatenate(
            [*(piece.data[:size] for piece, size in zip(pieces, sizes, strict=True)), np.frombuffer(PAD, np.uint8)]
        )
        starts = [piece.start + shift for piece, shift in zip(pieces, shifts.tolist(), strict=False)]
        none = np.empty(0, np.int64)
        return cls(data, np.concatenate([none, *starts]), np.concatenate([none, *(piece.size for piece in pieces)]))

    def chosen(self, at: NDArray[np.int64]) -> FlatBytes:
        """Return the strings with these indexes, in the same buffer."""
        return FlatBytes(self.data, self.start[at], self.size[at])

    def bytes_in_all(self) -> int:
        """Return the sum of the sizes."""
        return int(np.maximum(self.size, 0).sum())

    def arrow(self) -> pa.LargeBinaryArray:
        """Return the strings as an Arrow array; without a copy if they follow each other in the buffer."""
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(np.maximum(self.size, 0))))
        if not np.array_equal(self.start, offsets[:-1]):
            return FlatBytes.of(list(self)).arrow()
        is_valid = self.size >= 0
        valid = None if is_valid.all() else pa.py_buffer(np.packbits(is_valid, bitorder="little"))
        return pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), len(self), [valid, pa.py_buffer(offsets), pa.py_buffer(self.data)]
        )

    def __len__(self) -> int:
        return len(self.size)

    @overload
    def __getitem__(self, at: int) -> bytes | None: ...
    @overload
    def __getitem__(self, at: slice) -> FlatBytes: ...
    def __getitem__(self, at: int | slice) -> bytes | FlatBytes | None:
        if isinstance(at, slice):
            return FlatBytes(self.data, self.start[at], self.size[at])
        start, size = int(self.start[at]), int(self.size[at])
        return None if size < 0 else self.data[start : start + size].tobytes()

    def __iter__(self) -> Iterator[bytes | None]:
        raw = self.data.data
        for start, size in zip(self.start.tolist(), self.size.tolist(), strict=True):
            yield None if size < 0 else bytes(raw[start : start + size])


def _starts(size: NDArray[np.int64]) -> NDArray[np.int64]:
    used = np.maximum(size, 0)
    starts: NDArray[np.int64] = np.cumsum(used) - used
    return starts
