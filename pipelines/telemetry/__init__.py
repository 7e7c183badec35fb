"""What OpenTelemetry gets: rows of tables as spans, without the SDK, a clock or a connection."""
