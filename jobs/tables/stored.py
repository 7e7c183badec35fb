"""Reading a whole local Delta table into Arrow."""

from __future__ import annotations

import deltalake
import pyarrow.dataset as ds
import pyarrow.fs


def stored(path: str) -> ds.Dataset:
    """Return the newest version of the table in the local folder `path`; its files are opened without Python code.

    deltalake's own file system is Python code that Arrow's threads call. If the process ends while one of them closes a
    file, CPython 3.11 to 3.13 ends that thread in the middle of C++ code, and the process aborts although its work is
    done.
    """
    files = pyarrow.fs.SubTreeFileSystem(str(path), pyarrow.fs.LocalFileSystem())
    return deltalake.DeltaTable(path).to_pyarrow_dataset(filesystem=files)
