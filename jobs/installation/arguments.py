"""The arguments of `regroup jars` and `regroup completion`, apart from the commands, which `--help` need not import."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from jobs.config.terminal import say
from jobs.installation.build_info import described

SHELLS = ("bash", "zsh", "fish")


class VersionAction(argparse.Action):
    """The option `--version`: prints version and build, and ends. Nothing is read unless the option is given."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        """Print and exit with code 0."""
        say(described())
        parser.exit()


def add_installation(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], top: argparse.ArgumentParser
) -> None:
    """Add the commands that need no settings. `top` is the parser of all commands, which `completion` completes."""
    text = "fetch the locked jars of Delta Lake and Kafka now, or copy them for a machine without network"
    _jars(commands.add_parser("jars", help=text, description=text))
    text = "print a script with which a shell completes commands, options and files"
    _completion(commands.add_parser("completion", help=text, description=text), top)


def _jars(command: argparse.ArgumentParser) -> None:
    command.add_argument("--s3", action="store_true", help="also the jars with which Spark reads and writes S3")
    command.add_argument(
        "--all", action="store_true", help="also these, and the jars of the lab's Kafka Streams and Connect scenarios"
    )
    command.add_argument(
        "--without-kafka",
        action="store_true",
        help="leave out the jars of the lab's Kafka, which a Spark cluster does not need (docs/clusters.md)",
    )
    command.add_argument(
        "--to", type=Path, metavar="DIR", help="copy the jars there, for a machine without network (REGROUP_JARS=DIR)"
    )


def _completion(command: argparse.ArgumentParser, top: argparse.ArgumentParser) -> None:
    command.add_argument("shell", choices=SHELLS, help="shell that loads the script")
    command.set_defaults(top=top)
