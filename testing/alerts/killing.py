"""`regroup notify` as a process of its own, left to end or killed at a point of its round."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from testing.waiting import wait_until

ROOT = Path(__file__).parents[2]
Option = str | Path


def configured(folder: Path, warehouse: Path, alertmanager: str, webhook: str) -> tuple[Option, ...]:
    """Return the options of a `notify` that sends to these two receivers."""
    config = folder / "regroup.toml"
    config.write_text(
        f'[[alertmanagers]]\nname = "am"\nurl = "{alertmanager}"\n'
        f'[[webhooks]]\nname = "hook"\nurl = "{webhook}/hook"\nsecret = "env:HOOK_SECRET"\n'
    )
    return "--config", config, "--warehouse", warehouse


def notify(*arguments: Option, module: str = "jobs.cli") -> subprocess.Popen[bytes]:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "HOOK_SECRET": "s"}
    return subprocess.Popen([sys.executable, "-m", module, *arguments], env=environment, cwd=ROOT)


def killed(point: str, file: Path, *options: Option) -> None:
    process = notify(point, file, *options, module="testing.alerts.until_killed")
    try:
        wait_until(lambda: file.exists() or process.poll() is not None, 60)
        assert process.poll() is None, f"it ended before it was {point}"
    finally:
        process.kill()
        process.wait()
    file.unlink()
