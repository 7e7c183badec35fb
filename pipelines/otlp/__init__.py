"""Values of OTLP/JSON, the JSON form of OpenTelemetry's protocol."""
