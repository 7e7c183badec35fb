"""Spark's daemon of Python workers, which has loaded what they need before it forks the first one.

Each worker would else load it itself, while a batch waits. `spark.python.daemon.module` names this module where the
session is our own.
"""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from pathlib import Path

# Threads do not survive a fork, and this library starts some as it is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Spark puts its own archive first, each module of which is compiled anew by every process that loads it.
sys.path[:] = [place for place in sys.path if Path(place).name != "pyspark.zip"]

from pyspark import daemon  # noqa: E402

from dashboards.lake.without_pandas import without_pandas  # noqa: E402

WORKER = "pyspark.worker"
"""What runs tasks; others plan a read, once."""

LOADED = ("jobs.kafka.topic_streams", "pipelines.silver.frame")
"""What reads Kafka, and what builds silver."""


def load() -> None:
    """What workers run, without pandas."""
    without_pandas()
    for name in (WORKER, *LOADED):
        import_module(name)
    # So that collecting garbage in a worker does not copy it.
    gc.freeze()


if __name__ == "__main__":
    if WORKER in sys.argv:
        load()
    daemon.manager()
