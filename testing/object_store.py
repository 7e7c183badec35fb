"""An S3 server on loopback, moto's, in a process of its own: `python -m testing.object_store`.

It checks signatures and knows one user, who may do everything. Objects are in memory. The server prints its port and
the user's access key as JSON, and ends when its standard input is closed.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

from pyarrow.fs import FileSystem, S3FileSystem

REGION = "us-east-1"
EVERYTHING = {"Effect": "Allow", "Action": "*", "Resource": "*"}


@dataclass(frozen=True, slots=True)
class S3Server:
    """A running server. `process` can be ended early, as if the network were gone."""

    process: subprocess.Popen[str]
    endpoint: str
    key: str
    secret: str

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment variables with which deltalake reads from this server."""
        return {
            "AWS_ACCESS_KEY_ID": self.key,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_REGION": REGION,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ALLOW_HTTP": "true",
        }

    @property
    def files(self) -> FileSystem:
        """All buckets of the server; its folders of the first level are buckets."""
        return S3FileSystem(
            access_key=self.key,
            secret_key=self.secret,
            region=REGION,
            endpoint_override=self.endpoint,
            allow_bucket_creation=True,
            allow_delayed_open=True,  # one request per small file
        )

    def copy(self, folder: Path, bucket: str, path: str) -> None:
        """Copy all files of a folder below `path` of a bucket, which is created if it is missing."""
        files = self.files
        files.create_dir(bucket)
        for file in folder.rglob("*"):
            if file.is_file():
                name = f"{bucket}/{path}/{file.relative_to(folder)}"
                with files.open_output_stream(name, compression=None) as stream:
                    stream.write(file.read_bytes())


@contextmanager
def object_store() -> Iterator[S3Server]:
    """Run a server."""
    command = [sys.executable, "-W", "ignore", "-m", "testing.object_store"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield S3Server(process, **json.loads(process.stdout.readline()))
        finally:
            process.terminate()


def main() -> None:
    import boto3  # noqa: PLC0415 - only the server needs these packages
    from moto.moto_server.threaded_moto_server import ThreadedMotoServer  # noqa: PLC0415

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    client = boto3.client(
        "iam", endpoint_url=endpoint, region_name=REGION, aws_access_key_id="any", aws_secret_access_key="any"
    )
    client.create_user(UserName="reader")
    policy = json.dumps({"Version": "2012-10-17", "Statement": [EVERYTHING]})
    client.put_user_policy(UserName="reader", PolicyName="everything", PolicyDocument=policy)
    made = client.create_access_key(UserName="reader")["AccessKey"]
    # From here on, moto checks the signature of every request.
    with urlopen(Request(f"{endpoint}/moto-api/reset-auth", b"0", {"Content-Type": "text/plain"})):  # loopback
        pass
    described = {"endpoint": endpoint, "key": made["AccessKeyId"], "secret": made["SecretAccessKey"]}
    sys.stdout.write(f"{json.dumps(described)}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
