"""A real Kafka broker and real consumers that churn, for people without a Kafka at hand and for the tests."""
