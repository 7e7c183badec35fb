"""What clients push to the brokers (KIP-714): received by OTLP/HTTP, and sent to the events topic."""
