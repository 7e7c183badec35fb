"""A Spark Connect server that refuses what serverless compute of Databricks refuses."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from jobs.setup.java import java
from testing.connect.server import SPARK

SOURCE = Path(__file__).with_name("Serverless.java")


def interceptor(folder: Path) -> Path:
    """Compile `Serverless.java` into this folder, and return the class, for `connect_server`."""
    compiler = [str(java()), "-m", "jdk.compiler/com.sun.tools.javac.Main"]
    (jar,) = (SPARK / "jars").glob("spark-connect_*.jar")
    command = [*compiler, "-cp", str(jar), "-d", str(folder), str(SOURCE)]
    folder.mkdir(exist_ok=True)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "Serverless.class"


def environment(address: str) -> Mapping[str, str]:
    """Return the environment variables of a program whose session at this address is one of serverless compute."""
    return {"DATABRICKS_RUNTIME_VERSION": "client.4", "SPARK_REMOTE": f"{address}/;x-compute=serverless"}
