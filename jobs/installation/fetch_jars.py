"""`regroup jars`: fetch the locked jars now, so that later starts need no network, or copy them for another machine."""

from __future__ import annotations

import argparse
import shutil

from jobs.config.errors import UserError
from jobs.config.settings import Settings
from jobs.config.terminal import say
from jobs.setup.jars import ALWAYS, OF_CLUSTERS, jars, jars_dir, locked


def run(settings: Settings, args: argparse.Namespace) -> int:  # noqa: ARG001 - the signature of commands
    """Fetch the jars and print where they are; return 0.

    Raises:
        UserError: a jar cannot be fetched or stored, or its SHA-256 differs from the lock.
    """
    wanted = set(locked() if args.all else (*ALWAYS, "s3") if args.s3 else ALWAYS)
    if args.without_kafka:
        wanted &= set(OF_CLUSTERS)
    files = [file for table in sorted(wanted) for file in jars(table)]
    megabytes = sum(file.stat().st_size for file in files) / 1e6
    folder = jars_dir()
    if args.to is not None:
        folder = args.to
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for file in files:
                shutil.copy(file, folder)
        except OSError as error:
            raise UserError(
                f"The jars cannot be copied to {folder} ({error.strerror}): name another folder."
            ) from error
    say(f"{len(files)} jars, {megabytes:.0f} MB, verified by SHA-256: {folder}")
    return 0
