"""Build the container image without an engine, run it read-only as its user, and report its size and start.

    sudo ./regroup bench image --work DIR

Debian's debootstrap makes the base, and each stage of deploy/Dockerfile runs in a chroot by the steps of that file. The
image then runs in namespaces of its own: no root, a read-only root file system, /data and /tmp in memory. What only an
engine does (layers, labels, the health check's schedule) is not tried. Needs root, debootstrap and util-linux.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from testing.dockerfile import Stage, stages

ROOT = Path(__file__).parents[1]
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
BUDGET_MB = 2_000
"""Largest size of the image's files."""
HOST_VARIABLES = re.compile(r"(PIP|UV)_\w*INDEX|REGROUP_IVY_|https?_proxy$", re.IGNORECASE)
"""Variables of this machine that installers need to reach their index, as an engine's build arguments would be."""
PEM = os.environ.get("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt")
AUTHORITIES = {
    "run/host.crt": (PEM, "SSL_CERT_FILE", "PIP_CERT"),
    "run/host.jks": ("/etc/ssl/certs/java/cacerts",),
}
"""Certificates of this machine's authorities, and their path during a build. None stays in the image."""


SETTLED_S = 6
STOPPING_S = 60


@dataclass(slots=True)
class Image:
    """A built stage: its files, and what the file says about how to run it."""

    root: Path
    env: dict[str, str] = field(default_factory=dict)
    folder: str = "/"
    user: str = "root"
    entry: list[str] = field(default_factory=list)


