"""Receives the metrics that clients push to the brokers (KIP-714) by OTLP/HTTP, and sends them to the events topic."""
