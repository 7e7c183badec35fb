"""A reader for Kafka's record batches of format 2 in a log segment file (KIP-98; `DefaultRecordBatch`,
`DefaultRecord`).

A compressed batch of 5 kB may unpack to 150 MB, so a batch is unpacked to at most `UNPACKED_BATCH_BYTES`. Checksums are
not verified.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from pipelines.decoding.record_decoding import Quarantined, failed
from pipelines.decoding.source_record import SourceRecord
from pipelines.decoding.wire import WireError
from pipelines.limits import UNPACKED_BATCH_BYTES
from schemas.states import QuarantineReason

if TYPE_CHECKING:
    from collections.abc import Iterator

HEADER = struct.Struct(">qiibIhiqqqhii")
"""baseOffset, batchLength, partitionLeaderEpoch, magic, crc, attributes, lastOffsetDelta, baseTimestamp, maxTimestamp,
producerId, producerEpoch, baseSequence, records.
"""
BEFORE_LENGTH, MAGIC = 12, 2
_COMPRESSION, _APPEND_TIME, _CONTROL = 0x07, 0x08, 0x20
_GZIP, _SNAPPY, _LZ4, _ZSTD = 1, 2, 3, 4
_STREAMED = {_LZ4: "lz4", _ZSTD: "zstd"}
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER = 16
"""Format of snappy-java: 8 bytes of magic and two versions, then blocks, each after its size (`SnappyOutputStream`)."""


class RecordBatch(NamedTuple):
    """One batch: `raw` is the header and the bytes after it; `last` is the offset of its last record."""

    base: int
    last: int
    raw: bytes


def batch(raw: bytes) -> RecordBatch | Quarantined:
    """Return the batch in `raw`, or why it cannot be read; `raw` has at least `HEADER.size` bytes."""
    base, _, _, magic, _, _, last, *_ = HEADER.unpack_from(raw)
    if magic != MAGIC:
        why = f"a batch of format {magic}: only format {MAGIC} (since Kafka 0.11) is read"
        return Quarantined(QuarantineReason.UNKNOWN_VERSION, why)
    if last < 0:
        return Quarantined(QuarantineReason.INVALID_VALUE, f"the offset of its last record is {last} after its first")
    return RecordBatch(base, base + last, raw)


def records(found: RecordBatch, partition: int) -> Iterator[SourceRecord | Quarantined]:
    """Yield the batch's records in order.

    After a damaged record, only the reason follows, because the start of the next record is unknown. Transaction
    markers are omitted, as in consumers.
    """
    *_, attributes, _, base_ms, max_ms, _, _, _, count = HEADER.unpack_from(found.raw)
    if attributes & _CONTROL:
        return
    try:
        raw = unpacked(found.raw[HEADER.size :], attributes & _COMPRESSION)
        position = 0
        for _ in range(count):
            (delta_ms, delta, key, value), position = _record(raw, position)
            at = max_ms if attributes & _APPEND_TIME else base_ms + delta_ms
            yield SourceRecord(partition, found.base + delta, at, key, value)
    except WireError as error:
        yield Quarantined(error.reason, error.detail)
    except Exception as error:  # noqa: BLE001 - untrusted bytes: an error must not stop the other batches
        yield failed(error)


def unpacked(raw: bytes, compression: int) -> bytes:
    """Return the uncompressed records of a batch.

    Raises:
        WireError: the bytes are damaged, unpack to too many bytes, or have an unknown compression.
    """
    try:
        if compression == 0:
            out = raw
        elif compression == _GZIP:
            out = zlib.decompressobj(wbits=31).decompress(raw, UNPACKED_BATCH_BYTES + 1)
        elif compression == _SNAPPY:
            out = _snappy(raw)
        elif compression in _STREAMED:
            with pa.CompressedInputStream(pa.BufferReader(raw), _STREAMED[compression]) as stream:
                out = stream.read(UNPACKED_BATCH_BYTES + 1)
        else:
            raise WireError(QuarantineReason.UNKNOWN_VERSION, f"compression {compression}")
    except (OSError, zlib.error, pa.ArrowException):
        raise WireError(QuarantineReason.INVALID_VALUE, "the compressed records cannot be unpacked") from None
    if len(out) > UNPACKED_BATCH_BYTES:
        raise _oversized()
    return out


def _snappy(raw: bytes) -> bytes:
    """Return the unpacked blocks of snappy-java's stream, or of one plain block, which clients other than Java may
    write.
    """
    if not raw.startswith(_XERIAL):
        return _block(raw, UNPACKED_BATCH_BYTES)
    out = bytearray()
    position = _XERIAL_HEADER
    while position < len(raw):
        end = position + 4 + int.from_bytes(raw[position : position + 4])
        out += _block(raw[position + 4 : end], UNPACKED_BATCH_BYTES - len(out))
        position = end
    return bytes(out)


def _block(raw: bytes, most: int) -> bytes:
    size, _ = _unsigned(raw, 0)
    if size > most:
        raise _oversized()
    out: bytes = pa.Codec("snappy").decompress(raw, size, asbytes=True)
    return out


def _oversized() -> WireError:
    return WireError(QuarantineReason.OVERSIZED, f"the batch unpacks to more than {UNPACKED_BATCH_BYTES:,} bytes")


def _record(raw: bytes, position: int) -> tuple[tuple[int, int, bytes | None, bytes | None], int]:
    """Return a record and the position after it.

    The record is (milliseconds after the batch's time, offset after the batch's first, key, value).
    """
    size, position = _signed(raw, position)
    end = position + size
    if size < 0 or end > len(raw):
        raise WireError(
            QuarantineReason.INVALID_LENGTH, f"a record of {size} bytes, but only {len(raw) - position} bytes are left"
        )
    # The byte of attributes is skipped, because no release uses it.
    delta_ms, position = _signed(raw, position + 1)
    delta, position = _signed(raw, position)
    key, position = _bytes(raw, position, end)
    value, position = _bytes(raw, position, end)
    if position > end:
        raise WireError(QuarantineReason.INVALID_LENGTH, f"the fields of a record end {position - end} bytes after it")
    return (delta_ms, delta, key, value), end


def _bytes(raw: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    size, position = _signed(raw, position)
    if size < 0:
        return None, position
    if size > end - position:
        raise WireError(
            QuarantineReason.INVALID_LENGTH, f"length {size}, but the record has {end - position} bytes left"
        )
    return raw[position : position + size], position + size


def _signed(raw: bytes, position: int) -> tuple[int, int]:
    """Return a zigzag number and the position after it (`ByteUtils.readVarlong`)."""
    value, position = _unsigned(raw, position)
    return (value >> 1) ^ -(value & 1), position


def _unsigned(raw: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(raw) and shift < 70:
        byte = raw[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise WireError(QuarantineReason.TRUNCATED, f"a number does not end before byte {position}")
