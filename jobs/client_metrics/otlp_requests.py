"""Requests of OTLP/HTTP with metrics, read with the classes of the official protocol."""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING, Any

from jobs.config.errors import UserError
from pipelines.client_metrics.labels import LONGEST, is_label
from pipelines.client_metrics.metrics import is_kept

if TYPE_CHECKING:
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

PROTOBUF, JSON = "application/x-protobuf", "application/json"
LARGEST = 4 << 20
"""Maximum bytes of a request, compressed and not. A broker accepts 1 MB from a client (`telemetry.max.bytes`)."""

LARGEST_MESSAGE = 900_000
"""Maximum bytes of a message. Kafka accepts 1 MB by default (`message.max.bytes`)."""


class RefusedRequestError(Exception):
    """A request cannot be read. The message says why."""


def check_installed() -> None:
    """Raise `UserError` if the classes of the protocol are not installed."""
    try:
        import opentelemetry.proto.collector.metrics.v1.metrics_service_pb2  # noqa: F401, PLC0415
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] not in ("google", "opentelemetry"):
            raise
        raise UserError("receive-metrics needs the protocol of OpenTelemetry: install regroup[otlp].") from None


def unpacked(body: bytes, encoding: str) -> bytes:
    """Return a body without its Content-Encoding, `gzip` or none.

    Raises:
        RefusedRequestError: another encoding, broken, or too large.
    """
    if encoding in ("", "identity"):
        return body
    if encoding != "gzip":
        raise RefusedRequestError("the Content-Encoding must be gzip or none")
    stream = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        found = stream.decompress(body, LARGEST + 1)
    except zlib.error:
        raise RefusedRequestError("the gzip data is broken") from None
    if len(found) > LARGEST or not stream.eof:
        raise RefusedRequestError(f"the gzip data is incomplete or has more than {LARGEST:,} bytes")
    return found


def messages(body: bytes, kind: str) -> list[bytes]:
    """Return a message for the events topic for each client in an ExportMetricsServiceRequest, in OTLP/JSON.

    They have only the metrics and labels that Regroup keeps. Java repeats its labels for each metric; here, they are
    there once. `kind` is the Content-Type.

    Raises:
        RefusedRequestError: the request cannot be read, or a message would be too large.
    """
    from google.protobuf.json_format import MessageToDict  # noqa: PLC0415 - of the extra otlp
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (  # noqa: PLC0415
        ExportMetricsServiceRequest,
    )

    by_labels: dict[bytes, Any] = {}
    for each in _request(body, kind).resource_metrics:
        kept = [metric for scope in each.scope_metrics for metric in scope.metrics if is_kept(metric.name)]
        if not kept:
            continue
        _keep_labels(each.resource.attributes)
        for metric in kept:
            for point in (*metric.gauge.data_points, *metric.sum.data_points):
                _keep_labels(point.attributes)
        key = each.resource.SerializeToString(deterministic=True)
        if key not in by_labels:
            by_labels[key] = ExportMetricsServiceRequest()
            by_labels[key].resource_metrics.add(resource=each.resource).scope_metrics.add()
        by_labels[key].resource_metrics[0].scope_metrics[0].metrics.extend(kept)
    found = [json.dumps(MessageToDict(each), separators=(",", ":")).encode() for each in by_labels.values()]
    if any(len(message) > LARGEST_MESSAGE for message in found):
        raise RefusedRequestError(f"the metrics of one client have more than {LARGEST_MESSAGE:,} bytes")
    return found


def _request(body: bytes, kind: str) -> ExportMetricsServiceRequest:
    from google.protobuf.json_format import Parse, ParseError  # noqa: PLC0415 - of the extra otlp
    from google.protobuf.message import DecodeError  # noqa: PLC0415
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (  # noqa: PLC0415
        ExportMetricsServiceRequest,
    )

    request = ExportMetricsServiceRequest()
    try:
        if kind == JSON:
            Parse(body, request, ignore_unknown_fields=True)
        else:
            request.ParseFromString(body)
    except (DecodeError, ParseError, UnicodeDecodeError, RecursionError):
        raise RefusedRequestError("the body is no ExportMetricsServiceRequest") from None
    return request


def _keep_labels(attributes: Any) -> None:
    """Remove the attributes that Regroup does not keep, such as the principal that a plugin may have added."""
    kept = [each for each in attributes if is_label(each.key) and len(each.value.string_value) <= LONGEST]
    del attributes[:]
    attributes.extend(kept)
