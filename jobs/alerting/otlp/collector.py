"""The OpenTelemetry collector of the settings, as the senders of traces, metrics and log records reach it."""

from __future__ import annotations

from collections.abc import Mapping

from jobs.alerting.http_post import post
from jobs.alerting.otlp.encoding import check_installed
from jobs.config.errors import without_secrets
from jobs.config.otlp_section import Otlp
from jobs.config.settings import Settings


class Collector:
    """The collector that the section [otlp] of `settings` names."""

    def __init__(self, settings: Settings) -> None:
        assert settings.otlp is not None
        self.otlp: Otlp = settings.otlp
        self._settings = settings

    @property
    def resource(self) -> Mapping[str, str]:
        """The attributes that the settings add to everything that is sent."""
        return self.otlp.resource

    def check(self) -> None:
        """Raise `UserError` if the SDK is not installed, or a secret is missing at the place that the settings name."""
        check_installed()
        self.otlp.request_headers()

    def post(self, signal: str, body: bytes) -> bytes:
        """Send a request of `traces`, `metrics` or `logs`; return the first bytes of the response's body.

        Raises:
            NotAcceptedError: the collector did not accept it.
            UserError: the reference of a header is broken.
        """
        headers = {"Content-Type": "application/x-protobuf", **self.otlp.request_headers()}
        return post(f"{self.otlp.endpoint.rstrip('/')}/v1/{signal}", body, headers)

    def without_secrets(self, text: str) -> str:
        """Return the text without the secrets of the settings."""
        return without_secrets(text, self._settings.secrets())
