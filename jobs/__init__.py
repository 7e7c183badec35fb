"""Entry points of the commands, and all side effects: Kafka, Delta, processes."""
