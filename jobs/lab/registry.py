"""The program of one Schema Registry instance: it takes part in the leader election, but serves no schemas.

The registry's protocol (type `sr`, name `v0`): each instance sends its identity, and the leader of the Kafka group
selects an eligible one, here the one with the lowest port. The program reads the same orders from standard input as
`consumer.py`. It is run by file name and imports nothing of Regroup.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from typing import Any

from kafka.coordinator.base import BaseCoordinator
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

PROTOCOL = "v0"
DUPLICATE_URLS = 1


class RegistryInstance(BaseCoordinator):  # type: ignore[misc]
    """One member; `identity` is sent when it joins."""

    def __init__(self, client: KafkaNetClient, identity: dict[str, Any], **config: object) -> None:
        super().__init__(client, **config)
        self.identity = identity

    def protocol_type(self) -> str:
        """Return the protocol type of a registry's group."""
        return "sr"

    def group_protocols(self) -> list[tuple[str, bytes]]:
        """Return the identity as JSON."""
        return [(PROTOCOL, json.dumps(self.identity).encode())]

    def _perform_assignment(self, _leader_id: str, _protocol: str, members: list[Any]) -> dict[str, bytes]:
        identities = {member.member_id: json.loads(member.metadata) for member in members}
        return dict.fromkeys(identities, json.dumps(elect(identities)).encode())


def elect(identities: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the assignment of all members. Nobody is elected if two members have the same URL or none is eligible."""
    ports = [identity["port"] for identity in identities.values()]
    if len(set(ports)) < len(ports):
        return {"version": 1, "error": DUPLICATE_URLS, "master": None, "master_identity": None}
    eligible = [member for member, identity in identities.items() if identity["master_eligibility"]]
    master = min(eligible, key=lambda member: int(identities[member]["port"]), default=None)
    return {"version": 1, "error": 0, "master": master, "master_identity": identities.get(master or "")}


def main(port: int, connection: dict[str, Any], config: dict[str, Any]) -> None:
    """Stay in the group until the order to leave."""
    orders: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_listen, args=[orders], daemon=True).start()
    net = NetworkSelector(**connection)
    manager = KafkaConnectionManager(net, **connection)
    net.start()
    manager.bootstrap(30_000)
    member = RegistryInstance(
        KafkaNetClient(net=net, manager=manager),
        {"version": 1, "host": "localhost", "port": port, "master_eligibility": True, "scheme": "http"},
        api_version=manager.broker_version,
        **config,
    )
    while True:
        # Without a timeout, because a join that ends between two calls would be discarded and repeated.
        member.ensure_active_group()
        member.poll_heartbeat()
        try:
            order = orders.get(timeout=0.25)
        except queue.Empty:
            continue
        if order == "leave":
            member.close(timeout_ms=5_000)
            return


def _listen(orders: queue.Queue[str]) -> None:
    for line in sys.stdin:
        orders.put(line.strip())
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), json.loads(sys.argv[2]), json.loads(sys.argv[3]))