def build(stage: Stage, base: Path, work: Path, built: dict[str, Image], arguments: dict[str, str]) -> Image:
    """Run the steps of a stage in a copy of the base."""
    image = Image(root=work / (stage.name or "image"), env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
    shutil.rmtree(image.root, ignore_errors=True)
    subprocess.run(["cp", "-a", base, image.root], check=True)
    with mounted(image.root):
        for word, rest in stage.steps:
            began = time.monotonic()
            step(image, word, rest, built, arguments)
            if word == "RUN":
                print(f"  {time.monotonic() - began:6.1f} s  RUN {rest[:90]}", flush=True)
    return image


def step(image: Image, word: str, rest: str, built: dict[str, Image], arguments: dict[str, str]) -> None:
    """Run one step."""
    if word == "ENV":
        image.env |= dict(pair.split("=", 1) for pair in shlex.split(rest))
    elif word == "ARG" and rest in arguments:
        image.env[rest] = arguments[rest]
    elif word == "WORKDIR":
        image.folder = rest
        (image.root / rest[1:]).mkdir(parents=True, exist_ok=True)
    elif word == "COPY":
        copy(image, shlex.split(rest), built)
    elif word == "RUN":
        host = {name: value for name, value in os.environ.items() if HOST_VARIABLES.match(name)}
        host |= {name: f"/{place}" for place, (_, *names) in AUTHORITIES.items() for name in names}
        host["JAVA_TOOL_OPTIONS"] = "-Djavax.net.ssl.trustStore=/run/host.jks"
        subprocess.run(
            ["chroot", image.root, "sh", "-c", f"cd {image.folder} && {rest}"], check=True, env=host | image.env,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
    elif word == "USER":
        image.user = rest
    elif word == "ENTRYPOINT":
        image.entry = json.loads(rest)


def copy(image: Image, words: list[str], built: dict[str, Image]) -> None:
    """Copy files of the checkout, or of an earlier stage."""
    source = ROOT
    if words[0].startswith("--from="):
        source = built[words.pop(0).removeprefix("--from=")].root
    *names, target = words
    place = Path(target) if target.startswith("/") else Path(image.folder) / target
    there = image.root / str(place)[1:]
    for name in names:
        found = source / name.lstrip("/")
        into = there / found.name if target.endswith("/") and found.is_file() else there
        into.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-aT", found, into], check=True)
        for left in into.rglob("__pycache__") if source == ROOT and into.is_dir() else ():
            shutil.rmtree(left)


class mounted:  # noqa: N801 - used as a function
    """The file systems and certificates that a build needs in its root, for the time of the block."""

    def __init__(self, root: Path) -> None:
        self._root, self._mounts = root, list[Path]()

    def __enter__(self) -> None:
        for name in ("hosts", "resolv.conf"):  # An engine writes these.
            shutil.copy(f"/etc/{name}", self._root / "etc" / name)
        for kind, place in (("proc", "proc"), ("tmpfs", "tmp")):
            self._mount(["-t", kind, kind], self._root / place)
        self._mount(["--bind", "/dev"], self._root / "dev")
        for place, (file, *_) in AUTHORITIES.items():
            if Path(file).is_file():
                (self._root / place).touch()
                self._mount(["--bind", file], self._root / place)

    def _mount(self, options: list[str], place: Path) -> None:
        subprocess.run(["mount", *options, place], check=True)
        self._mounts.append(place)

    def __exit__(self, *_: object) -> None:
        for place in reversed(self._mounts):
            subprocess.run(["umount", "-l", place], check=True)
            if place.is_file() and not place.stat().st_size:
                place.unlink()


def command(image: Image, words: list[str]) -> list[str | Path]:
    """Return a command that runs the image as PID 1 of its own namespaces: read-only, without root, only /data and
    /tmp to write.
    """
    root, user = image.root, image.user
    inside = (
        f"mount --bind {root} {root} && mount -o remount,ro,bind {root} && mount -t proc proc {root}/proc "
        f"&& mount --bind /dev {root}/dev && mount -t tmpfs -o mode=1777 tmpfs {root}/tmp "
        f"&& mount -t tmpfs -o uid=10001,mode=0700 tmpfs {root}/data && exec chroot --userspec={user} {root} "
        f"env -i {' '.join(shlex.quote(f'{k}={v}') for k, v in image.env.items())} HOME=/home/{user} sh -c "
        + shlex.quote(f"cd {image.folder} && exec {shlex.join([*image.entry, *words])}")
    )
    return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", inside]


def megabytes(root: Path) -> float:
    """Return the size of the files in a folder."""
    done = subprocess.run(["du", "-sxm", "--apparent-size", root], check=True, capture_output=True, text=True)
    return float(done.stdout.split()[0])


def run_once(image: Image, *words: str) -> str:
    """Run the image to its end, and return what it printed."""
    done = subprocess.run(command(image, list(words)), capture_output=True, text=True, check=False)
    return f"exit code {done.returncode}: {(done.stdout + done.stderr).strip()}"


def served(image: Image, port: int) -> str:
    """Run `up` with its own lab until a batch is in silver, then end it with SIGTERM; return what was measured."""
    began = time.monotonic()
    running = subprocess.Popen(
        command(image, ["up", "--port", str(port)]), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert running.stdout is not None
    printed = []
    for line in running.stdout:
        printed.append(line)
        if "is in silver" in line:
            break
    ready = time.monotonic() - began
    if running.poll() is not None:
        return "".join(printed)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz") as response:
        health = response.read().decode().strip()
    return f"up: first batch in silver after {ready:.1f} s, /healthz {health!r}, {terminated(running)}"


def stopped(image: Image, *words: str) -> str:
    """Run the image for some seconds, then end it with SIGTERM; return what was measured."""
    running = subprocess.Popen(
        command(image, list(words)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1
    )
    time.sleep(SETTLED_S)
    return f"{words[0]}: {terminated(running)}"


def terminated(running: subprocess.Popen[str]) -> str:
    """Send SIGTERM to the first process of the namespaces, wait for its end, and say how long that took."""
    (child,) = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
    began = time.monotonic()
    os.kill(int(child), signal.SIGTERM)
    try:
        code = running.wait(STOPPING_S)
    except subprocess.TimeoutExpired:
        running.kill()
        return f"SIGTERM did not end it within {STOPPING_S} s"
    return f"SIGTERM to the end {time.monotonic() - began:.1f} s, exit code {code}"


def main() -> int:
    """Build, run and report; return 1 if the image is larger than its budget."""
    parser = argparse.ArgumentParser(description="Build and run the container image without an engine.")
    parser.add_argument("--work", type=Path, required=True, metavar="DIR", help="folder for the roots: 6 GB")
    parser.add_argument("--port", type=int, default=18051, help="port of the pages (default: %(default)s)")
    args = parser.parse_args()
    base = args.work / "base"
    if not base.exists():
        subprocess.run(["debootstrap", "--variant=minbase", "bookworm", base], check=True, stdout=subprocess.DEVNULL)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True)
    arguments = {
        "BASE": f"debian:bookworm-slim@sha256:{'0' * 64}",
        "COMMIT": commit.stdout.strip(),
        "DATE": "2026-01-01",
    }
    built: dict[str, Image] = {}
    for stage in stages(DOCKERFILE.read_text(encoding="utf-8")):
        print(f"stage {stage.name or 'image'}", flush=True)
        built[stage.name] = build(stage, base, args.work, built, arguments)
    image = built[""]
    size, of_base = megabytes(image.root), megabytes(base)
    print(f"size: {size:.0f} MB, of them {of_base:.0f} MB of the base; budget {BUDGET_MB} MB")
    print(run_once(image, "--version"))
    print(run_once(image, "doctor"))
    print(served(image, args.port))
    for words in (("notify",), ("serve", "--port", str(args.port))):
        print(stopped(image, *words))
    return 0 if size <= BUDGET_MB else 1


if __name__ == "__main__":
    sys.exit(main())
