"""Keep pandas out of a process: if pandas is installed, pyarrow loads it with the first array that it creates.

pandas is installed for Great Expectations, Databricks' client and Spark's driver. It costs a process 40 MB and one
second of a core.
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec


class _NoPandas(MetaPathFinder):
    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:  # noqa: ARG002
        if fullname == "pandas":
            raise ModuleNotFoundError("this process does without pandas", name=fullname)
        return None


def without_pandas() -> None:
    """Make `import pandas` fail in this process, as if it were not installed. Call at the start of a process."""
    sys.meta_path.insert(0, _NoPandas())
