"""What a local session does otherwise than Spark by default."""

from __future__ import annotations


def test_no_process_is_started_to_rename_a_file_on_a_local_disk(spark, tmp_path):
    jvm, conf = spark.sparkContext._jvm, spark._jsparkSession.sessionState().newHadoopConf()
    path = jvm.org.apache.hadoop.fs.Path(tmp_path.as_uri())
    progress = jvm.org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.create(path, conf)
    assert progress.getClass().getSimpleName() == "FileSystemBasedCheckpointFileManager"

    commits = jvm.org.apache.hadoop.fs.FileContext.getFileContext(path.toUri(), conf).getDefaultFileSystem()
    assert commits.getClass().getSimpleName() == "RawLocalFs"
