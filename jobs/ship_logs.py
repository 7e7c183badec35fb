"""`regroup ship-logs`: the lines of log files, sent to the events topic, for people without a log shipper."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, Producer

from jobs.errors import UserError
from jobs.log_files import FileLine, Follower, Position

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from jobs.settings import Cluster, Settings

POLL_SECONDS = 0.5
ANSWER_WITHIN_S = 15.0
KNOWN_WITHIN_S = 10.0
SENT_WITHIN_S = 60.0

# librdkafka would print what the one sentence says already.
_SILENT = logging.getLogger(__name__)
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


def run(settings: Settings, args: argparse.Namespace) -> int:
    """Send what the files have gained since the last run, and with `--follow` go on as they grow.

    Needs WRITE on the topic and nothing else. Positions are kept once the broker has acknowledged the lines: a line may
    be sent twice after a crash, but none is lost.

    Raises:
        UserError: a file, the broker, the topic or the permission is missing.
    """
    cluster = settings.only(args.cluster)
    shipper = Shipper(cluster, args.topic or cluster.events_topic, args.files, broker_id=args.broker_id)
    try:
        while shipper.ship() or args.follow:
            if not shipper.has_more:
                time.sleep(POLL_SECONDS)
    finally:
        shipper.close()
    return 0


class Shipper:
    """Followers of some files and the producer that sends their lines."""

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
        self._error: KafkaError | None = None
        self.has_more = True
        state = state or state_dir()
        self._places = {file: self._place(state, file) for file in files}
        self._producer = _producer(cluster)
        self._check_topic()
        with ExitStack() as opened:
            self._followers = {
                file: opened.enter_context(closing(Follower(file, _load(place))))
                for file, place in self._places.items()
            }
            self.close = opened.pop_all().close

    def _place(self, state: Path, file: Path) -> Path:
        """Where the position of one file for one topic is kept."""
        name = "\n".join((self._servers, self._topic, str(file.resolve())))
        return state / f"{hashlib.sha256(name.encode()).hexdigest()[:24]}.json"

    def ship(self) -> int:
        """Send one portion of each file and keep the new positions; returns the number of lines."""
        sent = 0
        for file, follower in self._followers.items():
            lines = follower.poll()
            for line in lines:
                self._send(line)
            if lines:
                self._flush()
                _save(self._places[file], follower.position)
            sent += len(lines)
        self.has_more = sent > 0
        return sent

    def _send(self, line: FileLine) -> None:
        value = json.dumps(envelope(line, self._broker_id), ensure_ascii=False).encode("utf-8", "replace")
        while True:
            try:
                self._producer.produce(self._topic, value=value, key=line.source_id, on_delivery=self._delivered)
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as error:
                raise self._sentence(error.args[0]) from None
            else:
                break
        self._producer.poll(0)

    def _flush(self) -> None:
        left = self._producer.flush(SENT_WITHIN_S + ANSWER_WITHIN_S)
        if self._error is not None:
            raise self._sentence(self._error)
        if left:
            raise UserError(
                f"Kafka at {self._servers} did not take {left} lines: check that it is up, then start again."
            )

    def _delivered(self, error: KafkaError | None, _: Any) -> None:
        self._error = self._error or error

    def _check_topic(self) -> None:
        """Of several brokers, not each knows at once of a topic that was just made."""
        given_up_at = time.monotonic() + KNOWN_WITHIN_S
        while (error := self._topic_error()) is not None:
            unknown = error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC)  # noqa: SLF001 - librdkafka's own codes
            if not unknown or time.monotonic() > given_up_at:
                raise self._sentence(error)
            time.sleep(0.2)

    def _topic_error(self) -> KafkaError | None:
        try:
            error: KafkaError | None = (
                self._producer.list_topics(self._topic, ANSWER_WITHIN_S).topics[self._topic].error
            )
        except KafkaException as failure:
            raise self._sentence(failure.args[0]) from None
        return error

    def _sentence(self, error: KafkaError) -> UserError:
        match error.code():
            case KafkaError.TOPIC_AUTHORIZATION_FAILED:
                return UserError(f"No permission to write to the topic {self._topic}: grant WRITE on it.")
            case KafkaError.CLUSTER_AUTHORIZATION_FAILED:
                return UserError("Brokers before 3.0 ask for more: grant IDEMPOTENT_WRITE on the cluster.")
            case KafkaError.UNKNOWN_TOPIC_OR_PART | KafkaError._UNKNOWN_TOPIC:  # noqa: SLF001 - librdkafka's own codes
                return UserError(
                    f"There is no topic {self._topic} at {self._servers}: create it, or name another --topic."
                )
            case KafkaError.SASL_AUTHENTICATION_FAILED | KafkaError._AUTHENTICATION:  # noqa: SLF001
                return UserError(f"Kafka at {self._servers} refused the login: check the cluster's kafka settings.")
            case _:
                return UserError(
                    f"Kafka at {self._servers} cannot be written to ({error.str()}): check address and state."
                )


def _producer(cluster: Cluster) -> Producer:
    try:
        return Producer(
            cluster.client()
            | {
                "enable.idempotence": True,
                "compression.type": "lz4",
                "linger.ms": 50,
                "message.timeout.ms": int(SENT_WITHIN_S * 1000),
                "logger": _SILENT,
            }
        )
    except KafkaException as error:
        raise UserError(
            f"The kafka settings of the cluster {cluster.name} cannot be used ({error.args[0].str()}): correct them."
        ) from None


def envelope(line: FileLine, broker_id: int | None) -> Mapping[str, Any]:
    """What one line looks like on the topic; `pipelines.log_envelopes` reads it."""
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
    """Where positions are kept: `$XDG_STATE_HOME` or `~/.local/state`, below it `regroup/ship-logs`."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "regroup" / "ship-logs"


def _load(place: Path) -> Position | None:
    try:
        return Position(**json.loads(place.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise UserError(f"The saved position {place} cannot be read ({error}): remove it to begin anew.") from None


def _save(place: Path, position: Position) -> None:
    fresh = place.with_suffix(".new")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text(json.dumps(position.to_json()), encoding="utf-8")
        fresh.replace(place)
    except OSError as error:
        raise UserError(
            f"The position cannot be kept in {place.parent} ({error.strerror}): set XDG_STATE_HOME to another folder."
        ) from None
