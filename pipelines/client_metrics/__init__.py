"""Metrics that consumers push to the brokers (KIP-714), from OTLP/JSON to rows of `client_metrics`."""
