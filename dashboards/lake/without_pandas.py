"""A process without pandas, which pyarrow loads together with the first array it makes wherever that is installed.

Great Expectations needs it, Databricks' client, and Spark where tasks are planned; it takes each process 40 MB and a
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
    """From here on `import pandas` fails in this process, as where it is not installed: for the start of a process."""
    sys.meta_path.insert(0, _NoPandas())
