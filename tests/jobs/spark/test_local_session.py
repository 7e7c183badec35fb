"""What a local session does differently from Spark's defaults."""

from __future__ import annotations


def test_files_on_a_local_disk_are_renamed_with_fewer_processes(spark, tmp_path):
    jvm, conf = spark.sparkContext._jvm, spark._jsparkSession.sessionState().newHadoopConf()
    path = jvm.org.apache.hadoop.fs.Path(tmp_path.as_uri())
    progress = jvm.org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.create(path, conf)
    assert progress.getClass().getSimpleName() == "FileSystemBasedCheckpointFileManager"

    commits = jvm.org.apache.hadoop.fs.FileContext.getFileContext(path.toUri(), conf).getDefaultFileSystem()
    assert commits.getClass().getSimpleName() == "RawLocalFs"
