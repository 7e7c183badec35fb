"""Senders to an OpenTelemetry collector. They read the tables, and run independently of batches and alerts."""
