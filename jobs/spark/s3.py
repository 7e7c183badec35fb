"""S3 for local sessions of Spark: the jars, and what the environment says about the store.

Sessions that are provided, as on Databricks or EMR, bring both. The credentials are in no option: Spark itself passes
`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN` to Hadoop, and keeps them in memory.
"""

from __future__ import annotations

import os

from dashboards.lake.address import WITH_SCHEME
from jobs.setup.jars import jars

SCHEMES = ("s3a", "s3")
FILE_SYSTEM = "org.apache.hadoop.fs.s3a.S3AFileSystem"
BY_TOKEN = "software.amazon.awssdk.auth.credentials.WebIdentityTokenFileCredentialsProvider"  # noqa: S105 - a class
"""The credentials provider for the role of a pod. Hadoop contains it, but does not use it by default."""

REGION = "us-east-1"
"""The default of deltalake, with which the pages read."""


def is_in_s3(there: str | None) -> bool:
    """Return whether a location of tables is in S3."""
    found = WITH_SCHEME.fullmatch(there or "")
    return found is not None and found[1] in SCHEMES


def options() -> dict[str, str]:
    """Return the options of a local session that reads and writes S3, as deltalake does with the same environment.

    Raises:
        UserError: a jar cannot be fetched.
    """
    given = os.environ
    found = {
        # Not added to the JVM's class path, because the class archive is valid only for an unchanged class path.
        "spark.jars": ",".join(map(str, jars("s3"))),
        "spark.hadoop.fs.s3.impl": FILE_SYSTEM,
        "spark.hadoop.fs.s3a.endpoint.region": given.get("AWS_REGION") or given.get("AWS_DEFAULT_REGION") or REGION,
        # By default, a store that does not answer fails a job after more than five minutes.
        "spark.hadoop.fs.s3a.attempts.maximum": "2",
        "spark.hadoop.fs.s3a.retry.limit": "3",
    }
    if endpoint := given.get("AWS_ENDPOINT_URL"):
        found["spark.hadoop.fs.s3a.endpoint"] = endpoint
        # Few stores besides Amazon's have a host for each bucket.
        found["spark.hadoop.fs.s3a.path.style.access"] = "true"
    if "AWS_WEB_IDENTITY_TOKEN_FILE" in given and "AWS_ACCESS_KEY_ID" not in given:
        found["spark.hadoop.fs.s3a.aws.credentials.provider"] = BY_TOKEN
    return found
