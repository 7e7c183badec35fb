"""kafka-python's admin client: the calls that librdkafka lacks, with the same settings.

librdkafka has no ListPartitionReassignments and no DescribeLogDirs, hides groups whose protocol type is not `consumer`,
and can abort the process when it describes groups (`jobs.kafka.described_groups`). Nothing here changes anything in a
cluster.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any

from kafka import KafkaAdminClient
from kafka.errors import KafkaError, for_code

from jobs.config.errors import UserError
from jobs.kafka.kafka_client import cluster_id

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SAME = {
    "bootstrap.servers": "bootstrap_servers",
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "sasl.kerberos.service.name": "sasl_kerberos_service_name",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
    "ssl.crl.location": "ssl_crlfile",
}
"""librdkafka's options and their names in kafka-python. Options that only tune librdkafka need no counterpart."""
OTHER_SECURITY = ("ssl.", "sasl.oauthbearer.")
HARMLESS = ("ssl.endpoint.identification.algorithm", "ssl.cipher.suites", "ssl.curves.list", "ssl.sigalgs.list")
RESPONSE_WITHIN_MS = 10_000


class Client(KafkaAdminClient):  # type: ignore[misc]
    """Admin client that can send a request for which kafka-python has no method."""

    def send_to(self, node_id: int, request: Any) -> Any:
        """Return the response of one broker to a request for which the client has no method."""
        return self._manager.run(self._manager.send, request, node_id)

    @classmethod
    def _describe_configs_process_responses(cls, responses: Any, config_filter: Any = "modified") -> dict[str, Any]:
        # The base class treats a refusal as a broker without settings.
        for result in (each for response in responses for each in response.results):
            if result.error_code:
                raise for_code(result.error_code)(result.error_message)
        settings: dict[str, Any] = super()._describe_configs_process_responses(responses, config_filter)
        return settings

    def brokers(self) -> list[int]:
        """Return the ids of the brokers that are up now."""
        return sorted(
            broker["broker_id"] for broker in self.describe_cluster()["brokers"] if not broker.get("is_fenced")
        )


def connect(options: Mapping[str, str]) -> Client:
    """Return a connected client.

    Raises:
        UserError: an option has no counterpart, or no broker responds.
    """
    config = translated(options)
    # librdkafka checks first, because kafka-python leaks a thread and sockets when no broker responds.
    cluster_id(options)
    try:
        return Client(client_id="regroup-poll", **config)
    except (KafkaError, OSError) as error:
        servers = options.get("bootstrap.servers", "")
        raise UserError(
            f"No Kafka broker answers the poll at {servers} ({_error_text(error)}): check --bootstrap-servers, the "
            "network and the security options in the settings file."
        ) from None


def translated(options: Mapping[str, str]) -> dict[str, Any]:
    """Return librdkafka's options as kafka-python's.

    Raises:
        UserError: a security option has no counterpart.
    """
    found: dict[str, Any] = {
        "request_timeout_ms": RESPONSE_WITHIN_MS,
        "bootstrap_timeout_ms": RESPONSE_WITHIN_MS,
        "reconnect_backoff_max_ms": 1_000,
    }
    for name, value in options.items():
        if name in SAME:
            found[SAME[name]] = value
        elif name.startswith(OTHER_SECURITY) and name not in HARMLESS:
            raise UserError(
                f"The poll cannot use the Kafka option {name}: use files (ssl.ca.location, ssl.certificate.location, "
                "ssl.key.location) and SASL PLAIN, SCRAM or GSSAPI for it."
            )
    for name in ("security_protocol", "sasl_mechanism"):
        if name in found:
            found[name] = found[name].upper()
    if options.get("ssl.endpoint.identification.algorithm", "https").lower() == "none":
        found["ssl_check_hostname"] = False
    if str(options.get("enable.ssl.certificate.verification", "true")).lower() == "false":
        found["ssl_context"] = _unverified(found)
    return found


def _unverified(found: Mapping[str, Any]) -> ssl.SSLContext:
    """Return a TLS context without verification. The operator has turned librdkafka's option for verification off."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if "ssl_certfile" in found:
        context.load_cert_chain(found["ssl_certfile"], found.get("ssl_keyfile"), found.get("ssl_password"))
    return context


def attempt(call: Callable[[], Any]) -> tuple[Any, str | None]:
    """Return the result of a call and None, or None and the error text."""
    try:
        return call(), None
    except (KafkaError, OSError) as error:
        return None, _error_text(error)


def refused(code: int) -> str | None:
    """Return Kafka's name of an error code in a response; None for 0."""
    return for_code(code).__name__ if code else None


def _error_text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:300] if str(error) else type(error).__name__
