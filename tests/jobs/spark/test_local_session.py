"""What a local session does differently from Spark's defaults."""

from __future__ import annotations

import os
import subprocess

import pyarrow as pa
import pyspark


def test_files_on_a_local_disk_are_renamed_with_fewer_processes(spark, tmp_path):
    jvm, conf = spark.sparkContext._jvm, spark._jsparkSession.sessionState().newHadoopConf()
    path = jvm.org.apache.hadoop.fs.Path(tmp_path.as_uri())
    progress = jvm.org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.create(path, conf)
    assert progress.getClass().getSimpleName() == "FileSystemBasedCheckpointFileManager"

    commits = jvm.org.apache.hadoop.fs.FileContext.getFileContext(path.toUri(), conf).getDefaultFileSystem()
    assert commits.getClass().getSimpleName() == "RawLocalFs"


def test_python_processes_load_the_installed_pyspark_not_sparks_archive(spark):
    def path_of(batches):
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"path": [pyspark.__file__]})

    (row,) = spark.range(1).mapInArrow(path_of, "path STRING").collect()
    assert row.path == pyspark.__file__


def test_the_archive_is_removed_from_the_path_and_nothing_else(spark):
    python = os.environ["PYSPARK_PYTHON"]
    assert python.endswith("python_without_archive.sh")
    code = "import os, sys; print(os.environ['PYTHONPATH']); print(sys.argv[1:])"
    for path, rest in (("/s/lib/pyspark.zip:/a b:/c", "/a b:/c"), ("/a b:/c", "/a b:/c"), ("", "")):
        known = {**os.environ, "PYTHONPATH": path}
        command = [python, "-c", code, "two words"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=known)
        assert [rest, "['two words']"] == done.stdout.splitlines()
