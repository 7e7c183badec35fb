"""`regroup ship-logs`: send the lines of log files to the events topic, for sites without a log shipper."""

from __future__ import annotations

import hashlib
import json
import os
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobs.config.errors import UserError
from jobs.kafka.events_topic import EventsTopic
from jobs.kafka.logs.log_files import FileLine, FilePosition, Follower
from jobs.tables.disk.durability import write_whole

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from jobs.config.clusters import Cluster
    from jobs.config.settings import Settings

POLL_SECONDS = 0.5


def run(settings: Settings, args: argparse.Namespace) -> int:
    """Send the lines added since the last run; with `--follow`, continue as the files grow.

    Needs only WRITE on the topic. Positions are stored after the broker has acknowledged the lines. After a crash, a
    line may be sent twice, but none is lost.

    Raises:
        UserError: a file, the broker, the topic or the permission is missing.
    """
    cluster = settings.only(args.cluster)
    if args.broker_id is not None and not 0 <= args.broker_id < 2**31:
        raise UserError(f"No broker can have the id {args.broker_id}: give the broker's own id with --broker-id.")
    shipper = Shipper(cluster, args.topic or cluster.events_topic, args.files, broker_id=args.broker_id)
    try:
        while shipper.ship() or args.follow:
            if not shipper.has_more:
                time.sleep(POLL_SECONDS)
    finally:
        shipper.close()
    return 0


class Shipper:
    """Followers of log files, and the topic that receives their lines."""

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        files: list[Path],
        *,
        broker_id: int | None = None,
        state: Path | None = None,
    ) -> None:
        self._topic = topic
        self._broker_id = broker_id
        self._servers = cluster.bootstrap_servers
        self.has_more = True
        state = state or state_dir()
        self._position_files = {file: self._position_file(state, file) for file in files}
        self._events = EventsTopic(cluster, topic)
        with ExitStack() as opened:
            self._followers = {
                log_file: opened.enter_context(closing(Follower(log_file, _load(position_file))))
                for log_file, position_file in self._position_files.items()
            }
            self.close = opened.pop_all().close

    def _position_file(self, state: Path, file: Path) -> Path:
        """Return the path of the file that stores the position of one log file for one topic."""
        name = "\n".join((self._servers, self._topic, str(file.resolve())))
        return state / f"{hashlib.sha256(name.encode()).hexdigest()[:24]}.json"

    def ship(self) -> int:
        """Send one portion of each file and store the new positions; return the number of lines."""
        sent = 0
        for file, follower in self._followers.items():
            lines = follower.poll()
            for line in lines:
                self._events.send(envelope(line, self._broker_id), key=line.source_id)
            if lines:
                self._events.flush()
                _save(self._position_files[file], follower.position)
            sent += len(lines)
        self.has_more = sent > 0
        return sent


def envelope(line: FileLine, broker_id: int | None) -> Mapping[str, Any]:
    """Return the JSON object of one line on the topic; `pipelines.log_envelopes` reads it."""
    return {
        "source": "ship-logs",
        "kind": "log",
        "at": int(time.time() * 1000),
        "file": line.source_id,
        "line_no": line.line_no,
        "line": line.line,
        **({"is_oversized": True} if line.is_oversized else {}),
        **({"broker_id": broker_id} if broker_id is not None else {}),
    }


def state_dir() -> Path:
    """Return the folder for positions: `regroup/ship-logs` in `$XDG_STATE_HOME`, which defaults to `~/.local/state`."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "regroup" / "ship-logs"


def _load(file: Path) -> FilePosition | None:
    try:
        return FilePosition(**json.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise UserError(
            f"The saved position {file} cannot be read ({error}): remove it to start from the beginning of the log."
        ) from None


def _save(file: Path, position: FilePosition) -> None:
    try:
        write_whole(file, json.dumps(position.to_json()))
    except OSError as error:
        raise UserError(
            f"The position cannot be stored in {file.parent} ({error.strerror}): set XDG_STATE_HOME to another folder."
        ) from None
