#!/bin/sh
# Spark starts this as Python in a local session. It puts `pyspark.zip` first in PYTHONPATH, and Python keeps no
# compiled modules of an archive, so each process would compile those of PySpark. They are installed next to it.
export PYTHONPATH="${PYTHONPATH#*/pyspark.zip:}"
exec "$WORKER_PYTHON" "$@"
