"""Converts rows of tables to OpenTelemetry spans and log records, without the SDK, a clock or a connection."""
