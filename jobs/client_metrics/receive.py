"""`regroup receive-metrics`: take what clients push to the brokers (KIP-714) by OTLP/HTTP, and send it to the events
topic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.client_metrics.otlp_requests import check_installed
from jobs.client_metrics.receiver import PATH, MetricsReceiver
from jobs.config.bearer import bearer_token
from jobs.config.declared import REFERENCES
from jobs.config.errors import UserError
from jobs.config.listening import listening
from jobs.config.receivers import is_loopback
from jobs.config.terminal import say
from jobs.kafka.events_topic import EventsTopic

if TYPE_CHECKING:
    import argparse

    from jobs.config.settings import Settings


def run(settings: Settings, args: argparse.Namespace) -> int:
    """Listen until the process is ended. Needs only WRITE on the topic.

    Raises:
        UserError: the address, the token, the broker, the topic or the permission is missing or wrong.
    """
    check_installed()
    host, port = listening(args.listen)
    if args.token and not args.token.startswith(REFERENCES):
        # Everybody on this machine can read the arguments of a process.
        raise UserError("--token must be env:NAME or file:PATH, not the token itself.")
    token = bearer_token("The token of --token", args.token)
    if not token and not is_loopback(host):
        raise UserError(
            f"Everybody who can reach {host} could send metrics of any group: give --token (env:NAME or file:PATH), or "
            "listen on 127.0.0.1."
        )
    cluster = settings.only(args.cluster)
    topic = EventsTopic(cluster, args.topic or cluster.events_topic)
    try:
        receiver = MetricsReceiver(topic.deliver, host=host, port=port, token=token)
    except OSError as error:
        raise UserError(f"Nothing can listen on {args.listen} ({error.strerror}): name another --listen.") from None
    say(f"receiving metrics at http://{args.listen.removesuffix(str(port))}{receiver.port}{PATH}")
    receiver.run()
    return 0
