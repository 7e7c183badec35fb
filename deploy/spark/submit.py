"""Runs a command of Regroup under spark-submit: `spark-submit OPTIONS --py-files regroup.zip submit.py COMMAND…`.

The archive is the wheel with the ending `.zip`, because Spark gives its executors no files that end in `.whl`.
"""

from jobs.cli import program

program()
