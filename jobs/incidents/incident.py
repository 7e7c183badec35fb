"""`regroup incident`: a document about one rebalance, episode or storm, to send or to print."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dashboards.answers.incidents.document import as_html, as_markdown, values
from dashboards.answers.incidents.incident import Incident
from dashboards.answers.incidents.of_episode import of_episode
from dashboards.answers.incidents.of_rebalance import of_rebalance
from dashboards.answers.incidents.of_storm import of_storm, storm_at
from dashboards.answers.why import why, why_generation
from dashboards.lake.lake import Lake
from jobs.config.errors import UserError
from jobs.config.settings import Settings
from jobs.config.terminal import say
from jobs.lake import asked
from jobs.why import UNKNOWN, span_of

Document = Callable[..., str]


def run(settings: Settings, args: argparse.Namespace) -> int:
    """Print the document, or write it to `--output`. Return 0, or `UNKNOWN` if its verdict blames nothing.

    Raises:
        UserError: the arguments contradict each other, there is no such rebalance or storm, the tables cannot be read,
            or a file cannot be read or written.
    """
    now_ms = time.time_ns() // 1_000_000
    _check(args)
    attached = None
    found = asked(settings, lambda lake: _incident(lake, args, now_ms))
    if args.capture is not None:
        # Imported on use, because reading a capture needs Arrow.
        from jobs.incidents.attached_capture import attach  # noqa: PLC0415

        attached = attach(args.capture, args.output, settings)
        say(f"attached {args.output.parent / attached.file} ({attached.size:,} bytes)")
    document = DOCUMENTS[args.format]
    state = {"now_ms": now_ms, "stale_ms": settings.stale_ms, "attached": attached}
    text = document(found, settings.base_url, **state)
    if args.output is None:
        sys.stdout.write(text)
    else:
        _write(args.output, text)
        say(f"wrote {args.output}")
    return 0 if found.is_answered else UNKNOWN


def _json(found: Incident, base_url: str, **state: Any) -> str:
    return json.dumps(values(found, base_url, **state), indent=2) + "\n"


DOCUMENTS: dict[str, Document] = {"markdown": as_markdown, "html": as_html, "json": _json}


def _check(args: argparse.Namespace) -> None:
    """Raises `UserError` if the arguments name no incident, or two."""
    if (args.group is None) == (args.storm is None):
        raise UserError("Name a group, or a storm with --storm: either of them, not both.")
    of_group = (args.at, args.generation, args.incarnation)
    if args.storm is not None and (args.episode or any(each is not None for each in of_group)):
        raise UserError("--at, --generation, --incarnation and --episode are about a group, not about a storm.")
    if args.at is not None and args.generation is not None:
        raise UserError("Name the rebalance by --at or by --generation, not by both.")
    if args.incarnation is not None and args.generation is None:
        raise UserError("--incarnation needs the --generation.")
    if args.capture is not None and args.output is None:
        raise UserError("--capture needs --output FILE: the capture is written beside that file.")


def _incident(lake: Lake, args: argparse.Namespace, now_ms: int) -> Incident:
    if args.storm is not None:
        return of_storm(lake, _storm_id(lake, args.storm, now_ms))
    cluster = args.cluster or ""
    if args.generation is not None:
        found = why_generation(lake, args.group, args.generation, cluster=cluster, incarnation=args.incarnation)
    else:
        found = why(lake, args.group, cluster=cluster, at=_at(args.at, "--at", now_ms))
    return of_episode(lake, found) if args.episode else of_rebalance(lake, found)


def _at(text: str | None, option: str, now_ms: int) -> tuple[int, int] | None:
    if text is None:
        return None
    try:
        return span_of(text, now_ms)
    except ValueError as error:
        raise UserError(f"{option} {error}.") from None


def _storm_id(lake: Lake, wanted: str, now_ms: int) -> str:
    """Return the id of the storm: `wanted` itself, or of the costliest storm at the time that it is."""
    try:
        return storm_at(lake, *span_of(wanted, now_ms))
    except ValueError:
        return wanted


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"The file {path} cannot be written ({error.strerror}): name another with --output.") from None
