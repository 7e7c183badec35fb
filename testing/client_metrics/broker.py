"""A broker with the plugin of `deploy/kafka`, which sends what clients push to an OTLP/HTTP address."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from jobs.lab.broker import Broker
from jobs.setup.jars import jars
from jobs.setup.java import java

SOURCE = Path(__file__).parents[2] / "deploy" / "kafka" / "ClientMetricsReporter.java"


def plugin(folder: Path) -> Path:
    """Compile the plugin into this folder, and return the folder. It must compile for Java 17 without a warning."""
    classpath = os.pathsep.join(str(jar) for jar in jars("kafka"))
    options = ["--release", "17", "-Xlint:all,-removal", "-Werror", "-proc:none", "-cp", classpath, "-d", str(folder)]
    command = [str(java()), "-m", "jdk.compiler/com.sun.tools.javac.Main", *options, str(SOURCE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def broker(folder: Path, *, port: int, token_file: Path) -> Broker:
    """Return a broker, not started, whose plugin sends to this port of this machine."""
    classes = folder / "plugins"
    classes.mkdir(parents=True)
    overrides = {
        "metric.reporters": "regroup.ClientMetricsReporter",
        "regroup.client.metrics.endpoint": f"http://127.0.0.1:{port}/v1/metrics",
        "regroup.client.metrics.token.file": str(token_file),
        "group.initial.rebalance.delay.ms": 0,
    }
    return Broker(folder / "broker", overrides=overrides, plugins=plugin(classes))


def subscribe(running: Broker, *, interval_ms: int = 1000) -> None:
    """Let the broker ask its clients for the metrics of consumers."""
    subscription = ["--alter", "--name", "regroup", "--metrics", "org.apache.kafka.consumer."]
    running.run_tool("org.apache.kafka.tools.ClientMetricsCommand", *subscription, "--interval", str(interval_ms))
