"""Spark's daemon of Python workers, with the modules of the workers loaded before the first fork.

Otherwise each worker would load them while a batch waits. In local sessions, `spark.python.daemon.module` names this
module.
"""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module

# OpenBLAS starts threads when it is loaded, and threads do not survive a fork.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from pyspark import daemon

from dashboards.lake.without_pandas import without_pandas

WORKER = "pyspark.worker"
"""The module of workers that run tasks. Other workers only plan one read."""

LOADED = ("jobs.kafka.topic_streams", "pipelines.silver.frame")
"""The modules that read Kafka and build silver."""


def load() -> None:
    """Load the modules of workers, without pandas."""
    without_pandas()
    for name in (WORKER, *LOADED):
        import_module(name)
    # Exempts the loaded objects from garbage collection, which would copy their pages in each worker.
    gc.freeze()


if __name__ == "__main__":
    if WORKER in sys.argv:
        load()
    daemon.manager()
