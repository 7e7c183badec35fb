"""Keep pandas out of a process: if pandas is installed, pyarrow loads it with the first array that it creates.

pandas is installed for Great Expectations, Databricks' client and Spark's driver. It costs a process 40 MB and one
second of a core.
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import FrameType

CHECK = "require_minimum_pandas_version"
"""Spark's function that insists on pandas before `mapInArrow`, which does not use it."""


class _NoPandas(MetaPathFinder):
    def __init__(self, *, is_for_spark: bool) -> None:
        self._is_for_spark = is_for_spark

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:  # noqa: ARG002
        if fullname == "pandas" and not (self._is_for_spark and _is_checked(sys._getframe(1))):  # noqa: SLF001
            raise ModuleNotFoundError("this process does without pandas", name=fullname)
        return None


def without_pandas(*, but_for_spark: bool = False) -> None:
    """Make `import pandas` fail in this process, as if it were not installed. Call at the start of a process.

    With `but_for_spark`, it is loaded once Spark's driver insists on it, as for a large batch.
    """
    sys.meta_path.insert(0, _NoPandas(is_for_spark=but_for_spark))


def _is_checked(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_code.co_name != CHECK:
        frame = frame.f_back
    return frame is not None
