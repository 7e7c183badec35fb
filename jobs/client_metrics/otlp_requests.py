"""Requests of OTLP/HTTP with metrics, read with the classes of the official protocol."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

from jobs.config.errors import UserError
from pipelines.client_metrics.metrics import is_kept

if TYPE_CHECKING:
    from opentelemetry.proto.metrics.v1.metrics_pb2 import ResourceMetrics

PROTOBUF, JSON = "application/x-protobuf", "application/json"
LARGEST = 4 << 20
"""Maximum bytes of a request, compressed and not. A broker accepts 1 MB from a client (`telemetry.max.bytes`)."""


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


def kept_metrics(body: bytes, kind: str) -> dict[str, Any]:
    """Return an ExportMetricsServiceRequest in OTLP/JSON, with only the metrics that Regroup keeps; empty without any.

    `kind` is the Content-Type. Java repeats its labels for each metric; here, they are there once.

    Raises:
        RefusedRequestError: the request cannot be read.
    """
    from google.protobuf.json_format import MessageToDict, Parse, ParseError  # noqa: PLC0415 - of the extra otlp
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
    by_labels: dict[bytes, ResourceMetrics] = {}
    out = ExportMetricsServiceRequest()
    for each in request.resource_metrics:
        kept = [metric for scope in each.scope_metrics for metric in scope.metrics if is_kept(metric.name)]
        if kept:
            key = each.resource.SerializeToString(deterministic=True)
            if key not in by_labels:
                by_labels[key] = out.resource_metrics.add(resource=each.resource)
                by_labels[key].scope_metrics.add()
            by_labels[key].scope_metrics[0].metrics.extend(kept)
    found: dict[str, Any] = MessageToDict(out)
    return found
