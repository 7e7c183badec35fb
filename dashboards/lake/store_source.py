"""The Parquet files of one version of a table in an object store, as Arrow datasets that DuckDB reads.

DuckDB cannot read an object store here without an extension from the network. Arrow reads only the columns and row
groups that a query needs. Small files are read whole and kept in memory, because each request takes longer than the
bytes of a small file.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from threading import Lock

import pyarrow as pa
import pyarrow.dataset as ds
from duckdb import DuckDBPyConnection, DuckDBPyRelation
from pyarrow.fs import FileSystem

from dashboards.lake.delta_files import Source, quoted

KEPT_BYTES = 128 << 20
"""Limit of the bytes of small files that are kept in memory."""

SMALL_BYTES = 4 << 20
"""Largest file that is read whole."""

FORMAT = ds.ParquetFileFormat(default_fragment_scan_options=ds.ParquetFragmentScanOptions(pre_buffer=True))
FILE_NAME = pa.field("filename", pa.string())


class SmallFiles:
    """The contents of small files, by table and path, the most recently used ones. Thread-safe."""

    def __init__(self, executor: Executor, most_bytes: int = KEPT_BYTES) -> None:
        self._executor = executor
        self._most_bytes = most_bytes
        self._lock = Lock()
        self._kept: OrderedDict[tuple[str, str], pa.Buffer] = OrderedDict()
        self._size = 0

    def read(self, table: str, files: Sequence[str], system: FileSystem) -> Mapping[str, pa.Buffer]:
        """Return the contents of these files, those that are not kept yet read at once.

        Raises:
            OSError: a file was deleted, or the store cannot be read.
        """
        with self._lock:
            found = {file: self._kept[table, file] for file in files if (table, file) in self._kept}
            for file in found:
                self._kept.move_to_end((table, file))

        def read(file: str) -> pa.Buffer:
            with system.open_input_file(file) as stream:
                return stream.read_buffer()

        missing = [file for file in files if file not in found]
        for file, content in zip(missing, self._executor.map(read, missing), strict=True):
            found[file] = content
            self._keep((table, file), content)
        return found

    def drop_others(self, table: str, files: Sequence[str]) -> None:
        """Drop the contents of files that the table no longer has."""
        with self._lock:
            known = set(files)
            for key in [key for key in self._kept if key[0] == table and key[1] not in known]:
                self._size -= self._kept.pop(key).size

    def _keep(self, key: tuple[str, str], content: pa.Buffer) -> None:
        with self._lock:
            if key in self._kept:
                return
            self._kept[key] = content
            self._size += content.size
            while self._size > self._most_bytes:
                self._size -= self._kept.popitem(last=False)[1].size


@dataclass(frozen=True, slots=True, eq=False)
class StoreSource(Source):
    """A version in an object store. `files` are paths below the table in `system`; `sizes` are those in the log."""

    table: str
    system: FileSystem
    sizes: Mapping[str, int]
    small_files: SmallFiles

    def rows(self, cursor: DuckDBPyConnection, name: str, files: Sequence[str]) -> str:
        cursor.register(f"{name} rows", self._dataset(files, self.schema))
        return quoted(f"{name} rows")

    def with_file_names(self, cursor: DuckDBPyConnection, files: Sequence[str]) -> DuckDBPyRelation:
        return cursor.from_arrow(self._dataset(files, pa.schema([*self.schema, FILE_NAME])))

    def _dataset(self, files: Sequence[str], schema: pa.Schema) -> ds.Dataset:
        """Return the rows of the files. A column of the schema that a file lacks is NULL there."""
        small = [file for file in files if self.sizes.get(file, SMALL_BYTES + 1) <= SMALL_BYTES]
        read = self.small_files.read(self.table, small, self.system)
        fragments = [
            FORMAT.make_fragment(
                read.get(file, file), None if file in read else self.system, ds.field(FILE_NAME.name) == file
            )
            for file in files
        ]
        return ds.FileSystemDataset(fragments, schema, FORMAT, self.system)
