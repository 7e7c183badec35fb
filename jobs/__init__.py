"""Entry points and every effect: Kafka, Delta, processes."""
