"""Spans as a request of OTLP, made with the classes of the official SDK."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from jobs.config.errors import UserError
from jobs.installation.build_info import version
from pipelines.telemetry.span import TraceSpan

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

SCHEMA_URL = "https://opentelemetry.io/schemas/1.44.0"
"""The version of the semantic conventions whose names the attributes have."""


def check_installed() -> None:
    """Raise `UserError` if the SDK of OpenTelemetry is not installed."""
    try:
        import opentelemetry.exporter.otlp.proto.common.trace_encoder  # noqa: PLC0415
        import opentelemetry.sdk.trace  # noqa: F401, PLC0415
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] != "opentelemetry":
            raise
        raise UserError("[otlp] needs the SDK of OpenTelemetry: install regroup[otlp].") from None


def origin(resource: Mapping[str, str]) -> tuple[Resource, InstrumentationScope]:
    """Return the resource, which is this service with the attributes of the settings, and the scope of all that it
    sends.
    """
    # Imported on use, because only [otlp] needs the SDK.
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope  # noqa: PLC0415

    # Not `Resource.create`, which would add variables of the environment of this process.
    of_all = Resource({"service.name": "regroup", "service.version": version(), **resource}, SCHEMA_URL)
    return of_all, InstrumentationScope("regroup", version(), SCHEMA_URL)


def trace_request(spans: Sequence[TraceSpan], resource: Mapping[str, str]) -> bytes:
    """Return the body of an ExportTraceServiceRequest with these spans."""
    # Imported on use, because only [otlp] needs the SDK.
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans  # noqa: PLC0415
    from opentelemetry.sdk.trace import ReadableSpan  # noqa: PLC0415
    from opentelemetry.trace import Link, SpanContext, TraceFlags  # noqa: PLC0415

    of_all, scope = origin(resource)

    def context(trace: int, span: int, *, is_remote: bool = False) -> SpanContext:
        return SpanContext(trace, span, is_remote=is_remote, trace_flags=TraceFlags(TraceFlags.SAMPLED))

    found = [
        ReadableSpan(
            name=span.name,
            context=context(span.trace_id, span.span_id),
            parent=None if span.parent_id is None else context(span.trace_id, span.parent_id),
            resource=of_all,
            attributes=dict(span.attributes),
            links=[Link(context(*link, is_remote=True)) for link in span.links],
            start_time=span.start_ns,
            end_time=span.end_ns,
            instrumentation_scope=scope,
        )
        for span in spans
    ]
    body: bytes = encode_spans(found).SerializeToString()
    return body


def rejected_spans(response: bytes) -> int:
    """Return how many spans the collector rejected according to its response; 0 if it says nothing readable."""
    from google.protobuf.message import DecodeError  # noqa: PLC0415
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse  # noqa: PLC0415

    try:
        return max(0, int(ExportTraceServiceResponse.FromString(response).partial_success.rejected_spans))
    except DecodeError:
        return 0
