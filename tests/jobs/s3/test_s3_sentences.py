"""What is wrong with a store of tables is one sentence, before Spark starts; and only one process writes there."""

from __future__ import annotations

from pathlib import Path

import pyspark
import pytest

from jobs.cli import main
from jobs.config.errors import UserError
from jobs.setup.jars import jars
from jobs.spark import s3
from jobs.spark.s3_checks import only_writer
from jobs.spark.s3_failure import failure, store_named
from jobs.tables.location import bind, location
from jobs.tables.named_tables import columns
from jobs.tables.paths import named_by_path
from tests.jobs.s3.conftest import ADDRESS, BUCKET

HADOOP = "getFileStatus on s3a://b/x: software.amazon.awssdk.services.s3.model.S3Exception: "


@pytest.mark.parametrize(
    ("address", "variables", "sentence"),
    [
        ("s3a://nowhere/x", {}, "the bucket does not exist. Create it, or correct the address."),
        (ADDRESS, {"AWS_ACCESS_KEY_ID": "AKIAUNKNOWN"}, "the store refuses these credentials. Check AWS_ACCESS_KEY_ID"),
        (ADDRESS, {"AWS_SECRET_ACCESS_KEY": "not-the-secret"}, "the store refuses these credentials"),
        (ADDRESS, {"AWS_ALLOW_HTTP": "false"}, "its endpoint is http://. Use https://, or set AWS_ALLOW_HTTP=true"),
        (ADDRESS, {"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "the store does not answer. Check AWS_ENDPOINT_URL"),
        (f"s3a://key:secret@{BUCKET}/x", {}, "has a password, a port or a query: write only s3a://BUCKET/PATH"),
    ],
)
def test_a_store_that_cannot_be_used_is_explained_and_binds_nothing(
    server, tmp_path, monkeypatch, capsys, address, variables, sentence
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert 2 == main(["build", "--once", "--warehouse", str(tmp_path / "w"), "--tables", address])
    printed = capsys.readouterr().err
    assert sentence in printed
    assert printed.count("\n") == 1
    assert not any(secret in printed for secret in (server.key, server.secret, "AKIAUNKNOWN", "not-the-secret"))
    assert location(tmp_path / "w") is None


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (f"{HADOOP}FORBIDDEN (Service: S3, Status Code: 403, Request ID: x):null", "refuses these credentials"),
        (f"{HADOOP}null (Service: S3, Status Code: 403):InvalidAccessKeyId", "refuses these credentials"),
        ("org.apache.hadoop.fs.s3a.UnknownStoreException: `s3a://b/x'", "the bucket does not exist"),
        ("org.apache.hadoop.fs.s3a.auth.NoAuthWithAWSException: No AWS Credentials", "there are no credentials"),
        (f"{HADOOP}Unable to execute HTTP request: Connect to 127.0.0.1:9", "the store does not answer"),
    ],
)
def test_an_error_of_hadoop_is_explained_without_its_text(error, sentence) -> None:
    with pytest.raises(UserError, match=sentence) as raised, store_named("s3a://b/x"):
        raise OSError(error)
    assert str(raised.value).startswith("The tables in s3a://b/x cannot be used: ")
    assert "hadoop.fs" not in str(raised.value)


def test_other_errors_stay_what_they_are() -> None:
    assert failure("The tables in s3a://b/x", ValueError("ConnectException")) is None
    assert failure("The tables in s3a://b/x", ValueError(f"{HADOOP}A row of s3a://b/x has no key")) is None
    for there in (None, "main.regroup", "/mnt/tables"):
        with pytest.raises(OSError, match="UnknownStore"), store_named(there):
            raise OSError("fs.s3a.UnknownStoreException")


def test_a_session_without_hadoop_aws_is_explained(spark) -> None:
    with pytest.raises(UserError, match="this Spark has no hadoop-aws"), store_named(ADDRESS):
        columns(named_by_path("s3a://b/x"))


def test_a_second_writer_is_refused(server, tmp_path, capsys) -> None:
    bind(tmp_path, ADDRESS)
    with only_writer(ADDRESS, tmp_path):
        assert 2 == main(["build", "--once", "--warehouse", str(tmp_path)])
    assert f"writes the tables in {ADDRESS}, where only one process may write" in capsys.readouterr().err
    with only_writer(ADDRESS, tmp_path):
        pass


def test_the_options_follow_the_environment_and_have_no_secret(server, monkeypatch) -> None:
    found = s3.options()
    assert server.endpoint == found["spark.hadoop.fs.s3a.endpoint"]
    assert "us-east-1" == found["spark.hadoop.fs.s3a.endpoint.region"]
    assert not any(secret in str(found) for secret in (server.key, server.secret))
    assert "spark.hadoop.fs.s3a.aws.credentials.provider" not in found
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "/var/run/token")
    found = s3.options()
    assert "eu-central-1" == found["spark.hadoop.fs.s3a.endpoint.region"]
    assert "spark.hadoop.fs.s3a.endpoint" not in found
    assert s3.BY_TOKEN == found["spark.hadoop.fs.s3a.aws.credentials.provider"]


@pytest.mark.parametrize(
    ("there", "is_there"),
    [
        ("s3a://b/x", True),
        ("s3://b", True),
        ("main.s3", False),
        ("abfss://c@a/x", False),
        ("/s3a", False),
        (None, False),
    ],
)
def test_addresses_in_s3_are_known_by_their_scheme(there, is_there) -> None:
    assert is_there is s3.is_in_s3(there)


def test_hadoop_aws_has_the_version_of_sparks_hadoop() -> None:
    spark_jars = {each.name for each in (Path(pyspark.__file__).parent / "jars").glob("hadoop*")}
    (version,) = (f.name.removeprefix("org.apache.hadoop.hadoop-aws-") for f in jars("s3") if "hadoop-aws" in f.name)
    assert f"hadoop-client-api-{version}" in spark_jars
